/** A primary is killed under load, and another takes over: nothing crosses, nobody unknown is let in, quotas forget what was lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { newToken } from '../../src/keys/token.ts';
import { Fleet } from '../support/fleet.ts';
import type { Sample } from '../support/load.ts';
import type { GatewayProcess } from '../support/process.ts';
import { withClient } from '../support/redis/client.ts';
import { spawnCluster, spawnSentinels, type TestRedis } from '../support/redis.ts';
import { count, mostWithin, ms, prove } from './bar.ts';

/** How often each primary is killed; failovers differ by what clients are just doing. */
const ROUNDS = Number(process.env['PROVE_FAILOVERS'] ?? 1);
const GATEWAYS = 2;
const PER_SECOND = 60;
const LIMIT = 60;
const NORMAL_WITHIN_MS = 5000;
const GIVE_UP_MS = 20_000;
const NEVER_ISSUED = newToken();
const PATHS = Array.from({ length: 10 }, (_, i) => `/v2/calls/warm_${i}`);

interface Group {
  readonly redis: TestRedis;
  /** Resolves with those that are left. */
  readonly kill: () => Promise<readonly string[]>;
  /** Resolves once another one is primary in its place. */
  readonly replaced: () => Promise<void>;
}

async function ofSentinels(): Promise<Group> {
  const redis = await spawnSentinels({ replicas: 2 });
  const old = await redis.primary();
  return {
    redis,
    kill: async () => {
      await old.kill();
      return redis.servers.filter((url) => url !== old.url);
    },
    replaced: async () => void (await redis.replaced(old)),
  };
}

/** Kills the one that holds the keys. */
async function ofCluster(): Promise<Group> {
  const redis = await spawnCluster({ replicas: 1 });
  const [first = ''] = redis.servers;
  const slot = await withClient(first, (client) => client.cluster('KEYSLOT', '{keys}'));
  const old = await redis.ownerOf(slot);
  const others = redis.primaries.filter((one) => one !== old);
  return {
    redis,
    kill: async () => {
      await old.kill();
      return redis.servers.filter((url) => url !== old.url);
    },
    replaced: async () => {
      while ((await redis.ownerOf(slot, others[0])) === old) await sleep(20);
    },
  };
}

async function onlyLog(servers: readonly string[]): Promise<string> {
  const names = await Promise.all(
    servers.map((url) => withClient(url, (client) => client.keys('evalgate:{quota-*}:*:log'))),
  );
  const [log, ...more] = new Set(names.flat());
  if (log === undefined || more.length > 0) throw new Error('There is not the one log that there should be.');
  return log;
}

/** As far as it was replicated. */
async function longestLog(servers: readonly string[], log: string): Promise<number> {
  const lengths = servers.map((url) =>
    withClient(url, async (client) => {
      await client.call('READONLY').catch(() => undefined);
      return client.llen(log).catch(() => 0);
    }),
  );
  return Math.max(...(await Promise.all(lengths)));
}

/** Redis decides on keys again, and on limits. */
async function isNormal(gateways: readonly GatewayProcess[], unused: string): Promise<boolean> {
  const found = gateways.map(async (gateway) => {
    const statuses = [unused, NEVER_ISSUED].map((key) => gateway.status('/v2/calls/warm_0', key));
    const isExact = (await gateway.metric('evalgate_quota_exact')) === 1;
    return isExact && (await Promise.all(statuses)).join() === '200,401';
  });
  return (await Promise.all(found)).every(Boolean);
}

function admittedOf(samples: readonly Sample[]): number {
  return samples.filter(({ tag, status }) => tag === 'limited' && status === 200).length;
}

const KINDS = [
  { name: 'Sentinels', start: ofSentinels },
  { name: 'Cluster of 3 with replicas', start: ofCluster },
];
const CASES = KINDS.flatMap((kind) => Array.from({ length: ROUNDS }, (_, round) => ({ ...kind, round: round + 1 })));

test.for(CASES)('$name, round $round', async ({ name, start }, context) => {
  const { redis, kill, replaced } = await start();
  onTestFinished(() => redis.close());
  const fleet = await forTest(Fleet.start({ gateways: GATEWAYS, env: { REDIS_URL: redis.url, LOG_LEVEL: 'fatal' } }));
  const load = await fleet.load();
  const limited = fleet.targets(PATHS.slice(0, 1), await fleet.first.issueKey({ perMinute: LIMIT }), 'limited');
  // Each process gets to know it, and nothing else is in the logs yet.
  const known = await load.run(limited, { perSecond: 10, forMs: 1500 });
  const log = await onlyLog(redis.servers);
  const warm = fleet.targets(PATHS, await fleet.first.issueKey());
  const unused = await fleet.first.issueKey();
  await load.run(warm, { perSecond: PER_SECOND, forMs: 1500 });
  const warmLoad = await load.begin(warm, PER_SECOND);
  const begun = await load.run(limited, { perSecond: 10, forMs: 1500 });
  const left = await kill();
  const admitted = admittedOf(known) + admittedOf(begun);
  const lost = Math.max(0, admitted - (await longestLog(left, log)));
  const killedMs = performance.now();
  const strangers = fleet.targets(PATHS.slice(0, 1), NEVER_ISSUED, 'never issued');
  const othersLoad = await load.begin([...limited, ...strangers], 20);
  await replaced();
  const replacedMs = performance.now();
  while (!(await isNormal(fleet.gateways, unused)) && performance.now() - replacedMs < GIVE_UP_MS) await sleep(20);
  const normalMs = performance.now() - replacedMs;
  // Requests admitted without Redis are added to the log when it is back.
  await sleep(5000);
  const [reads, later] = [await load.end(warmLoad), await load.end(othersLoad)];
  const forgotten = Math.max(0, admitted + admittedOf(later) - (await longestLog(left, log)));
  const served = reads.filter(({ status }) => status === 200);
  const crossed = served.filter(({ url, id }) => !url.endsWith(`/${id}`)).length;
  const unknown = later.filter(({ tag }) => tag === 'never issued');
  const letIn = unknown.filter(({ status }) => status < 400).length;
  const ofLimited = [...known, ...begun, ...later].filter(({ tag }) => tag === 'limited');
  const most = mostWithin(
    ofLimited.filter(({ status }) => status === 200).map(({ atMs }) => atMs),
    60_000,
  );
  prove(context, {
    name: `${name}: the primary killed under load`,
    bar: `${GATEWAYS} processes: warm keys all answered 200 with their own record, no unknown key let in, the log of a limited key holds in the end all that was admitted but what the failover lost, normal within ${ms(NORMAL_WITHIN_MS)} of the new primary`,
    measured: `taken over after ${ms(replacedMs - killedMs)}; ${count(served.length)} of ${count(reads.length)} answered 200, ${crossed} with another's record; ${letIn} of ${count(unknown.length)} unknown let in; of a limit of ${LIMIT} a minute ${most} admitted, some of them by each process's share, ${lost} lost at the failover, ${forgotten} forgotten; normal after ${ms(normalMs)}`,
    ok:
      served.length === reads.length &&
      crossed === 0 &&
      letIn === 0 &&
      forgotten <= lost &&
      // Each by its share, while one of them has Redis back before the other.
      most <= LIMIT + LIMIT / GATEWAYS + lost &&
      ofLimited.some(({ status }) => status === 429) &&
      normalMs <= NORMAL_WITHIN_MS,
  });
});
