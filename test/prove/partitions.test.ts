/**
 * Real partitions: three hosts with a gateway, a Redis server and a Sentinel each, whose links are cut or bad, and whose
 * clocks are set. Skipped if network namespaces cannot be made here (Linux, root and iproute2 are needed).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { Load } from '../support/load.ts';
import { NetworkHosts } from '../support/network-hosts.ts';
import { SeededRandom } from '../support/random.ts';
import { redisSource } from '../support/redis/source.ts';
import { SteppedClock } from '../support/stepped-clock.ts';
import { type Bar, count, ms, prove, skipLoudly } from './bar.ts';
import { brokenRules, type Operation } from './partitions/history.ts';
import { type HostName, HOSTS, MAX_LAG_SECONDS, PartitionedWorld } from './partitions/world.ts';

const WARM_PER_SECOND = 30;
const LIMITED_PER_SECOND = 15;
const LIMIT = 60;
const CALM_MS = 2000;
const CUT_MS = 6000;
const WHOLE_WITHIN_MS = 20_000;
/** A change that is acknowledged is in force everywhere within a second. */
const IN_FORCE_MS = 1000;

type Links = readonly (readonly [HostName, HostName])[];

/** Cuts the links, or does worse; the first host is that of the primary. */
interface Cut {
  readonly name: string;
  readonly links?: (primary: HostName, one: HostName, other: HostName) => Links;
  readonly lossPercent?: number;
  /** Needs a kernel that can delay packets. */
  readonly slow?: { readonly delayMs: number; readonly lossPercent: number };
  /** How far the clock of a gateway without the primary is ahead meanwhile. */
  readonly aheadSeconds?: number;
}

const both = (one: HostName, other: HostName): Links => [
  [one, other],
  [other, one],
];
const CUTS: readonly Cut[] = [
  { name: 'the primary is on the side of the minority', links: (p, b, c) => [...both(p, b), ...both(p, c)] },
  {
    name: 'the primary is not heard, and hears',
    links: (p, b, c) => [
      [p, b],
      [p, c],
    ],
  },
  {
    name: 'the primary hears nobody, and is heard',
    links: (p, b, c) => [
      [b, p],
      [c, p],
    ],
  },
  { name: 'a gateway without the primary is cut off', links: (p, b, c) => [...both(b, p), ...both(b, c)] },
  { name: 'one link to the primary is cut', links: (p, b) => both(p, b) },
  { name: 'one direction of a link to the primary is cut', links: (p, b) => [[b, p]] },
  { name: 'the two others do not reach each other', links: (_, b, c) => both(b, c) },
  { name: 'nobody reaches anybody', links: (p, b, c) => [...both(p, b), ...both(p, c), ...both(b, c)] },
  { name: 'links lose 5 %', lossPercent: 5 },
  { name: 'a clock is set forward, and back', aheadSeconds: 90 },
  { name: 'a clock is set back, and forward', aheadSeconds: -90 },
  { name: 'links take 200 ms and lose 5 %', slow: { delayMs: 200, lossPercent: 5 } },
];
const ROUNDS = 20;
const rounds = Array.from({ length: ROUNDS }, (_, round) => ({ round: round + 1, cut: CUTS[round % CUTS.length] }));

let trouble: string | null = null;
let world: PartitionedWorld | null = null;
let load: Load | null = null;

beforeAll(async () => {
  trouble = await NetworkHosts.trouble();
  const source = await redisSource();
  if (source.kind !== 'process') trouble ??= 'Redis runs in containers here, which cannot join these hosts';
  if (trouble !== null || source.kind !== 'process') return;
  world = await PartitionedWorld.start(source.program);
  load = await Load.start();
}, 120_000);
afterAll(async () => {
  await load?.close();
  await world?.close();
}, 60_000);

test.for(rounds)('round $round: $cut.name', { timeout: 120_000 }, async ({ round, cut }, context) => {
  if (trouble !== null || world === null || load === null || cut === undefined) skipLoudly(context, trouble ?? '');
  if (cut.slow !== undefined && !(await world.network.canSlow('a')))
    skipLoudly(context, 'this kernel delays no packets (it has no sch_netem)');
  const clockTrouble = cut.aheadSeconds === undefined ? null : SteppedClock.trouble();
  if (clockTrouble !== null) skipLoudly(context, clockTrouble);
  prove(context, await play({ world, load, cut, round }));
});

interface Played {
  readonly world: PartitionedWorld;
  readonly load: Load;
  readonly cut: Cut;
  readonly round: number;
}

async function play({ world: fleet, load: generator, cut, round }: Played): Promise<Bar> {
  const random = new SeededRandom(round);
  await untilWhole(fleet);
  const primary = await fleet.primary();
  if (primary === null) throw new Error('There is no primary.');
  const others = HOSTS.filter((name) => name !== primary);
  if (random.next() < 0.5) others.reverse();
  const [one = primary, other = primary] = others;
  const { gateway } = fleet.host(primary);
  const warmKey = await gateway.issueKey();
  const limitedKey = await gateway.issueKey({ perMinute: LIMIT });
  const doomed = await Promise.all(Array.from({ length: 9 }, () => gateway.issue()));
  await sleep(IN_FORCE_MS);
  const targets = (key: string, tag: string) =>
    fleet.records
      .slice(0, 10)
      .flatMap((id) => fleet.hosts.map((host) => ({ url: `${host.gateway.publicUrl}/v2/calls/${id}`, key, tag })));
  await generator.burst(
    [...targets(warmKey, 'warm'), ...doomed.flatMap(({ token }) => targets(token, 'doomed').slice(0, 3))],
    1,
  );
  const warm = await generator.begin(targets(warmKey, 'warm'), WARM_PER_SECOND);
  const limited = await generator.begin(targets(limitedKey, 'limited'), LIMITED_PER_SECOND);

  const operations: Operation[] = [];
  /** An edit, a purge and a revocation at every gateway, of records that the load does not read. */
  const operate = async (): Promise<void> => {
    const asked = fleet.hosts.flatMap(({ name }) => {
      const key = doomed.pop();
      return [
        fleet.edit(`ev_${random.integer(10, 14)}`, name),
        fleet.purge(`ev_${random.integer(15, 19)}`, name),
        ...(key === undefined ? [] : [fleet.revoke(key.keyId, name)]),
      ];
    });
    operations.push(...(await Promise.all(asked)));
  };
  const revocable = doomed.map(({ keyId, token }) => ({ keyId, token }));
  await readAll(fleet, warmKey);
  await operate();
  await sleep(CALM_MS);
  try {
    await cutLinks(fleet, cut, [primary, one, other]);
    if (cut.aheadSeconds !== undefined) await fleet.host(one).clock?.set(cut.aheadSeconds);
    await sleep(CUT_MS / 4);
    await operate();
    await sleep(CUT_MS / 2);
    await operate();
    await sleep(CUT_MS / 4);
  } finally {
    await fleet.network.heal();
    await fleet.network.keepAll();
    await fleet.host(one).clock?.set(0);
    if (cut.slow !== undefined) for (const name of HOSTS) await fleet.network.hasten(name);
  }
  const healedMs = performance.now();
  await untilWhole(fleet);
  const wholeMs = performance.now() - healedMs;
  await sleep(IN_FORCE_MS);
  const [warmReads, limitedReads] = [await generator.end(warm), await generator.end(limited)];
  const broken = brokenRules({
    operations,
    warm: warmReads,
    limited: limitedReads,
    perMinute: LIMIT,
    gateways: HOSTS.length,
    uncounted: (MAX_LAG_SECONDS + 1) * LIMITED_PER_SECOND,
    versions: await readAll(fleet, warmKey),
    statuses: await statusesOf(fleet, revocable),
  });
  const acknowledged = operations.filter(({ isAcknowledged }) => isAcknowledged).length;
  return {
    name: `partition ${round}: ${cut.name}`,
    bar: `known keys and records in memory all served; what was acknowledged is in force in the end; no minute over its limit but by shares; whole within ${ms(WHOLE_WITHIN_MS)} of the end`,
    measured: `${count(warmReads.length)} and ${count(limitedReads.length)} reads, ${acknowledged} of ${operations.length} changes acknowledged; whole after ${ms(wholeMs)}; primary ${primary}, then ${await fleet.primary()}; ${broken.length === 0 ? 'no rule broken' : `${broken.length} broken: ${broken.slice(0, 3).join('; ')}`}`,
    ok: broken.length === 0 && wholeMs <= WHOLE_WITHIN_MS,
  };
}

async function cutLinks(
  { network }: PartitionedWorld,
  { links, lossPercent, slow }: Cut,
  [primary, one, other]: readonly [HostName, HostName, HostName],
): Promise<void> {
  for (const [from, to] of links?.(primary, one, other) ?? []) await network.cut(from, to);
  if (lossPercent !== undefined) await network.lose(lossPercent);
  if (slow === undefined) return;
  for (const name of HOSTS) await network.slow(name, slow.delayMs, slow.lossPercent);
}

async function untilWhole(fleet: PartitionedWorld): Promise<void> {
  const untilMs = performance.now() + 2 * WHOLE_WITHIN_MS;
  for (;;) {
    const lacking = await fleet.lacking().catch(String);
    if (lacking === null) return;
    if (performance.now() > untilMs) throw new Error(`It does not become whole again: ${lacking}`);
    await sleep(100);
  }
}

/** The version of each record at each gateway; -1 if none was answered. */
async function readAll(fleet: PartitionedWorld, key: string) {
  const reads = fleet.hosts.flatMap(({ name, gateway }) =>
    fleet.records.map(async (id) => {
      const text = await (await gateway.get(`/v2/calls/${id}`, key)).text();
      return { at: name, id, version: Number(/"name":"v(\d+)"/.exec(text)?.[1] ?? -1) };
    }),
  );
  return Promise.all(reads);
}

async function statusesOf(
  fleet: PartitionedWorld,
  keys: readonly { readonly keyId: string; readonly token: string }[],
) {
  const asked = fleet.hosts.flatMap(({ name, gateway }) =>
    keys.map(async ({ keyId, token }) => ({ at: name, keyId, status: await gateway.status('/v2/calls/ev_0', token) })),
  );
  return Promise.all(asked);
}
