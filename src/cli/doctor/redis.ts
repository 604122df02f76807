/** Checks of Redis: latency, nodes, settings, rights and clock. */
import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { LOSS_ADVICE, lossText } from '../../keys/key.ts';
import { readKeyCount } from '../../keys/redis-directory.ts';
import type { RedisLink, RedisRole } from '../../redis/connection.ts';
import type { RedisServer } from '../../redis/open-connection.ts';
import { channelName, trialKeys } from '../../redis/names.ts';
import { runScript } from '../../redis/script.ts';
import { readRedisSettings, redisFaults, type RedisPurpose, type RedisSettings } from '../../redis/settings.ts';
import { TRIALS } from '../../redis/trial.ts';
import { systemTimers, withDeadline } from '../../time/timers.ts';
import { openAnsweringRedis, RedisAccessError, redisReason, RIGHTS_ADVICE, settingOf } from './redis-access.ts';
import {
  type Check,
  checkClock,
  type Checks,
  checksNamed,
  clockChecks,
  type ClockReading,
  readClock,
} from './check.ts';
import { checkBrokenTopology, checkTopology } from './redis-topology.ts';

const PINGS = 11;
/** Every request waits for Redis at least once. */
const SLOW_MS = 10;
const MESSAGE_WITHIN_MS = 2000;

/** Checks REDIS_URL, and REDIS_CACHE_URL if it is set. Never rejects. */
export async function checkRedis({ redis, cache: { redisBytes, encryptionKeys } }: Config): Promise<readonly Check[]> {
  const { url, cacheUrl, timeoutMs } = redis;
  if (url === null) {
    return [checksNamed('redis').skipped('not configured: keys, quotas and cache are in the memory of one process')];
  }
  const hasOwnCache = cacheUrl !== null && cacheUrl !== url;
  const [state, cache] = await Promise.all([
    examine('state', url, timeoutMs),
    hasOwnCache ? examine('cache', cacheUrl, timeoutMs) : null,
  ]);
  const isSame = cache?.runIds.some((id) => state.runIds.includes(id)) ?? false;
  const purpose = { use: cache === null || isSame ? 'both' : 'state', hasCacheBudget: redisBytes !== null } as const;
  const encryption = checkEncryption(encryptionKeys.length);
  if (!isSame) return [...state.checks(purpose), ...(cache?.checks({ use: 'cache' }) ?? []), encryption];
  const shared = redisChecks('cache').warn(
    'leads to the same Redis as REDIS_URL, with one memory and one maxmemory-policy for both',
    'Leave REDIS_CACHE_URL out, or set it to another Redis.',
  );
  return [...state.checks(purpose), shared, encryption];
}

/** That unencrypted records cross a network is a warning of the configuration. */
function checkEncryption(keys: number): Check {
  const { ok, skipped } = checksNamed('encryption');
  if (keys === 0) return skipped('CACHE_ENCRYPTION_KEYS is not set: cached records are in Redis as they are');
  const others = keys === 1 ? '' : `; ${keys} keys decrypt`;
  return ok(`cached records in Redis are encrypted (AES-256-GCM)${others}`);
}

function redisChecks(role: RedisRole): Checks {
  return checksNamed('redis', `${settingOf(role)}: `);
}

interface Examined {
  /** The ids of its servers: two addresses with a common one lead to the same Redis. */
  readonly runIds: readonly string[];
  readonly checks: (purpose: RedisPurpose) => readonly Check[];
}

async function examine(role: RedisRole, url: string, timeoutMs: number): Promise<Examined> {
  const { fail } = redisChecks(role);
  try {
    const link = await openAnsweringRedis(role, url);
    try {
      return await examineLink(link, url, timeoutMs);
    } finally {
      await link.close();
    }
  } catch (error) {
    const failure =
      error instanceof RedisAccessError
        ? fail(error.finding, error.advice)
        : fail(`Redis stopped answering (${redisReason(error)})`, 'Look in its log, and at the network between.');
    const checks = [failure, ...(await checkBrokenTopology(redisChecks(role), url))];
    return { runIds: [], checks: () => checks };
  }
}

/** One Redis, or a primary of a Cluster. */
interface Server {
  /** Host and port. */
  readonly name: string;
  readonly latencyMs: number;
  /** Null if it refuses INFO. */
  readonly settings: RedisSettings | null;
  /** Null if it refuses TIME. */
  readonly clock: ClockReading | null;
}

async function examineLink(link: RedisLink, url: string, timeoutMs: number): Promise<Examined> {
  const { role, kind } = link;
  const checks = redisChecks(role);
  const servers: Server[] = [];
  // One after the other, so that no ping waits for another server's.
  for (const server of link.servers()) {
    servers.push({
      name: server.name,
      latencyMs: await medianPingMs(server),
      settings: await readRedisSettings(server).catch(() => null),
      clock: await readServerClock(server).catch(() => null),
    });
  }
  const keys = role === 'state' ? await readKeyCount(link).catch(() => null) : null;
  const loss = keys?.noted ?? null;
  // Last, because a refused write may close the connection.
  const refusal = await tryOut(link).then(() => null, redisReason);
  const topology = await checkTopology(checks, url, { kind, servers });
  return {
    runIds: servers.flatMap(({ settings }) => settings?.runId ?? []),
    checks: (purpose) => [
      checkLatency(checks, servers, role === 'state' ? timeoutMs : Number.POSITIVE_INFINITY),
      ...topology,
      ...checkServers(servers, role, { ...purpose, kind }),
      checkRefusal(checks, refusal, settingOf(role)),
      ...(role === 'state' ? [checkClocks(servers)] : []),
      ...(keys === null || loss === null || loss.isAcknowledged
        ? []
        : [checksNamed('keys').fail(lossText(loss, keys.known), `To go on, ${LOSS_ADVICE}.`)]),
    ],
  };
}

async function medianPingMs({ client }: RedisServer): Promise<number> {
  const took: number[] = [];
  for (let ping = 0; ping < PINGS; ping += 1) {
    const sentAtMs = performance.now();
    // A Redis that cannot save refuses PING.
    await client.echo('evalgate');
    took.push(performance.now() - sentAtMs);
  }
  return took.toSorted((a, b) => a - b)[Math.floor(PINGS / 2)] ?? 0;
}

async function readServerClock({ client }: RedisServer): Promise<ClockReading> {
  const sentAtMs = Date.now();
  const [seconds = 0, micros = 0] = (await client.time()).map(Number);
  return readClock(seconds * 1000 + micros / 1000, sentAtMs, Date.now());
}

/** Rejects with Redis's refusal. */
async function tryOut(link: RedisLink): Promise<void> {
  const { subscriber } = link;
  const id = randomUUID();
  const channel = channelName('doctor', id);
  if (!subscriber.isUp()) {
    const up = Promise.withResolvers<void>();
    const end = subscriber.onUp(up.resolve);
    await inTime(up.promise, () => subscriber.downReason).finally(end);
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
    await Promise.all(keys.map((key) => runScript(link, TRIALS[link.role], { keys: [key], args: [channel] })));
    await inTime(received.promise, () => new Error('a message that was published did not arrive'));
  } finally {
    end();
  }
}

function inTime(promise: Promise<void>, problem: () => Error): Promise<void> {
  return withDeadline(promise, MESSAGE_WITHIN_MS, systemTimers, () => {
    throw problem();
  });
}

/** The latency is the slowest server's. From `timeoutMs` on each process enforces its own share of the limits. */
function checkLatency({ ok, warn, fail }: Checks, servers: readonly Server[], timeoutMs: number): Check {
  const latencyMs = Math.max(...servers.map((server) => server.latencyMs));
  const version = servers[0]?.settings?.version ?? null;
  const subject = version === null ? 'answers' : `version ${version} answers`;
  const message = `${subject} in ${latencyMs.toFixed(latencyMs < 10 ? 1 : 0)} ms (median of ${PINGS} pings)`;
  const nearer = 'Run it near the gateways (same network, same zone), and look at its load with redis-cli --latency.';
  if (latencyMs >= timeoutMs) return fail(`${message}; rate limits are not exact from ${timeoutMs} ms on`, nearer);
  return latencyMs > SLOW_MS ? warn(`${message}; every request waits for it`, nearer) : ok(message);
}

/** Findings that all servers share once, without a name; the others with the name of their server. */
function checkServers(servers: readonly Server[], role: RedisRole, purpose: RedisPurpose): readonly Check[] {
  const setting = settingOf(role);
  const found = servers.map(({ name, settings }) => ({ name, checks: checkSettings(settings, role, purpose) }));
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
  const checks = redisChecks(role);
  if (settings === null) {
    return [checks.skipped('it refuses INFO: version, eviction and persistence are unknown')];
  }
  const faults = redisFaults(settings, purpose);
  const { evictionPolicy, appendsToFile } = settings;
  const effect = role === 'state' ? 'drops nothing' : 'makes room when its memory is full';
  const memory =
    evictionPolicy === null
      ? checks.skipped('it does not report its maxmemory-policy')
      : checks.ok(`${effect} (maxmemory-policy ${evictionPolicy})`);
  const persistence =
    appendsToFile === true
      ? checks.ok('keeps its data over a restart (appendonly yes)')
      : checks.skipped('it refuses CONFIG GET: whether it keeps its data over a restart is unknown');
  const isSound = (about: string): boolean => faults.every((fault) => fault.about !== about);
  return [
    ...faults.map(({ severity, finding, remedy }) => checks[severity](finding, remedy)),
    ...(isSound('eviction') && isSound('memory') ? [memory] : []),
    ...(role === 'state' && isSound('persistence') ? [persistence] : []),
  ];
}

/** `refusal`: why a gateway could not work there, in Redis's words; null if it could. */
function checkRefusal({ ok, fail }: Checks, refusal: string | null, setting: string): Check {
  if (refusal === null) return ok('scripts, writes and messages work');
  const advice: Readonly<Record<string, string>> = {
    OOM: 'Its memory is full: raise maxmemory there.',
    READONLY: `Set ${setting} to its primary.`,
    MISCONF: 'It cannot save to its disk; its log says why.',
  };
  const code = refusal.replace(/ .*/s, '');
  return fail(`refuses a command that a gateway needs (${refusal})`, advice[code] ?? RIGHTS_ADVICE);
}

/** Quotas go by Redis's clock; key expiry and the ages of answers by the gateways'. The clock that is furthest off counts. */
function checkClocks(servers: readonly Server[]): Check {
  const clocks = servers.map(({ clock }) => clock).filter((clock) => clock !== null);
  const [reading] = clocks.toSorted((a, b) => Math.abs(b.offsetMs) - Math.abs(a.offsetMs));
  if (reading === undefined) return clockChecks.skipped('REDIS_URL: it refuses TIME');
  return checkClock(reading, 'warn', {
    toleranceMs: 1000,
    within: 'a second',
    decimals: 1,
    other: 'that of REDIS_URL',
    consequence: 'Rate limits go by the one, expiry of keys by the other.',
  });
}
