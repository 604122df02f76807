/** A primary is killed under load, and another takes over: nothing crosses, nobody unknown is let in, quotas forget what was lost. */
import { newToken } from '../../../src/keys/token.ts';
import { type FaultsWorld, sleep, withFaultsWorld } from '../../support/faults-world.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { Load } from '../../support/load.ts';
import type { Sample, Target } from '../../support/load-commands.ts';
import { withClient } from '../../support/redis/client.ts';
import { spawnCluster, spawnSentinels, type TestRedis } from '../../support/redis.ts';
import { registryKey } from '../../../src/redis/names.ts';
import { count, ms, type Row, type Scale, slackMs } from '../row.ts';

const GATEWAYS = 2;
const PER_SECOND = 60;
const LIMIT = 60;
const MINUTE_MS = 60_000;
const NORMAL_WITHIN_MS = 5000;
const PROBE_EVERY_MS = 20;
const GIVE_UP_MS = 20_000;
const NEVER_ISSUED = newToken();

interface Group {
  readonly redis: TestRedis;
  /** Resolves with those that are left. */
  kill(): Promise<readonly string[]>;
  /** Resolves once another one is primary in its place. */
  replaced(): Promise<void>;
}

export async function run(scale: Scale): Promise<readonly Row[]> {
  return [
    await failover('Sentinels', await ofSentinels(), scale),
    await failover('Cluster of 3 with replicas', await ofCluster(), scale),
  ];
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

/** The one that holds the keys. */
async function ofCluster(): Promise<Group> {
  const redis = await spawnCluster({ replicas: 1 });
  const [first = ''] = redis.servers;
  const slot = await withClient(first, (client) => client.cluster('KEYSLOT', registryKey('records')));
  const old = await redis.ownerOf(slot);
  const others = redis.primaries.filter((one) => one !== old);
  return {
    redis,
    kill: async () => {
      await old.kill();
      return redis.servers.filter((url) => url !== old.url);
    },
    replaced: async () => {
      while ((await redis.ownerOf(slot, others[0])) === old) await sleep(PROBE_EVERY_MS);
    },
  };
}

async function failover(name: string, group: Group, scale: Scale): Promise<Row> {
  const others = await Load.start();
  try {
    const env = { REDIS_URL: group.redis.url };
    return await withFaultsWorld({ gateways: GATEWAYS, env }, async (world) =>
      judge(name, await trial(world, group, others), scale),
    );
  } finally {
    await others.close();
    await group.redis.close();
  }
}

interface Findings {
  readonly warm: readonly Sample[];
  readonly others: readonly Sample[];
  /** Requests of the limited key that were admitted and that no server knows of any more. */
  readonly lost: number;
  /** Requests of the limited key that were admitted and that the log does not hold in the end. */
  readonly forgotten: number;
  readonly takenMs: number;
  readonly normalMs: number;
}

async function trial(world: FaultsWorld, group: Group, others: Load): Promise<Findings> {
  const { load, first } = world;
  const limited = await first.issueKey({ perMinute: LIMIT });
  // Each process gets to know it, and nothing else is in the logs yet.
  const known = await others.run(targetsOf(world, limited, 'limited'), { perSecond: 10, forMs: 1500 });
  const log = await onlyLog(group.redis.servers);
  const [warmKey, unused] = [await first.issueKey(), await first.issueKey()];
  const warm = Array.from({ length: 10 }, (_, i) => targetsOf(world, warmKey, 'warm', `warm_${i}`)).flat();
  await load.run(warm, { perSecond: PER_SECOND, forMs: 1500 });
  await load.begin(warm, PER_SECOND);
  const begun = await others.run(targetsOf(world, limited, 'limited'), { perSecond: 10, forMs: 1500 });
  const left = await group.kill();
  const admitted = [...known, ...begun].filter(({ status }) => status === 200).length;
  const lost = admitted - (await longestLog(left, log));
  const killedMs = performance.now();
  await others.begin([...targetsOf(world, limited, 'limited'), ...targetsOf(world, NEVER_ISSUED, 'never issued')], 20);
  await group.replaced();
  const replacedMs = performance.now();
  while (!(await isNormal(world.gateways, unused)) && performance.now() - replacedMs < GIVE_UP_MS)
    await sleep(PROBE_EVERY_MS);
  const normalMs = performance.now() - replacedMs;
  await sleep(5000);
  const [told, toldOthers] = [await load.end(), await others.end()];
  const admittedLater = toldOthers.filter(({ tag, status }) => tag === 'limited' && status === 200).length;
  const forgotten = admitted + admittedLater - (await longestLog(left, log));
  return {
    warm: told,
    others: [...known, ...begun, ...toldOthers],
    lost,
    forgotten,
    takenMs: replacedMs - killedMs,
    normalMs,
  };
}

function judge(name: string, { warm, others, lost, forgotten, takenMs, normalMs }: Findings, scale: Scale): Row {
  const allowedMs = NORMAL_WITHIN_MS + slackMs(scale);
  const served = warm.filter(({ status }) => status === 200);
  const crossed = served.filter(({ url, id }) => !url.endsWith(`/${id}`)).length;
  const unknown = others.filter(({ tag }) => tag === 'never issued');
  const letIn = unknown.filter(({ status }) => status < 400).length;
  const limited = others.filter(({ tag }) => tag === 'limited');
  const most = mostInAMinute(limited.filter(({ status }) => status === 200));
  const refused = limited.filter(({ status }) => status === 429).length;
  return {
    name: `${name}: the primary killed under load`,
    bar: `${GATEWAYS} processes: warm keys all answered 200 with their own record, no unknown key let in, the log of a limited key holds in the end all that was admitted but what the failover lost, normal within ${ms(allowedMs)} of the new primary`,
    measured: `taken over after ${ms(takenMs)}; ${count(served.length)} of ${count(warm.length)} answered 200, ${crossed} with another's record; ${letIn} of ${count(unknown.length)} unknown let in; of a limit of ${LIMIT} a minute ${most} admitted, some of them by each process's share, ${lost} lost at the failover, ${Math.max(0, forgotten)} forgotten; normal after ${ms(normalMs)}`,
    ok:
      served.length === warm.length &&
      crossed === 0 &&
      letIn === 0 &&
      forgotten <= Math.max(0, lost) &&
      // Each by its share, while one of them has Redis back before the other.
      most <= LIMIT + LIMIT / GATEWAYS + Math.max(0, lost) &&
      refused > 0 &&
      normalMs <= allowedMs,
  };
}

function targetsOf({ gateways }: FaultsWorld, key: string, tag: string, id = 'warm_0'): readonly Target[] {
  return gateways.map(({ publicUrl }) => ({ url: `${publicUrl}/v2/calls/${id}`, key, tag }));
}

/** Keys are decided on by Redis again, and so are limits. */
async function isNormal(gateways: readonly GatewayProcess[], unused: string): Promise<boolean> {
  const found = await Promise.all(
    gateways.map(async (gateway) => {
      const statuses = await Promise.all([statusFor(gateway, unused), statusFor(gateway, NEVER_ISSUED)]);
      return statuses.join() === '200,401' && (await gateway.metric('evalgate_quota_exact')) === 1;
    }),
  );
  return found.every(Boolean);
}

async function statusFor({ publicUrl }: GatewayProcess, key: string): Promise<number> {
  const response = await fetch(`${publicUrl}/v2/calls/warm_0`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

async function onlyLog(servers: readonly string[]): Promise<string> {
  const names = await Promise.all(
    servers.map((url) => withClient(url, (client) => client.keys('evalgate:{quota-*}:*:log'))),
  );
  const [log, ...more] = new Set(names.flat());
  if (log === undefined || more.length > 0) throw new Error('There is not the one log that there should be.');
  return log;
}

/** As far as replicas were told of it. */
async function longestLog(servers: readonly string[], log: string): Promise<number> {
  const lengths = await Promise.all(
    servers.map((url) =>
      withClient(url, async (client) => {
        await client.call('READONLY').catch(() => undefined);
        return client.llen(log).catch(() => 0);
      }),
    ),
  );
  return Math.max(...lengths);
}

/** Of all minutes that begin with one of them. */
function mostInAMinute(admitted: readonly Sample[]): number {
  const times = admitted.map(({ atMs }) => atMs).toSorted((a, b) => a - b);
  return Math.max(
    0,
    ...times.map((fromMs) => times.filter((atMs) => atMs >= fromMs && atMs < fromMs + MINUTE_MS).length),
  );
}
