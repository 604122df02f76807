/** Whole gateways over one Redis: maintenance begun at one is in force at all; and what Redis holds is explained. */
import { beforeEach, describe, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { z } from 'zod';
import { GET_CALL, LIST_CALLS } from '../http/common/endpoints.ts';
import { World, HIT, type Reader } from '../support/world.ts';
import type { TestGateway } from '../support/gateway.ts';

const PATH = '/api/cache/maintenance';

let reader: Reader;
const world = await forFile(World.start('redis'));
beforeEach(async () => {
  world.clock.advance(1000);
  reader = await world.reader(GET_CALL);
});

const stateSchema = z.looseObject({ active: z.boolean(), by: z.string().nullable(), until: z.string().nullable() });
const stateAt = async (gateway: TestGateway) => stateSchema.parse((await gateway.admin('GET', PATH)).json);

async function untilAllAre(active: boolean): Promise<void> {
  await world.everywhere(async (gateway) => expect((await stateAt(gateway)).active).toBe(active));
}

describe('maintenance of a fleet', () => {
  test('begun at one it is in force at all, and so is its end; none of them asks the store', async () => {
    const list = await world.reader(LIST_CALLS);
    const none = await world.reader(GET_CALL, { isStored: false });
    expect((await list.ask()).status).toBe(200);
    world.clock.advance(40_000);
    const calls = world.store.calls();

    await world.change('PUT', PATH, { for: '1h' });
    await untilAllAre(true);
    const load = [list, reader, none].flatMap(({ ask }) =>
      world.gateways.flatMap((gateway) => Array.from({ length: 10 }, () => ask(gateway))),
    );
    const statuses = new Set((await Promise.all(load)).map(({ status }) => status));
    expect(statuses).toEqual(new Set([200, 500]));
    expect(world.store.calls()).toBe(calls);

    await world.change('DELETE', PATH, undefined, world.there);
    await untilAllAre(false);
    // A failure of a moment ago is requested again at once, at each of them.
    for (const gateway of world.gateways) expect((await reader.ask(gateway)).status).toBe(200);
    expect(world.store.calls()).toBeGreaterThan(calls);
  });

  test('a process that starts later knows of it, with who began it; it outlives all that knew', async () => {
    await world.change('PUT', PATH, { for: '1h' });
    const begun = await stateAt(world.here);
    expect(await stateAt(await world.join())).toEqual(begun);
    for (const gateway of world.gateways.splice(0)) await gateway.close();
    expect(await stateAt(await world.join())).toEqual(begun);
    await world.join();
    await world.change('DELETE', PATH);
    await untilAllAre(false);
  });
});

describe('an entry that Redis holds', () => {
  test('is explained by a process that has never read it, and by what lies beside it', async () => {
    const { subject } = reader;
    await reader.ask();
    const filledAt = new Date(world.clock.nowMs()).toISOString();
    const tags = [`evaluation:${subject.id}`, `workspace:${subject.workspaceId}`];
    const explained = await reader.explain(world.there);
    expect(explained).toMatchObject({
      next: { text: 'The next read is served from Redis.', from: 'redis', store: 'not-asked', miss: null },
      memory: null,
      redis: {
        state: 'asked',
        entry: { state: 'fresh', answer: 'found', filledAt, tags: expect.arrayContaining(tags) as unknown },
      },
      flight: { since: null, leaseLeftMs: null, justFailed: false },
      lastMiss: null,
    });
    const entry = z.looseObject({ bytes: z.number(), keptForMs: z.number() }).parse(explained.redis.entry);
    expect(entry.bytes).toBeGreaterThan(1000);
    // Fresh 5 min, then 1 h stale and 24 h on error.
    expect(entry.keptForMs).toBeGreaterThan(90_000_000 - 60_000);
    expect((await reader.ask(world.there)).cache).toEqual(HIT);
  });

  test('a call of another process for it is shown, and its failure', async () => {
    const recover = world.store.fail(503);
    const hold = world.store.hold();
    const reading = reader.ask();
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    const leaseLeftMs: unknown = expect.any(Number);
    expect(await reader.explain(world.there)).toMatchObject({ flight: { since: null, leaseLeftMs } });
    const since = new Date(world.clock.nowMs()).toISOString();
    expect(await reader.explain(world.here)).toMatchObject({ flight: { since, leaseLeftMs } });
    hold.release();
    recover();
    expect((await reading).status).toBe(500);
    expect(await reader.explain(world.there)).toMatchObject({ flight: { justFailed: true } });
  });
});
