/** Checks of Redis: latency, rights, eviction, persistence and clock. */
import type { Config } from '../../config/config.ts';
import { type RedisFault, redisFaults, type RedisPurpose, type RedisSettings } from '../../redis/settings.ts';
import type { RedisRole } from '../../redis/connection.ts';
import { openAnsweringRedis, RedisAccessError, redisReason, settingOf } from '../redis.ts';
import { type Check, CLOCK_ADVICE, clockDifference, type ClockReading, fail, ok, skipped, warn } from './check.ts';
import { lookAtRedis, PINGS, type RedisLook } from './redis-look.ts';
import { checkBrokenTopology, checkTopology } from './redis-topology.ts';

/** Every request waits for Redis at least once. */
const SLOW_MS = 10;

const REDIS_RIGHTS = 'ACL SETUSER name ~evalgate:* &evalgate:* +@all -@dangerous +info';

/** Checks REDIS_URL, and REDIS_CACHE_URL if it is set. Never rejects. */
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
  if (!isShared) return [...checks, ...checksOf(cache, { use: 'cache' }, timeoutMs)];
  const same = warn(
    'redis',
    'REDIS_CACHE_URL: leads to the same Redis as REDIS_URL, with one memory and one maxmemory-policy for both',
    'Leave REDIS_CACHE_URL out, or set it to another Redis.',
  );
  return [...checks, same];
}

/** One Redis: what the doctor read of it, or why it could not. */
interface Visit {
  readonly role: RedisRole;
  readonly look: RedisLook | null;
  readonly failure: Check | null;
  readonly topology: readonly Check[];
}

async function visit(role: RedisRole, url: string): Promise<Visit> {
  const setting = settingOf(role);
  try {
    const link = await openAnsweringRedis(role, url);
    try {
      const look = await lookAtRedis(link);
      return { role, look, failure: null, topology: await checkTopology(setting, url, look) };
    } finally {
      await link.close();
    }
  } catch (error) {
    const failure =
      error instanceof RedisAccessError
        ? fail('redis', `${setting}: ${error.finding}`, error.advice)
        : fail(
            'redis',
            `${setting}: Redis stopped answering (${redisReason(error)})`,
            'Look in its log, and at the network between.',
          );
    return { role, look: null, failure, topology: await checkBrokenTopology(setting, url) };
  }
}

function isSameServer(one: Visit, other: Visit): boolean {
  const runIds = ({ look }: Visit): readonly string[] =>
    look?.servers.map(({ settings }) => settings?.runId ?? null).filter((runId) => runId !== null) ?? [];
  return runIds(other).some((runId) => runIds(one).includes(runId));
}

function checksOf(
  { role, look, failure, topology }: Visit,
  purpose: RedisPurpose,
  timeoutMs: number,
): readonly Check[] {
  if (look === null) return failure === null ? [] : [failure, ...topology];
  return [
    checkLatency(look, role, timeoutMs),
    ...topology,
    ...checkServers(look, role, purpose),
    checkRefusal(look.refusal, settingOf(role)),
    ...(role === 'state' ? [checkClock(look.clock)] : []),
  ];
}

/** Findings that all servers share once, without a name; the others with the name of their server. */
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

/** From a latency of `timeoutMs` on each process enforces its own share of the limits. */
function checkLatency(
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

/** The faults of its settings, and one check each for memory and persistence without a fault. */
function checkSettings(settings: RedisSettings | null, role: RedisRole, purpose: RedisPurpose): readonly Check[] {
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

/** Whether a gateway could work there. `refusal` is Redis's error reply. */
function checkRefusal(refusal: string | null, setting: string): Check {
  if (refusal === null) return ok('redis', `${setting}: scripts, writes and messages work`);
  return fail(
    'redis',
    `${setting}: what a gateway does there is refused (${refusal})`,
    refusalAdvice(refusal, setting),
  );
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
  if (reading === null) return skipped('clock', 'REDIS_URL: it refuses TIME');
  const difference = clockDifference(reading, { toleranceMs: 1000, decimals: 1, other: 'that of REDIS_URL' });
  if (difference === null) return ok('clock', 'agrees with that of REDIS_URL to within a second');
  return warn('clock', difference, `${CLOCK_ADVICE} Rate limits go by the one, expiry of keys by the other.`);
}
