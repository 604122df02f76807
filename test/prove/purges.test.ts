/**
 * How soon a purge is in force in every process: also if subscriptions are cut, during a fetch, and with a million
 * entries in Redis (PROVE_PURGE_ENTRIES makes it fewer).
 */
import { test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { Fleet, PLAIN_STORE_CONFIG } from '../support/fleet.ts';
import type { GatewayProcess } from '../support/process.ts';
import { countSubscribers, cutSubscribers, namesIn, withClient } from '../support/redis/client.ts';
import { percentile } from '../support/percentile.ts';
import { count, ms, prove } from './bar.ts';

const PROCESSES = 4;
const GIVE_UP_MS = 10_000;
const ID = 'purged';
const ENTRIES = Number(process.env['PROVE_PURGE_ENTRIES'] ?? 1_000_000);

interface World {
  readonly fleet: Fleet;
  readonly key: string;
}

async function startWorld(): Promise<World> {
  const times = { CACHE_EVALUATION_FRESH: '1h', CACHE_EVALUATION_STALE: '1h', CACHE_EVALUATION_ERROR: '1h' };
  const fleet = await forTest(
    Fleet.start({
      gateways: PROCESSES,
      redis: {},
      env: { CONFIG_FILE: PLAIN_STORE_CONFIG, ...times },
    }),
  );
  return { fleet, key: await fleet.first.issueKey() };
}

async function titleAt(gateway: GatewayProcess, id: string, key: string): Promise<string> {
  const text = await (await gateway.get(`/v2/calls/${id}`, key)).text();
  return /"name":"([^"]*)"/.exec(text)?.[1] ?? text;
}

/** Reads again and again; how long after `sinceMs` the gateway first answered with that title. */
async function seenMs(gateway: GatewayProcess, { id, key, title, sinceMs }: Awaited): Promise<number> {
  while ((await titleAt(gateway, id, key)) !== title) {
    if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error(`${title} was not read within ${GIVE_UP_MS} ms.`);
  }
  return performance.now() - sinceMs;
}

interface Awaited {
  readonly id: string;
  readonly key: string;
  readonly title: string;
  readonly sinceMs: number;
}

function purge(gateway: GatewayProcess, id: string): Promise<unknown> {
  return gateway.administer('POST', '/api/cache/purge', { tags: [`evaluation:${id}`] });
}

/** How long after the purge was asked for each process read the new record. */
async function purgeAndSee({ fleet, key }: World, title: string, round: number): Promise<readonly number[]> {
  fleet.store.title = title;
  const awaited = { id: ID, key, title, sinceMs: performance.now() };
  const [seen] = await Promise.all([
    Promise.all(fleet.gateways.map((gateway) => seenMs(gateway, awaited))),
    purge(fleet.gateway(round), ID),
  ]);
  return seen;
}

test('a purge spreads', async (context) => {
  const [rounds, allowedMs] = [1000, 100];
  const world = await startWorld();
  const all: number[] = [];
  for (let round = 0; round < rounds; round += 1) all.push(...(await purgeAndSee(world, `spread ${round}`, round)));
  const p99 = percentile(all, 0.99);
  prove(context, {
    name: 'purge',
    bar: `${count(rounds)} times at one of ${PROCESSES} processes: the new record read from every one, p99 at most ${ms(allowedMs)}`,
    measured: `p50 ${ms(percentile(all, 0.5))}, p99 ${ms(p99)}, longest ${ms(Math.max(...all))}`,
    ok: p99 <= allowedMs,
  });
});

test('a purge while subscriptions are cut', async (context) => {
  const [rounds, allowedMs] = [50, 1000];
  const world = await startWorld();
  const subscribers = await countSubscribers(world.fleet.redis);
  let [longestMs, cuts] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const sinceMs = performance.now();
    while ((await countSubscribers(world.fleet.redis)) < subscribers) {
      if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error('A connection for messages did not come back.');
    }
    cuts += await cutSubscribers(world.fleet.redis);
    longestMs = Math.max(longestMs, ...(await purgeAndSee(world, `cut ${round}`, round)));
  }
  prove(context, {
    name: "purge, subscribers' connections cut",
    bar: `${rounds} times: nobody reads the old record beyond ${ms(allowedMs)}`,
    measured: `${cuts} connections cut; the old record was last read after ${ms(longestMs)} at most`,
    ok: cuts >= rounds * PROCESSES && longestMs <= allowedMs,
  });
});

test('a purge during a fetch', async (context) => {
  const rounds = 100;
  const { fleet, key } = await startWorld();
  const { store } = fleet;
  let [survived, longestMs] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const id = `late_${round}`;
    store.title = `old ${round}`;
    const held = store.hold();
    const late = Promise.all(Array.from({ length: 5 }, () => titleAt(fleet.gateway(round), id, key)));
    await store.server.waitForCalls(store.server.calls() + 1);
    store.title = `new ${round}`;
    await purge(fleet.gateway(round + 1), id);
    const awaited = { id, key, title: store.title, sinceMs: performance.now() };
    held.release();
    await late;
    // The message of the purge may be under way still; once it has arrived, the late fill must be gone.
    longestMs = Math.max(longestMs, ...(await Promise.all(fleet.gateways.map((gateway) => seenMs(gateway, awaited)))));
    const reads = await Promise.all(fleet.gateways.map((gateway) => titleAt(gateway, id, key)));
    if (reads.some((title) => title !== awaited.title)) survived += 1;
  }
  prove(context, {
    name: 'purge during a fetch',
    bar: `${rounds} times: the late fill never survives`,
    measured: `survived ${survived} times; the new record was read everywhere within ${ms(longestMs)}`,
    ok: survived === 0 && longestMs <= 1000,
  });
});

/** How many are written at once. */
const CHUNK = 1000;

/**
 * Fills Redis with copies of the one entry that it holds of that class, under names of their own. Their bodies are left
 * out: only their lengths are ever asked for.
 */
async function fill({ fleet }: World): Promise<void> {
  await withClient(fleet.redis.url, async (client) => {
    const [name = ''] = await namesIn(client, `evalgate:{cache-*evaluation*${ID}*}:copy-*`);
    const meta = await client.hget(name, 'meta');
    if (meta === null) throw new Error(`Redis holds no entry of ${ID}.`);
    const [tag = '', part = ''] = name.split('}');
    for (let first = 0; first < ENTRIES; first += CHUNK) {
      const copies = Array.from({ length: Math.min(CHUNK, ENTRIES - first) }, (_, i) => `${tag}_${first + i}}${part}`);
      await Promise.all(copies.map((copy) => client.hset(copy, { meta, body: '' })));
    }
  });
}

test('a purge of a large Redis', async (context) => {
  const [rounds, allowedMs, answeredMs] = [20, 1000, 4000];
  const world = await startWorld();
  await titleAt(world.fleet.first, ID, world.key);
  await fill(world);
  let [longestMs, longestAnswerMs] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const sinceMs = performance.now();
    longestMs = Math.max(longestMs, ...(await purgeAndSee(world, `large ${round}`, round)));
    longestAnswerMs = Math.max(longestAnswerMs, performance.now() - sinceMs);
  }
  prove(context, {
    name: 'purge, large Redis',
    bar: `${rounds} times at one of ${PROCESSES} processes with ${count(ENTRIES)} entries in Redis: the new record read from every one within ${ms(allowedMs)}, and what was purged is counted for ${ms(answeredMs)} at most`,
    measured: `longest ${ms(longestMs)}; longest answer ${ms(longestAnswerMs)}`,
    ok: longestMs <= allowedMs && longestAnswerMs <= answeredMs,
  });
});
