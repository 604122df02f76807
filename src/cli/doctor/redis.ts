/** Checks of Redis: latency, nodes, settings, rights and clock. */
import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import type { RedisLink, RedisRole, RedisServer } from '../../redis/connection.ts';
import { channelName, trialKeys } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import { readRedisSettings, redisFaults, type RedisPurpose, type RedisSettings } from '../../redis/settings.ts';
import { systemTimers, withDeadline } from '../../timers.ts';
import { openAnsweringRedis, RedisAccessError, redisReason, settingOf } from '../redis.ts';
import { type Check, checksNamed, CLOCK_ADVICE, clockDifference, type ClockReading, readClock } from './check.ts';
import { checkBrokenTopology, checkTopology } from './redis-topology.ts';

const clock = checksNamed('clock');

const PINGS = 11;
/** Every request waits for Redis at least once. */
const SLOW_MS = 10;
/** Redis deletes the name if this process ends between writing and deleting it. */
const TRIAL_TTL_MS = 5000;
const MESSAGE_WITHIN_MS = 2000;

const REDIS_RIGHTS = 'ACL SETUSER name ~evalgate:* &evalgate:* +@all -@dangerous +info';

/** Checks REDIS_URL, and REDIS_CACHE_URL if it is set. Never rejects. */
export async function checkRedis({ redis, cache: { redisBytes } }: Config): Promise<readonly Check[]> {
  const { url, cacheUrl, timeoutMs } = redis;
  if (url === null) {
    return [checksNamed('redis').skipped('not configured: keys, quotas and cache are in the memory of one process')];
  }
  const [state, cache] = await Promise.all([
    look('state', url),
    cacheUrl === null || cacheUrl === url ? null : look('cache', cacheUrl),
  ]);
  const isShared = cache === null || isSameServer(state, cache);
  const use = isShared ? 'both' : 'state';
  const checks = checksOf(state, { use, hasCacheBudget: redisBytes !== null }, timeoutMs);
  if (cache === null) return checks;
  if (!isShared) return [...checks, ...checksOf(cache, { use: 'cache' }, timeoutMs)];
  const same = redisChecks('cache').warn(
    'leads to the same Redis as REDIS_URL, with one memory and one maxmemory-policy for both',
    'Leave REDIS_CACHE_URL out, or set it to another Redis.',
  );
  return [...checks, same];
}

/** What was read of a Redis that can be used. */
interface Look {
  readonly role: RedisRole;
  readonly kind: RedisLink['kind'];
  /** The median of the pings; the slowest primary's in a Cluster. */
  readonly latencyMs: number;
  /** The one Redis, or each primary of a Cluster: host and port, and its settings if it permits INFO. */
  readonly servers: readonly { readonly name: string; readonly settings: RedisSettings | null }[];
  /** The clock that is furthest off; null if no server permits TIME. */
  readonly clock: ClockReading | null;
  /** Why a gateway could not work there, in Redis's words; null if it could. */
  readonly refusal: string | null;
  readonly topology: readonly Check[];
}

/** What was read, or the checks that say why it could not be. */
async function look(role: RedisRole, url: string): Promise<Look | readonly Check[]> {
  const checks = redisChecks(role);
  try {
    const link = await openAnsweringRedis(role, url);
    try {
      const { kind } = link;
      const servers = link.servers();
      // One after the other, so that no ping waits for another server's.
      const latenciesMs: number[] = [];
      for (const server of servers) latenciesMs.push(await medianPingMs(server));
      const settings = await Promise.all(servers.map((server) => readRedisSettings(server).catch(() => null)));
      const clocks = await Promise.all(servers.map((server) => readServerClock(server).catch(() => null)));
      const seen = servers.map(({ name }, index) => ({ name, settings: settings[index] ?? null }));
      // Last, because a refused write may close the connection.
      const refusal = await tryOut(link).then(() => null, redisReason);
      return {
        role,
        kind,
        latencyMs: Math.max(...latenciesMs),
        servers: seen,
        clock: furthestOff(clocks),
        refusal,
        topology: await checkTopology(checks, url, { kind, servers: seen }),
      };
    } finally {
      await link.close();
    }
  } catch (error) {
    const failure =
      error instanceof RedisAccessError
        ? checks.fail(error.finding, error.advice)
        : checks.fail(
            `Redis stopped answering (${redisReason(error)})`,
            'Look in its log, and at the network between.',
          );
    return [failure, ...(await checkBrokenTopology(checks, url))];
  }
}

async function medianPingMs({ client }: RedisServer): Promise<number> {
  const took: number[] = [];
  for (let ping = 0; ping < PINGS; ping += 1) {
    const sentAtMs = performance.now();
    await client.ping();
    took.push(performance.now() - sentAtMs);
  }
  return took.toSorted((a, b) => a - b)[Math.floor(PINGS / 2)] ?? 0;
}

async function readServerClock({ client }: RedisServer): Promise<ClockReading> {
  const sentAtMs = Date.now();
  const [seconds = 0, micros = 0] = (await client.time()).map(Number);
  return readClock(seconds * 1000 + micros / 1000, sentAtMs, Date.now());
}

function furthestOff(readings: readonly (ClockReading | null)[]): ClockReading | null {
  const known = readings.filter((reading) => reading !== null);
  return known.toSorted((a, b) => Math.abs(b.offsetMs) - Math.abs(a.offsetMs))[0] ?? null;
}

/** The commands of a gateway's scripts. KEYS: a name of our own. ARGV: a channel, and the longest life of the name. */
const TRIAL = defineScript(
  'tryOut',
  `
local time = redis.call('TIME')
redis.call('SET', KEYS[1], time[1], 'NX', 'PX', ARGV[2])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'field', time[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HGET', KEYS[1], 'field')
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], time[1])
redis.call('LTRIM', KEYS[1], -1, -1)
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[1], time[1], 'member')
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], 'trial')
return 1
`,
);

/** Rejects with Redis's refusal. */
async function tryOut(link: RedisLink): Promise<void> {
  const { subscriber } = link;
  const id = randomUUID();
  const channel = channelName('doctor', id);
  if (!subscriber.isUp()) {
    const up = Promise.withResolvers<void>();
    const end = subscriber.onUp(up.resolve);
    await withDeadline(up.promise, MESSAGE_WITHIN_MS, systemTimers, () => {
      throw new Error('the connection for messages does not come up');
    }).finally(end);
  }
  // In a Cluster once at each primary.
  const keys = link.kind === 'cluster' ? trialKeys(id) : trialKeys(id).slice(0, 1);
  let awaited = keys.length;
  const received = Promise.withResolvers<void>();
  const end = await subscriber.subscribe(channel, () => {
    awaited -= 1;
    if (awaited === 0) received.resolve();
  });
  try {
    await Promise.all(keys.map((key) => runScript(link, TRIAL, { keys: [key], args: [channel, TRIAL_TTL_MS] })));
    await withDeadline(received.promise, MESSAGE_WITHIN_MS, systemTimers, () => {
      throw new Error('a message that was published did not arrive');
    });
  } finally {
    end();
  }
}

/** Makes the checks of one Redis. */
function redisChecks(role: RedisRole) {
  return checksNamed('redis', `${settingOf(role)}: `);
}

function isSameServer(...looks: readonly (Look | readonly Check[])[]): boolean {
  const [ours = [], theirs = []] = looks.map((seen) =>
    'servers' in seen ? seen.servers.flatMap(({ settings }) => settings?.runId ?? []) : [],
  );
  return ours.some((runId) => theirs.includes(runId));
}

function checksOf(seen: Look | readonly Check[], purpose: RedisPurpose, timeoutMs: number): readonly Check[] {
  if (!('servers' in seen)) return seen;
  return [
    checkLatency(seen, timeoutMs),
    ...seen.topology,
    ...checkServers(seen, purpose),
    checkRefusal(seen),
    ...(seen.role === 'state' ? [checkClock(seen.clock)] : []),
  ];
}

/** From a latency of `timeoutMs` on each process enforces its own share of the limits. */
function checkLatency({ role, latencyMs, servers }: Look, timeoutMs: number): Check {
  const { ok, warn, fail } = redisChecks(role);
  const version = servers[0]?.settings?.version ?? null;
  const subject = version === null ? 'answers' : `version ${version} answers`;
  const message = `${subject} in ${latencyMs.toFixed(latencyMs < 10 ? 1 : 0)} ms (median of ${PINGS} pings)`;
  const nearer = 'Run it near the gateways (same network, same zone), and look at its load with redis-cli --latency.';
  if (role === 'state' && latencyMs >= timeoutMs) {
    return fail(`${message}; rate limits are not exact from ${timeoutMs} ms on`, nearer);
  }
  return latencyMs > SLOW_MS ? warn(`${message}; every request waits for it`, nearer) : ok(message);
}

/** Findings that all servers share once, without a name; the others with the name of their server. */
function checkServers({ servers, kind, role }: Look, purpose: RedisPurpose): readonly Check[] {
  const setting = settingOf(role);
  const found = servers.map(({ name, settings }) => ({
    name,
    checks: checkSettings(settings, role, { ...purpose, kind }),
  }));
  const isCommon = (check: Check): boolean =>
    found.every(({ checks }) => checks.some(({ message }) => message === check.message));
  const own = found.flatMap(({ name, checks }) =>
    checks
      .filter((check) => !isCommon(check))
      .map((check) => ({ ...check, message: check.message.replace(setting, `${setting} (${name})`) })),
  );
  return [...own, ...(found[0]?.checks.filter(isCommon) ?? [])];
}

/** The faults of its settings, and one check each for memory and persistence without a fault. */
function checkSettings(settings: RedisSettings | null, role: RedisRole, purpose: RedisPurpose): readonly Check[] {
  const { ok, warn, fail, skipped } = redisChecks(role);
  if (settings === null) {
    return [skipped("it refuses INFO: version, eviction and persistence can't be told")];
  }
  const faults = redisFaults(settings, purpose);
  const found = faults.map(({ severity, finding, remedy }) => (severity === 'fail' ? fail : warn)(finding, remedy));
  const { evictionPolicy, appendsToFile } = settings;
  if (!faults.some(({ about }) => about === 'memory')) {
    const effect = role === 'state' ? 'drops nothing' : 'makes room when its memory is full';
    found.push(
      evictionPolicy === null
        ? skipped('it does not tell its maxmemory-policy')
        : ok(`${effect} (maxmemory-policy ${evictionPolicy})`),
    );
  }
  if (role === 'state' && !faults.some(({ about }) => about === 'persistence')) {
    found.push(
      appendsToFile === true
        ? ok('keeps what it has over a restart (appendonly yes)')
        : skipped("it refuses CONFIG GET: whether it keeps what it has over a restart can't be told"),
    );
  }
  return found;
}

/** Whether a gateway could work there. */
function checkRefusal({ refusal, role }: Look): Check {
  const { ok, fail } = redisChecks(role);
  if (refusal === null) return ok('scripts, writes and messages work');
  const advice = refusalAdvice(refusal, settingOf(role));
  return fail(`what a gateway does there is refused (${refusal})`, advice);
}

/** Depends on the code of the reply. Scripts report a missing right as ERR. */
function refusalAdvice(refusal: string, setting: string): string {
  switch (refusal.replace(/ .*/s, '')) {
    case 'OOM':
      return 'Its memory is full: raise maxmemory there.';
    case 'READONLY':
      return `Set ${setting} to its primary.`;
    case 'MISCONF':
      return 'It cannot save to its disk; its log says why.';
    case 'NOPERM':
    case 'ACL':
    case 'ERR':
      return `Give its user these rights: ${REDIS_RIGHTS}`;
    default:
      return 'Its log, and `redis-cli ACL LOG`, may say more.';
  }
}

/** Quotas go by Redis's clock; key expiry and the ages of answers by the gateways'. */
function checkClock(reading: ClockReading | null): Check {
  if (reading === null) return clock.skipped('REDIS_URL: it refuses TIME');
  const difference = clockDifference(reading, { toleranceMs: 1000, decimals: 1, other: 'that of REDIS_URL' });
  if (difference === null) return clock.ok('agrees with that of REDIS_URL to within a second');
  return clock.warn(difference, `${CLOCK_ADVICE} Rate limits go by the one, expiry of keys by the other.`);
}
