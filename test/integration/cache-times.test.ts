/** C2: a change of a class's times rules what is stored already, at every gateway, whatever else lies in Redis. */
import { appendRaw, JOURNAL, STATE } from '../support/journal.ts';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { GET_CALL, GET_RUBRIC } from '../http/common/endpoints.ts';
import { BACKENDS, World, HIT, MISS, ON_ERROR, type Reader, STALE } from '../support/world.ts';
import { auditOf } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const TTL = '/api/cache/ttl';
const rowsSchema = z.object({ classes: z.array(z.looseObject({ class: z.string() })) });

async function timesAt(gateway: TestGateway, cacheClass = 'evaluation') {
  const { classes } = rowsSchema.parse((await gateway.admin('GET', TTL)).json);
  return classes.find((row) => row.class === cacheClass);
}

async function ends(gateway: TestGateway) {
  return (await auditOf(gateway)).filter(({ action }) => action === 'cache.ttl.end');
}

describe.each(BACKENDS)('%s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start(kind);
    return () => world.close();
  });
  beforeEach(() => world.resetTimes('evaluation'));

  test('C2: shorter ends copies, longer brings them back, and a reset goes back to the configuration', async () => {
    const reader = await world.reader(GET_CALL);
    for (const gateway of world.gateways) await reader.ask(gateway);
    world.clock.advance(MINUTE);
    await world.setTimes('evaluation', { fresh: '30s', stale: '0s', error: '0s' });
    for (const gateway of world.gateways) expect((await reader.explain(gateway)).memory?.state).toBe('expired');
    await world.setTimes('evaluation', { fresh: '2m' });
    for (const gateway of world.gateways) expect(await reader.ask(gateway)).toMatchObject({ cache: HIT, age: '60' });
    expect(reader.calls()).toBe(1);
    world.clock.advance(5 * MINUTE);
    await world.resetTimes('evaluation');
    expect(await reader.ask(world.there)).toMatchObject({ cache: STALE, age: '360' });
  });

  test('a change purges nothing, and a purge changes nothing', async () => {
    const reader = await world.reader(GET_CALL);
    await reader.ask();
    await world.setTimes('evaluation', { fresh: '7m' });
    expect(await reader.ask(world.there)).toMatchObject({ cache: HIT });
    await world.purge(['all']);
    world.clock.advance(1);
    expect(await reader.ask(world.there)).toMatchObject({ cache: MISS });
    expect(await timesAt(world.there)).toMatchObject({ fresh: '7m', stale: '1h' });
  });

  test('a call that is under way when maintenance begins is waited for by those who did, and no other is made', async () => {
    const [reader, other] = [await world.reader(GET_CALL), await world.reader(GET_CALL)];
    const hold = world.store.hold();
    const asked = reader.ask();
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    await world.change('PUT', '/api/cache/maintenance', { for: '1h' });
    for (const gateway of world.gateways) {
      await world.eventually(async () =>
        expect((await gateway.admin('GET', '/readyz')).text).toContain('asked nothing'),
      );
      expect((await other.ask(gateway)).status).toBe(500);
    }
    hold.release();
    expect(await asked).toMatchObject({ status: 200, cache: MISS });
    await world.change('DELETE', '/api/cache/maintenance');
    await world.eventually(async () => expect((await other.ask(world.there)).status).toBe(200));
    expect(other.calls()).toBe(1);
  });
});

const setFor = (name: string, ms: number) => ({ name, ms, untilMs: null });

describe('times in Redis', () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start('redis');
    return () => world.close();
  });
  beforeEach(() => world.resetTimes('list'));

  const everywhere = async (cacheClass: string) => Promise.all(world.gateways.map((each) => timesAt(each, cacheClass)));

  test('changes of two gateways to one class add up', async () => {
    await Promise.all([
      world.change('PUT', `${TTL}/list`, { fresh: '45s' }, world.here),
      world.change('PUT', `${TTL}/list`, { stale: '1s' }, world.there),
    ]);
    const both = { fresh: '45s', stale: '1s', error: '1h' };
    await world.eventually(async () => expect(await everywhere('list')).toMatchObject([both, both]));
  });

  test('changes by other releases are in force, and what is no time counts as not set', async () => {
    const raw = await world.raw();
    const nowMs = world.clock.nowMs();
    const overrides = [setFor('freshMs', 45_000), setFor('staleMs', -1), setFor('gentlyMs', 1)];
    await appendRaw(raw, { kind: 'times', class: 'list', overrides }, 'one');
    await appendRaw(raw, { kind: 'times', class: 'none', overrides }, 'two');
    const maintenance = { sinceMs: nowMs, untilMs: nowMs + HOUR, by: 'bob' };
    await appendRaw(raw, { kind: 'maintenance', maintenance }, 'three');
    await raw.hset(STATE, {
      'times:list': JSON.stringify(overrides),
      'times:rubric': 'x',
      maintenance: JSON.stringify(maintenance),
    });
    const found = { fresh: '45s', stale: '5m' };
    await world.eventually(async () => expect(await everywhere('list')).toMatchObject([found, found]));
    await world.everywhere(async (gateway) =>
      expect((await gateway.admin('GET', '/api/cache/maintenance')).json).toMatchObject({ active: true, by: 'bob' }),
    );
    await world.change('DELETE', '/api/cache/maintenance');
    const late = await world.join();
    expect(await timesAt(late, 'list')).toMatchObject(found);
    expect(await timesAt(late, 'rubric')).toMatchObject({ error: '1d' });
    await world.leave(late);
    await raw.hdel(STATE, 'times:rubric');
  });

  test('C6a: what is set for a while ends everywhere at once, without who set it; its end is audited once', async () => {
    const setter = await world.join();
    await world.change('PUT', `${TTL}/list`, { stale: '10m' }, setter);
    await world.change('PUT', `${TTL}/list`, { fresh: '90s', stale: '20m', for: '1h' }, setter);
    await world.leave(setter);
    const late = await world.join();
    const until = { fresh: '2026-01-15T13:00:00.000Z', stale: '2026-01-15T13:00:00.000Z', error: null };
    const set = { fresh: '90s', stale: '20m', until, afterwards: { fresh: '30s', stale: '10m', error: null } };
    await world.eventually(async () => expect(await everywhere('list')).toMatchObject([set, set, set]));
    world.clock.advance(HOUR - 1);
    expect(await everywhere('list')).toMatchObject([set, set, set]);
    world.clock.advance(1);
    const back = { fresh: '30s', stale: '10m', until: { fresh: null, stale: null, error: null } };
    expect(await everywhere('list')).toMatchObject([back, back, back]);
    const raw = await world.raw();
    await world.eventually(async () => {
      expect(await raw.hget(STATE, 'times:list')).toBe('[{"name":"staleMs","ms":600000,"untilMs":null}]');
    });
    await world.eventually(async () => expect(await ends(world.here)).toHaveLength(1));
    // Every process has known for some heartbeats by now.
    world.clock.advance(MINUTE);
    await world.setTimes('rubric', { fresh: '9m' });
    expect(await ends(late)).toMatchObject([
      {
        who: 'evalgate',
        target: 'list',
        from: { fresh: '90s', stale: '20m', set: ['fresh', 'stale'] },
        to: { fresh: '30s', stale: '10m', set: ['stale'] },
      },
    ]);
    await world.leave(late);
  });

  test('a gateway that starts later has them, and a Redis that was emptied has the configured ones again', async () => {
    await world.setTimes('list', { fresh: '45s' });
    expect(await timesAt(await world.join(), 'list')).toMatchObject({ fresh: '45s' });
    await (await world.raw()).del(STATE, JOURNAL);
    const configured = { fresh: '30s' };
    await world.eventually(async () =>
      expect(await everywhere('list')).toMatchObject([configured, configured, configured]),
    );
  });

  /** Redis's own clock goes on, so how long it keeps an entry is looked up instead of waited for. */
  const keptMs = async (name: string): Promise<number> => (await world.raw()).pttl(name);
  const entryOf = async ({ subject }: Reader, parts = ':copy-*'): Promise<string> => {
    const [name] = await world.names(`evalgate:{cache-*evaluation%3a${subject.id}*}${parts}`);
    return name ?? '';
  };

  test('a longer TTL keeps what is stored: in an outage every process serves it, one that starts then too', async () => {
    await world.setTimes('evaluation', { fresh: '30s', stale: '0s', error: '1s' });
    const [reader, gone] = [await world.reader(GET_CALL), await world.reader(GET_CALL, { isStored: false })];
    const other = await world.reader(GET_RUBRIC);
    for (const gateway of world.gateways) for (const each of [reader, gone, other]) await each.ask(gateway);
    const [entry, rubric] = [
      await entryOf(reader),
      (await world.names(`*${other.subject.scorecardId}*:copy-*`))[0] ?? '',
    ];
    const absence = await entryOf(gone, ':absent-*');
    const before = await keptMs(rubric);
    expect([await keptMs(entry), await keptMs(absence)].every((ms) => ms > 0 && ms <= 31 * SECOND)).toBe(true);
    await world.setTimes('evaluation', { error: '12h' });
    expect(await keptMs(entry)).toBeGreaterThan(12 * HOUR);
    const recover = world.store.fail(503);
    world.clock.advance(11 * HOUR);
    const late = await world.join();
    for (const gateway of [...world.gateways, late]) {
      expect(await reader.ask(gateway)).toMatchObject({ status: 200, cache: ON_ERROR });
    }
    // Other classes are kept as before, and what is kept may still be purged.
    expect(await keptMs(rubric)).toBeLessThanOrEqual(before);
    expect(await keptMs(absence)).toBeLessThanOrEqual(16 * SECOND);
    await world.purge([`evaluation:${reader.subject.id}`]);
    for (const gateway of world.gateways) expect((await reader.ask(gateway)).status).toBe(500);
    recover();
    await world.leave(late);
    await world.resetTimes('evaluation');
  });

  test('a copy with an end is kept no longer than that, and a shorter TTL takes nothing away', async () => {
    await world.setTimes('evaluation', { fresh: '30s', stale: '0s', error: '10s' });
    const reader = await world.reader(GET_CALL);
    await reader.ask();
    const entry = await entryOf(reader);
    await world.setTimes('evaluation', { error: '7d', for: '1h' });
    const kept = await keptMs(entry);
    expect(kept).toBeGreaterThan(HOUR - 20 * SECOND);
    expect(kept).toBeLessThanOrEqual(HOUR);
    await world.setTimes('evaluation', { error: '0s' });
    expect(await keptMs(entry)).toBeGreaterThan(HOUR - 40 * SECOND);
    await world.setTimes('evaluation', { error: '365d' });
    expect(await keptMs(entry)).toBeLessThanOrEqual(30 * 24 * HOUR);
    await world.resetTimes('evaluation');
  });

  test('a negative entry is kept longer when its class is', async () => {
    const gone = await world.reader(GET_CALL, { isStored: false });
    await gone.ask();
    await world.setTimes('notFound', { fresh: '2h' });
    expect(await keptMs(await entryOf(gone, ':absent-*'))).toBeGreaterThan(2 * HOUR - MINUTE);
    await world.resetTimes('notFound');
  });

  test('so do TTLs of a configuration that is read again', async () => {
    await world.setTimes('evaluation', { fresh: '30s' });
    await world.resetTimes('evaluation');
    const reader = await world.reader(GET_CALL);
    await reader.ask();
    const entry = await entryOf(reader);
    expect(await keptMs(entry)).toBeLessThan(26 * HOUR);
    expect(world.here.reload({ CACHE_EVALUATION_ERROR: '48h' })).toEqual([]);
    await world.eventually(async () => expect(await keptMs(entry)).toBeGreaterThan(48 * HOUR));
  });
});
