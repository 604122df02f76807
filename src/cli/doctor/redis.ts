/** Looks at Redis: whether it answers, soon and to us, drops and loses nothing, and agrees on the time. */
import type { Config } from '../../config/config.ts';
import { type RedisFault, redisFaults, type RedisPurpose, type RedisSettings } from '../../redis/settings.ts';
import type { RedisRole } from '../../redis/connection.ts';
import { openAnsweringRedis, RedisAccessError, redisReason, settingOf } from '../redis.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import { type ClockReading, lookAtRedis, PINGS, type RedisLook } from './redis-look.ts';
import { checkBrokenTopology, checkTopology } from './redis-topology.ts';

/** Every request waits for Redis once at least. */
const SLOW_MS = 10;
const CLOCK_TOLERANCE_MS = 1000;

export const REDIS_RIGHTS = 'ACL SETUSER name ~evalgate:* &evalgate:* +@all -@dangerous +info';

/** Of both, where there are two. */
export async function checkRedis({ redis, cache: { redisBytes } }: Config): Promise<readonly Check[]> {
  const { url, cacheUrl, timeoutMs } = redis;
  const hasCacheBudget = redisBytes !== null;
  if (url === null) {
    return [skipped('redis', 'not configured: keys, quotas and cache are in the memory of one process')];
  }
  const [state, cache] = await Promise.all([
    visit('state', url),
    cacheUrl === null || cacheUrl === url ? null : visit('cache', cacheUrl),
  ]);
  const isShared = cache === null || isSameServer(state, cache);
  const checks = [...checksOf(state, { use: isShared ? 'both' : 'state', hasCacheBudget }, timeoutMs)];
  if (cache === null) return checks;
  return [...checks, ...(isShared ? [sameServer()] : checksOf(cache, { use: 'cache' }, timeoutMs))];
}

/** What was found there, or why nothing could be. */
interface Visit {
  readonly role: RedisRole;
  readonly look: RedisLook | null;
  readonly failure: Check | null;
  /** Of what it consists, where it is of several parts. */
  readonly topology: readonly Check[];
}

async function visit(role: RedisRole, url: string): Promise<Visit> {
  try {
    const link = await openAnsweringRedis({ role, url });
    try {
      const look = await lookAtRedis(link);
      return { role, look, failure: null, topology: await checkTopology(settingOf(role), url, look) };
    } finally {
      await link.close();
    }
  } catch (error) {
    const setting = settingOf(role);
    return { role, look: null, failure: failureOf(error, setting), topology: await checkBrokenTopology(setting, url) };
  }
}

function failureOf(error: unknown, setting: string): Check {
  if (error instanceof RedisAccessError) return fail('redis', `${setting}: ${error.finding}`, error.advice);
  const finding = `Redis stopped answering (${redisReason(error)})`;
  return fail('redis', `${setting}: ${finding}`, 'Look in its log, and at the network between.');
}

function isSameServer(one: Visit, other: Visit): boolean {
  const runIds = runIdsOf(one);
  return runIdsOf(other).some((runId) => runIds.includes(runId));
}

function runIdsOf({ look }: Visit): readonly string[] {
  return look?.servers.map(({ settings }) => settings?.runId ?? null).filter((runId) => runId !== null) ?? [];
}

function sameServer(): Check {
  return warn(
    'redis',
    'REDIS_CACHE_URL: leads to the same Redis as REDIS_URL, with one memory and one maxmemory-policy for both',
    'Leave REDIS_CACHE_URL out, or set it to another Redis.',
  );
}

function checksOf(
  { role, look, failure, topology }: Visit,
  purpose: RedisPurpose,
  timeoutMs: number,
): readonly Check[] {
  if (look === null) return failure === null ? [] : [failure, ...topology];
  const setting = settingOf(role);
  const checks = [
    checkLatency(look, role, timeoutMs),
    ...topology,
    ...checkServers(look, role, purpose),
    checkRefusal(look.refusal, setting),
  ];
  return role === 'state' ? [...checks, checkRedisClock(look.clock)] : checks;
}

/** What is true of all servers once, without their names; the rest with the name of its server. */
function checkServers({ servers, kind }: RedisLook, role: RedisRole, purpose: RedisPurpose): readonly Check[] {
  const setting = settingOf(role);
  const found = servers.map(({ name, settings }) => ({
    name,
    checks: checkSettings(settings, role, { ...purpose, kind }),
  }));
  const isCommon = (check: Check): boolean =>
    found.every(({ checks }) => checks.some(({ message }) => message === check.message));
  const common = found[0]?.checks.filter(isCommon) ?? [];
  const own = found.flatMap(({ name, checks }) =>
    checks
      .filter((check) => !isCommon(check))
      .map((check) => ({ ...check, message: check.message.replace(setting, `${setting} (${name})`) })),
  );
  return [...own, ...common];
}

/** How long it takes to answer; `servers` for its version. From `timeoutMs` on each process goes on with its share of the limits. */
export function checkLatency(
  { latencyMs, servers }: Pick<RedisLook, 'latencyMs' | 'servers'>,
  role: RedisRole,
  timeoutMs: number,
): Check {
  const version = servers[0]?.settings?.version ?? null;
  const what = version === null ? 'answers' : `version ${version} answers`;
  const took = latencyMs < 10 ? latencyMs.toFixed(1) : latencyMs.toFixed(0);
  const message = `${settingOf(role)}: ${what} in ${took} ms (median of ${PINGS} pings)`;
  const nearer = 'Run it near the gateways (same network, same zone), and look at its load with redis-cli --latency.';
  if (role === 'state' && latencyMs >= timeoutMs) {
    return fail('redis', `${message}; rate limits are not exact from ${timeoutMs} ms on`, nearer);
  }
  return latencyMs > SLOW_MS ? warn('redis', `${message}; every request waits for it`, nearer) : ok('redis', message);
}

/** What is wrong with its settings, and a line for each of memory and persistence where that is well. */
export function checkSettings(
  settings: RedisSettings | null,
  role: RedisRole,
  purpose: RedisPurpose,
): readonly Check[] {
  const setting = settingOf(role);
  if (settings === null) {
    const message = `${setting}: it refuses INFO: version, eviction and persistence can't be told`;
    return [skipped('redis', message)];
  }
  const faults = redisFaults(settings, purpose);
  const isFaulty = (about: RedisFault['about']): boolean => faults.some((fault) => fault.about === about);
  const found = faults.map(({ severity, finding, remedy }) => {
    const message = `${setting}: ${finding}`;
    return severity === 'fail' ? fail('redis', message, remedy) : warn('redis', message, remedy);
  });
  if (!isFaulty('memory')) found.push(goodMemory(settings, setting, role));
  if (role === 'state' && !isFaulty('persistence')) found.push(goodPersistence(settings, setting));
  return found;
}

function goodMemory({ evictionPolicy }: RedisSettings, setting: string, role: RedisRole): Check {
  if (evictionPolicy === null) return skipped('redis', `${setting}: it does not tell its maxmemory-policy`);
  const what = role === 'state' ? 'drops nothing' : 'makes room when its memory is full';
  return ok('redis', `${setting}: ${what} (maxmemory-policy ${evictionPolicy})`);
}

function goodPersistence({ appendsToFile }: RedisSettings, setting: string): Check {
  if (appendsToFile === true) return ok('redis', `${setting}: keeps what it has over a restart (appendonly yes)`);
  return skipped(
    'redis',
    `${setting}: it refuses CONFIG GET: whether it keeps what it has over a restart can't be told`,
  );
}

/** Whether a gateway could work there. `refusal` is Redis's own word. */
export function checkRefusal(refusal: string | null, setting: string): Check {
  if (refusal === null) return ok('redis', `${setting}: scripts, writes and messages work`);
  return fail(
    'redis',
    `${setting}: what a gateway does there is refused (${refusal})`,
    refusalAdvice(refusal, setting),
  );
}

/** By the code of the reply. Scripts report a missing right as ERR. */
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

/** Quotas go by Redis's clock; expiry of keys and ages of answers by the gateways'. */
export function checkRedisClock(reading: ClockReading | null): Check {
  if (reading === null) return skipped('clock', 'REDIS_URL: it refuses TIME');
  const { theirsMs, sentAtMs, answeredAtMs } = reading;
  const offMs = (sentAtMs + answeredAtMs) / 2 - theirsMs;
  const uncertainMs = (answeredAtMs - sentAtMs) / 2;
  if (Math.abs(offMs) <= CLOCK_TOLERANCE_MS + uncertainMs) {
    return ok('clock', 'agrees with that of REDIS_URL to within a second');
  }
  const seconds = (Math.abs(offMs) / 1000).toFixed(1);
  return warn(
    'clock',
    `this machine's clock is ${seconds} s ${offMs > 0 ? 'ahead of' : 'behind'} that of REDIS_URL`,
    'Synchronise both with NTP (timedatectl, chronyc tracking). Rate limits go by the one, expiry of keys by the other.',
  );
}
