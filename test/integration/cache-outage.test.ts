/** C8: what memory is worth while Redis, or the messages from it, are away, and what becomes of it afterwards. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { GET_CALL, GET_CALL_TRANSCRIPT } from '../http/common/endpoints.ts';
import { keyFor, putSubject } from '../http/common/subject.ts';
import { World, HIT, MISS, type Reader, seenOf } from '../support/world.ts';
import { forTest } from '../support/opened.ts';
import { atEach } from '../support/redis/client.ts';
import { isOneServer } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import type { TestGateway } from '../support/gateway.ts';

const SECOND = 1000;

let proxy: TcpProxy | undefined;
/** The gateway here sees Redis through the proxy if it is one server, the one there directly. */
let world: World;
let reader: Reader;
async function redisUrlHere(url: string): Promise<string> {
  if (!isOneServer) return url;
  proxy = await forTest(TcpProxy.start(url));
  return proxy.url;
}
beforeEach(async () => {
  world = await forTest(World.start('redis', { redisUrlHere }));
  reader = await world.reader(GET_CALL);
  await reader.ask();
});

const readyz = async (gateway: TestGateway): Promise<string> => (await gateway.admin('GET', '/readyz')).text;
const untilSays = (detail: string, gateway = world.here): Promise<void> =>
  world.eventually(async () => expect(await readyz(gateway)).toContain(detail));
const untilWell = (gateway = world.here): Promise<void> =>
  world.eventually(async () => {
    const lines = (await readyz(gateway)).split('\n');
    // That Redis lost its data, and all settings with it, is reported for longer.
    expect(lines.filter((line) => line.includes('degraded') && !line.includes('Redis lost'))).toEqual([]);
  });
const inMemory = async (of: Reader = reader) => (await of.explain(world.here)).memory;

function purge(of: Reader): Promise<unknown> {
  return world.change('POST', '/api/cache/purge', { tags: [`evaluation:${of.subject.id}`] }, world.there);
}

describe('Redis answers, but its messages may not arrive', () => {
  test('what another process stores is noticed: reads look in Redis although there is a copy in memory', async () => {
    const atRedis = (...command: readonly [string, ...string[]]) =>
      atEach(world.redis ?? { servers: [] }, (client) => client.call(...command));
    await atRedis('ACL', 'SETUSER', 'default', '-subscribe');
    await atRedis('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await untilSays('its messages do not arrive');
    world.clock.advance(20 * 60 * SECOND);
    putSubject(world.store, reader.subject, { title: 'Renamed' });
    await reader.ask(world.there);
    await world.eventually(async () => expect((await reader.ask(world.there)).text).toContain('Renamed'));
    expect((await reader.ask()).text).toContain('Renamed');
    await atRedis('ACL', 'SETUSER', 'default', '+subscribe');
    await untilWell();
    expect(reader.calls()).toBe(2);
  });

  test.skipIf(!isOneServer)(
    'C6, C8: a connection that stands and delivers nothing is found out: a purge is known all the same',
    async () => {
      expect(proxy?.stall('evalgate-state-journal')).toBeGreaterThan(0);
      putSubject(world.store, reader.subject, { title: 'Renamed' });
      await purge(reader);
      await world.eventually(async () => expect((await reader.ask()).text).toContain('Renamed'));
      await untilWell();
    },
  );

  test.skipIf(!isOneServer)('C8: without a proof of the last 900 ms Redis is asked before memory is used', async () => {
    expect(proxy?.stall('evalgate-state-journal')).toBeGreaterThan(0);
    putSubject(world.store, reader.subject, { title: 'Renamed' });
    await purge(reader);
    world.clock.advance(901);
    expect((await reader.ask()).text).toContain('Renamed');
  });

  test.skipIf(!isOneServer)(
    'C4: a copy that the store has disowned ends by the journal, without a message',
    async () => {
      // No change is noticed by a part.
      const part = await world.reader(GET_CALL_TRANSCRIPT);
      await part.ask();
      expect(proxy?.stall('evalgate-cache-messages')).toBeGreaterThan(0);
      world.clock.advance(2 * 3600 * SECOND);
      putSubject(world.store, { ...part.subject, workspaceId: randomUUID() });
      await world.eventually(async () => expect((await part.ask(world.there)).status).toBe(404));
      // Once this purge is in force, so is what the journal had before.
      await world.purge([`evaluation:${randomUUID()}`], { exact: true }, world.there);
      expect((await part.ask()).status).toBe(404);
    },
  );
});

describe('Redis does not answer', () => {
  test('C8: copies stay usable, new ones are kept, and each gateway goes on by itself', async () => {
    const fresh = await world.reader(GET_CALL);
    await world.redis?.kill();
    await untilSays('does not answer');
    expect(await reader.ask()).toMatchObject({ status: 200, cache: HIT });
    expect(await fresh.ask()).toMatchObject({ status: 500 });
    expect((await reader.explain()).redis.state).toBe('unreachable');
    // A key that was confirmed lately may read what is new, too.
    const another = putSubject(world.store, { ...reader.subject, id: `${reader.subject.id}_2` });
    const path = GET_CALL.path(another);
    const ask = async () => seenOf(await world.here.get(path, { key: reader.key }));
    expect([await ask(), await ask()]).toMatchObject([{ cache: MISS }, { cache: HIT }]);
    const refused = await world.here.admin('POST', '/api/cache/purge', { tags: ['all'] });
    expect(refused.status).toBeGreaterThanOrEqual(500);
    expect(await reader.ask()).toMatchObject({ cache: HIT });
    await world.redis?.restart();
  });

  test('C8: nothing is lost when a frozen Redis goes on', async () => {
    await world.redis?.pause();
    await untilSays('does not answer');
    expect(await reader.ask()).toMatchObject({ status: 200, cache: HIT });
    await world.redis?.resume();
    await untilWell();
    expect((await reader.explain()).next.text).toBe('The next read is served from memory.');
    expect(reader.calls()).toBe(1);
  });

  test.skipIf(!isOneServer)('C8: a fetch that is under way when Redis goes costs its reader nothing', async () => {
    world.clock.advance(25 * 3_600_000 + 3_600_000);
    const hold = world.store.hold();
    const asked = reader.ask();
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    proxy?.cut();
    await untilSays('does not answer');
    hold.release();
    expect(await asked).toMatchObject({ status: 200 });
    proxy?.heal();
    await untilWell();
  });

  test.skipIf(!isOneServer)(
    'C8: what was purged or replaced meanwhile is known before memory is trusted again',
    async () => {
      const [purged, replaced, kept] = [reader, await world.reader(GET_CALL), await world.reader(GET_CALL)];
      for (const each of [replaced, kept]) await each.ask();
      proxy?.cut();
      await untilSays('does not answer');
      for (const each of [purged, replaced]) putSubject(world.store, each.subject, { title: 'Renamed' });
      await purge(purged);
      world.clock.advance(20 * 60 * SECOND);
      await replaced.ask(world.there);
      await world.eventually(async () => expect((await replaced.ask(world.there)).text).toContain('Renamed'));
      proxy?.heal();
      await untilWell();
      for (const each of [purged, replaced]) {
        await world.eventually(async () => expect((await each.ask()).text).toContain('Renamed'));
      }
      expect(await inMemory(kept)).toMatchObject({ state: 'stale' });
      expect([purged, replaced, kept].map(({ calls }) => calls())).toEqual([2, 2, 1]);
    },
  );

  test('C6: a Redis that comes back empty counts as a purge of everything', async () => {
    await world.redis?.restart();
    await world.eventually(async () => expect((await inMemory())?.state ?? 'none').toMatch(/purged|none/));
    await untilWell();
    const key = await keyFor(world.here, reader.subject);
    expect(seenOf(await world.here.get(reader.path, { key }))).toMatchObject({ status: 200, cache: MISS });
  });

  test('a gateway starts without Redis, and shares with the others once it comes', async () => {
    await world.redis?.kill();
    const lone = await world.join();
    expect((await reader.explain(lone)).redis.state).toBe('unreachable');
    await world.redis?.restart();
    for (const gateway of world.gateways) await untilWell(gateway);
    const shared = await world.reader(GET_CALL);
    await shared.ask();
    expect(await shared.ask(lone)).toMatchObject({ status: 200, cache: HIT });
    expect(shared.calls()).toBe(1);
  });
});
