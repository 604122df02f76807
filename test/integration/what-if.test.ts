/** The what-if at the door: the advice foretells of another time what is measured once that time is set. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { logOf } from '../support/admin.ts';
import { forTest } from '../support/opened.ts';
import { hash32 } from '../../src/cache/request.ts';
import { decodeBatch, encodeBatch } from '../../src/cache/what-if/sharing.ts';
import { whatIfReportKey } from '../../src/redis/names.ts';
import { World } from '../support/world.ts';
import type { TestGateway } from '../support/gateway.ts';
import { zipfTrace } from '../support/read-traces.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { connectWhenUp } from '../support/redis/client.ts';

const READS = 1500;
const WORKSPACE_C = '33333333-3333-4333-8333-333333333333';
const UNLIMITED = { perMinute: 1_000_000_000, perHour: 1_000_000_000 };
const pointSchema = z.looseObject({
  freshMs: z.number(),
  hitRatio: z.number(),
  storeCallsPerRead: z.number(),
  extrapolated: z.boolean(),
});
const adviceSchema = z.looseObject({
  processes: z.number(),
  classes: z.array(
    z.looseObject({
      class: z.string(),
      reads: z.number(),
      measured: z.object({ hitRatio: z.number(), storeCallsPerRead: z.number(), upstreamRps: z.number() }).nullable(),
      current: pointSchema.nullable(),
      curve: z.array(pointSchema),
      recommendation: z.object({ freshMs: z.number().nullable(), why: z.string() }),
    }),
  ),
});

let world: World;

async function adviceAt(gateway: TestGateway) {
  const { processes, classes } = adviceSchema.parse((await gateway.admin('GET', '/api/cache/advice')).json);
  const advice = classes.find((each) => each.class === 'evaluation');
  if (advice === undefined) throw new Error('There is no advice on evaluations.');
  const ratioAt = (freshMs: number) => advice.curve.find((point) => point.freshMs === freshMs)?.hitRatio ?? -1;
  const callsAt = (freshMs: number) => advice.curve.find((point) => point.freshMs === freshMs)?.storeCallsPerRead ?? -1;
  return { ...advice, processes, ratioAt, callsAt };
}

function putAll(count: number): void {
  const ids = Array.from({ length: count }, (_, i) => `ev_${i}`);
  world.store.put({ evaluations: ids.map((id) => anEvaluation({ _id: id, workspaceId: WORKSPACE_A })) });
}

test('the hit ratio foretold for another time is the one measured with it, and the measured one is true', async () => {
  const trace = zipfTrace({ seed: 7, reads: READS, hours: 4, keys: 80, exponent: 0.9 });
  world = await forTest(World.start('memory'));
  putAll(80);
  const key = await world.here.issueKey(UNLIMITED);
  // So that every call is over before time goes on.
  await world.setTimes('evaluation', { stale: '0s', error: '0s' });
  const replay = async (): Promise<number> => {
    const startMs = world.clock.nowMs();
    let hits = 0;
    for (const [i, atMs] of trace.atMs.entries()) {
      world.clock.advance(startMs + atMs - world.clock.nowMs());
      const { status, headers } = await world.here.get(`/v2/calls/ev_${trace.keys[i]}`, { key });
      expect(status).toBe(200);
      if (String(headers['cache-status']).includes('hit')) hits += 1;
    }
    return hits / trace.keys.length;
  };
  const measured = await replay();
  const advice = await adviceAt(world.here);
  expect(advice).toMatchObject({ processes: 1, reads: READS, measured: { hitRatio: measured } });
  expect(Math.abs((advice.current?.hitRatio ?? -1) - measured)).toBeLessThan(0.02);
  await world.purge(['all']);
  await world.setTimes('evaluation', { fresh: '20m' });
  expect(Math.abs(advice.ratioAt(1_200_000) - (await replay()))).toBeLessThan(0.02);
  expect(advice.ratioAt(1_200_000) - measured).toBeGreaterThan(0.1);
}, 60_000);

test('the records change, and the advice learns how fast: it recommends a time that keeps the limit', async () => {
  world = await forTest(World.start('memory'));
  putAll(20);
  const key = await world.here.issueKey(UNLIMITED);
  await world.setTimes('evaluation', { stale: '0s', error: '1h' });
  for (let round = 0; round < 60; round += 1) {
    // One record of twenty changes every round of 100 s.
    world.store.put({ evaluations: [anEvaluation({ _id: `ev_${round % 20}`, title: `Round ${round}` })] });
    for (let i = 0; i < 20; i += 1) await world.here.get(`/v2/calls/ev_${i}`, { key });
    world.clock.advance(100_000);
  }
  const { recommendation, curve } = await adviceAt(world.here);
  expect(recommendation.why).toMatch(/outdated/);
  expect(recommendation.freshMs ?? 0).toBeLessThan(1_200_000);
  expect(curve.map(({ hitRatio }) => hitRatio)).toEqual(
    curve.map(({ hitRatio }) => hitRatio).toSorted((a, b) => a - b),
  );
});

const KEYS = 10;
const ROUNDS = 4;
const ROUND_MS = 30_000;

test('two gateways over one Redis show one curve, of the reads of both, whatever else lies in Redis', async () => {
  world = await forTest(World.start('redis'));
  putAll(KEYS);
  const key = await world.here.issueKey(UNLIMITED);
  const untilAll = (wanted: object) =>
    world.eventually(async () => {
      for (const gateway of world.gateways) expect(await adviceAt(gateway)).toMatchObject(wanted);
    });
  await untilAll({ processes: 2 });
  const raw = await world.raw();
  const channels = z.array(z.string()).parse(await raw.call('PUBSUB', 'CHANNELS', 'evalgate:channel:what-if:*'));
  expect(channels).toHaveLength(2);
  for (const channel of channels) for (const text of ['', 'hello', '{"version":2}']) await raw.publish(channel, text);
  let reads = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const gateway of world.gateways) {
      for (let i = 0; i < KEYS; i += 1) await gateway.get(`/v2/calls/ev_${i}`, { key });
    }
    reads += 2 * KEYS;
    await untilAll({ reads });
    world.clock.advance(ROUND_MS);
  }
  const [one, other] = [await adviceAt(world.here), await adviceAt(world.there)];
  expect(other.curve.map(({ hitRatio }) => hitRatio)).toEqual(one.curve.map(({ hitRatio }) => hitRatio));
  // Store calls for eight reads of a key: one per round; one every other round; one in all.
  expect([15_000, 45_000, 120_000].map((freshMs) => one.callsAt(freshMs))).toEqual([0.5, 0.25, 0.125]);
  // Stale copies are served meanwhile, so only the first read waits.
  expect(one.ratioAt(15_000)).toBe(0.875);
  expect(one.measured?.hitRatio).toBe(1 - KEYS / reads);
  const reports = await world.names('evalgate:{what-if-*');
  expect(reports).toHaveLength(2);
  for (const name of reports) await raw.set(name, '{"snapshot":{}}');
  expect((await adviceAt(world.here)).processes).toBeGreaterThanOrEqual(1);
});

test('a process that ends hands over what it has seen: a rollout forgets nothing', async () => {
  world = await forTest(World.start('redis'));
  putAll(KEYS);
  const key = await world.here.issueKey(UNLIMITED);
  await world.eventually(async () => expect(await adviceAt(world.there)).toMatchObject({ processes: 2 }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let i = 0; i < KEYS; i += 1) await world.there.get(`/v2/calls/ev_${i}`, { key });
    world.clock.advance(ROUND_MS);
  }
  const reads = KEYS * ROUNDS;
  await world.eventually(async () => expect(await adviceAt(world.here)).toMatchObject({ reads }));
  const before = await adviceAt(world.here);
  for (const gateway of world.gateways.splice(0)) await gateway.close();
  await world.join();
  const after = await adviceAt(world.here);
  expect(after).toMatchObject({ processes: 1, reads, measured: null });
  expect(after.curve.map(({ hitRatio }) => hitRatio)).toEqual(before.curve.map(({ hitRatio }) => hitRatio));
  // It goes on with the copies that Redis holds.
  for (let i = 0; i < KEYS; i += 1) await world.here.get(`/v2/calls/ev_${i}`, { key });
  expect((await adviceAt(world.here)).callsAt(3_600_000)).toBe(KEYS / (reads + KEYS));
  const raw = await world.raw();
  for (const name of await world.names('evalgate:{what-if-*'))
    expect(await raw.pttl(name)).toBeLessThanOrEqual(129_600_000);
  world.clock.advance(36 * 3_600_000 + 1);
  expect(await adviceAt(world.here)).toMatchObject({ reads: KEYS });
});

test('a record that nobody may see counts for each set of workspaces by itself, as it is asked for', async () => {
  world = await forTest(World.start('memory'));
  putAll(KEYS);
  await world.setTimes('notFound', { fresh: '15s' });
  const workspaces = [WORKSPACE_B, WORKSPACE_C];
  const keys = await Promise.all(
    workspaces.map((workspaceId) => world.here.issueKey({ ...UNLIMITED, workspaceIds: [workspaceId] })),
  );
  const before = world.store.calls('evaluation');
  for (const key of [...keys, ...keys]) {
    for (let i = 0; i < KEYS; i += 1) expect((await world.here.get(`/v2/calls/ev_${i}`, { key })).status).toBe(404);
    world.clock.advance(1000);
  }
  const { classes } = adviceSchema.parse((await world.here.admin('GET', '/api/cache/advice')).json);
  const advice = classes.find((each) => each.class === 'notFound');
  expect(advice?.current?.storeCallsPerRead).toBe((world.store.calls('evaluation') - before) / (4 * KEYS));
  expect(advice?.current?.hitRatio).toBe(0.5);
});

test('reads while Redis does not answer are not lost, and no key is followed by two processes for it', async () => {
  world = await forTest(World.start('redis'));
  putAll(KEYS);
  const key = await world.here.issueKey(UNLIMITED);
  const readAll = async (gateway: TestGateway) => {
    for (let i = 0; i < KEYS; i += 1) expect((await gateway.get(`/v2/calls/ev_${i}`, { key })).status).toBe(200);
  };
  const untilAll = (reads: number) =>
    world.eventually(async () => {
      for (const gateway of world.gateways) expect(await adviceAt(gateway)).toMatchObject({ processes: 2, reads });
    });
  await world.setTimes('evaluation', { fresh: '1h' });
  await untilAll(0);
  for (const gateway of world.gateways) await readAll(gateway);
  await untilAll(2 * KEYS);
  await world.redis?.pause();
  await readAll(world.here);
  await readAll(world.here);
  await world.redis?.resume();
  await untilAll(4 * KEYS);
  // One call for each key, whoever read it.
  expect((await adviceAt(world.there)).ratioAt(3_600_000)).toBe(0.75);
}, 30_000);

test('the answer says how far chance may move a figure, and how many reads it takes to recommend one', async () => {
  world = await forTest(World.start('memory'));
  putAll(KEYS);
  const key = await world.here.issueKey(UNLIMITED);
  for (let i = 0; i < KEYS; i += 1) await world.here.get(`/v2/calls/ev_${i}`, { key });
  const { current, recommendation } = await adviceAt(world.here);
  expect(current).toMatchObject({ hitRatio: 0, hitRatioError: (2 * Math.sqrt(KEYS)) / KEYS });
  expect(recommendation.freshMs).toBeNull();
  expect(recommendation.why).toMatch(/^Too few reads for a recommendation: 10 in \S+; it takes 1,000\.$/);
});

test('calls that a list page brings along are predicted as hits, as they are measured', async () => {
  world = await forTest(World.start('memory'));
  putAll(KEYS);
  const key = await world.here.issueKey(UNLIMITED);
  await world.setTimes('evaluation', { fresh: '45s', stale: '0s', error: '0s' });
  // Expired each time that it is read again: every page is asked for anew.
  await world.setTimes('list', { fresh: '1s', stale: '0s', error: '0s' });
  for (let round = 0; round < ROUNDS; round += 1) {
    await world.here.get('/v2/calls', { key });
    for (let i = 0; i < KEYS; i += 1) await world.here.get(`/v2/calls/ev_${i}`, { key });
    world.clock.advance(20_000);
    for (let i = 0; i < KEYS; i += 1) await world.here.get(`/v2/calls/ev_${i}`, { key });
    world.clock.advance(60_000);
  }
  const { measured, current, ratioAt } = await adviceAt(world.here);
  expect([measured?.hitRatio, current?.hitRatio]).toEqual([1, 1]);
  expect(ratioAt(15_000)).toBe(0.5);
});

test('a read that the process which follows its key does not sample stays where it is, and is counted there', async () => {
  world = await forTest(World.start('redis'));
  putAll(KEYS);
  const key = await world.here.issueKey(UNLIMITED);
  await world.eventually(async () => expect(await adviceAt(world.here)).toMatchObject({ processes: 2 }));
  const raw = await world.raw();
  const channels = z.array(z.string()).parse(await raw.call('PUBSUB', 'CHANNELS', 'evalgate:channel:what-if:*'));
  const ids = channels.map((channel) => channel.split(':').at(-1) ?? '');
  const listener = await connectWhenUp(world.redis?.url ?? '');
  const seen: number[] = [];
  listener.on('message', (_channel: string, message: string) => {
    seen.push(decodeBatch(message, 0)?.events.length ?? -1);
  });
  await listener.subscribe(...channels);
  // Each process hears that the other one samples hardly any key.
  for (const [index, channel] of channels.entries()) {
    const sender = hash32(ids[1 - index] ?? '');
    const levels = Array.from({ length: 8 }, () => 120);
    await raw.publish(channel, encodeBatch({ sender, levels, events: [] }, 0));
  }
  for (let i = 0; i < KEYS; i += 1) await world.here.get(`/v2/calls/ev_${i}`, { key });
  await world.eventually(async () => {
    for (const gateway of world.gateways) expect(await adviceAt(gateway)).toMatchObject({ reads: KEYS });
  });
  expect(seen.filter((events) => events !== 0)).toEqual([]);
  listener.disconnect();
});

test('what a process of another release sends leaves no line in the log; what nobody of ours sends leaves one', async () => {
  world = await forTest(World.start('redis'));
  const raw = await world.raw();
  const channels = z.array(z.string()).parse(await raw.call('PUBSUB', 'CHANNELS', 'evalgate:channel:what-if:*'));
  const warnings = (): readonly unknown[] =>
    world.gateways.flatMap((gateway) => logOf(gateway, 'a message of the fleet cannot be read, and is left out'));
  const reports = channels.map((channel) => {
    const [store = '', id = ''] = channel.split(':').slice(-2);
    return whatIfReportKey(store, id);
  });
  expect(reports).toHaveLength(2);
  const send = async (message: Buffer, report: string): Promise<void> => {
    for (const channel of channels) await raw.publish(channel, message.toString('base64'));
    for (const name of reports) await raw.set(name, report);
    for (const gateway of world.gateways) await adviceAt(gateway).catch(() => null);
  };
  // Versions 2 and 4, before and after those of this release.
  await send(Buffer.from([2, 1, 2, 3]), '{"version":3,"atMs":1}');
  await send(Buffer.from([4, 1, 2, 3]), '{"version":5,"processes":[]}');
  await raw.ping();
  expect(warnings()).toEqual([]);
  await send(Buffer.from('hello'), 'hello');
  await world.eventually(() => expect(warnings().length).toBeGreaterThanOrEqual(2));
});
