/** How Redis is doing and what follows from it for limits and keys: for `/readyz`, the metrics and the log. */
import type { BudgetExcess } from '../cache/redis/budget.ts';
import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import { NotSentError, type RedisLink, type RedisRole, replyCode } from '../redis/connection.ts';
import type { Connectivity } from '../redis/connectivity.ts';
import type { Timers } from '../timers.ts';
import type { DependencyState, Health } from './health.ts';
import { readMemory, type RedisMemory } from './redis-memory.ts';

/** As long as the cache takes to report that its subscription is lost. */
const SUBSCRIPTION_LOST_AFTER_MS = 1000;

export interface RedisHealthOptions {
  readonly health: Health;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Whether one Redis has both roles: its troubles are then logged as one. */
  readonly isOne: boolean;
  /** The other workers of this gateway, if there are any. */
  readonly siblings: Siblings | null;
}

/** One worker's first answer from Redis counts for all of them: one that is started later, in an outage, is ready too. */
export interface Siblings {
  hasRedisAnswered(): boolean;
  /** Tells them. */
  redisAnswered(): void;
}

export interface TrackedRedis {
  readonly links: readonly RedisLink[];
  /** How many processes share the limits. */
  readonly processes: () => number;
  /** How long a key that Redis has confirmed stays good without it. */
  readonly graceMs: number;
  /** Whether there are demo keys, which are in memory and let in whatever Redis does. */
  readonly hasDemoKeys: boolean;
}

export class RedisHealth {
  readonly #options: RedisHealthOptions;
  /** Why the last look for missed changes failed. */
  readonly #lookFailures = new Map<RedisRole, unknown>();
  readonly #connectivity: Record<RedisRole, Connectivity> = { state: 'disconnected', cache: 'disconnected' };
  #hasAnswered = false;
  /** Why the last request was decided without Redis; null if Redis decided. While Redis is absent none will be. */
  #quotaFailure: { readonly reason: unknown } | null = null;
  /** Why Redis refused the last heartbeat: an idle process finds out by it that Redis takes no changes. */
  #beatRefusal: Error | null = null;
  /** Null before the keys were looked for. */
  #keySync: Connectivity | null = null;
  /** Whether keys could ever be looked up: before, Redis has confirmed none. */
  #hasLookedUpKeys = false;
  #keysDisconnectedAtMs = 0;
  /** Why no new answers are stored in the cache Redis; null if they are. */
  #excess: BudgetExcess | null = null;
  #cancelSubscriptionLost = (): void => {};
  #links: readonly RedisLink[] = [];
  /** Under way: the gauges of one scrape share it. */
  #memory: Promise<readonly RedisMemory[]> | null = null;

  constructor(options: RedisHealthOptions) {
    this.#options = options;
  }

  /** Whether the state Redis has answered since the start, or a sibling. Until then no key and no limit is known. */
  get hasAnswered(): boolean {
    return this.#hasAnswered || this.#options.siblings?.hasRedisAnswered() === true;
  }

  get isQuotaExact(): boolean {
    return this.#quotaFailure === null && this.#connectivity.state !== 'disconnected' && this.#refusal === null;
  }

  /** Whether no new answers are stored in the cache Redis. */
  get isCacheOverBudget(): boolean {
    return this.#excess !== null;
  }

  /** `reason`: why Redis could not be asked, if it is disconnected. */
  readonly onConnectivity = (role: RedisRole, connectivity: Connectivity, reason: unknown): void => {
    this.#connectivity[role] = connectivity;
    this.#lookFailures.set(role, reason);
    if (role === 'state' && connectivity !== 'disconnected' && !this.#hasAnswered) {
      this.#hasAnswered = true;
      this.#options.siblings?.redisAnswered();
    }
    this.#options.health.update();
  };

  readonly onBudget = (excess: BudgetExcess | null): void => {
    this.#excess = excess;
    this.#options.health.update('redis-cache');
  };

  readonly quotaHooks = {
    onDegraded: (reason: unknown): void => this.#setQuota({ reason }),
    onExact: (): void => this.#setQuota(null),
  };

  readonly onBeat = (refusal: Error | null): void => {
    if ((refusal === null) === (this.#beatRefusal === null)) return;
    this.#beatRefusal = refusal;
    this.#options.health.update();
  };

  /** The subscription is lost for a moment between any two of the others, which is no trouble of its own. */
  readonly onKeySync = (state: Connectivity): void => {
    this.#cancelSubscriptionLost();
    if (state !== 'disconnected') this.#hasLookedUpKeys = true;
    if (state !== 'subscriptionLost') this.#setKeySync(state);
    else if (this.#keySync !== state) {
      const { timers } = this.#options;
      this.#cancelSubscriptionLost = timers.after(SUBSCRIPTION_LOST_AFTER_MS, () => this.#setKeySync(state));
    }
  };

  /** Called when all of it has been opened: until then silence is no trouble. */
  track(redis: TrackedRedis): void {
    const { health, isOne } = this.#options;
    this.#links = redis.links;
    for (const role of ['state', 'cache'] as const) {
      const about = {
        name: `redis-${role}`,
        okMessage: 'Redis answers again',
        ...(isOne ? { loggedAs: 'redis' } : {}),
      };
      health.add({ ...about, check: () => this.#checkRedis(role) });
    }
    health.add({
      name: 'quota',
      okMessage: 'quotas: exact over all processes again',
      check: () => this.#checkQuota(redis.processes()),
    });
    health.add({
      name: 'keys',
      okMessage: 'keys: every change is heard of again',
      check: () => this.#checkKeys(redis),
    });
  }

  /** As known without asking. */
  links(): readonly { readonly role: RedisRole; readonly isUp: boolean; readonly connectivity: Connectivity }[] {
    return this.#links.map((link) => ({
      role: link.role,
      isUp: link.isUp(),
      connectivity: this.#connectivity[link.role],
    }));
  }

  /** Asks Redis, within the time of a command; nothing of one that is down or does not answer. Never rejects. */
  memory(): Promise<readonly RedisMemory[]> {
    this.#memory ??= readMemory(this.#links).finally(() => {
      this.#memory = null;
    });
    return this.#memory;
  }

  /** Whether one server has both roles, by one address or by two; null while that is not known. */
  async isShared(): Promise<boolean | null> {
    if (this.#options.isOne) return true;
    const [state, cache] = await this.memory();
    if (state === undefined || cache === undefined) return null;
    return state.runIds.some((id) => id !== null && cache.runIds.includes(id));
  }

  #setKeySync(state: Connectivity): void {
    const isNew = this.#keySync !== state;
    if (isNew && state === 'disconnected') this.#keysDisconnectedAtMs = this.#options.clock.nowMs();
    this.#keySync = state;
    this.#options.health.update('keys');
  }

  #setQuota(failure: { readonly reason: unknown } | null): void {
    this.#quotaFailure = failure;
    this.#options.health.update();
  }

  /** Why Redis does not answer: of a connection that is down, its last error, which changes while it is down. */
  #reasonOf(role: RedisRole): unknown {
    const link = this.#links.find((one) => one.role === role);
    return (link?.isUp() === false ? link.downReason : null) ?? this.#lookFailures.get(role);
  }

  /**
   * Redis answers, and refuses to decide on limits or takes no heartbeats; null if it does not. A connection that was
   * given up for its refusal, to look for another server, is no other trouble than the refusal.
   */
  get #refusal(): Refusal | null {
    const isAway = this.#connectivity.state === 'disconnected' && refusalCode(this.#refusalReason) !== 'READONLY';
    return isAway ? null : refusalOf(this.#refusalReason, 'REDIS_URL');
  }

  get #refusalReason(): unknown {
    const reason = this.#quotaFailure?.reason;
    return refusalOf(reason, 'REDIS_URL') === null ? this.#beatRefusal : reason;
  }

  #checkRedis(role: RedisRole): DependencyState {
    const connectivity = this.#connectivity[role];
    if (connectivity === 'disconnected') return this.#checkDisconnected(role);
    if (connectivity === 'subscriptionLost') {
      const detail = 'answers, but its messages do not arrive: nothing is served from memory';
      return { status: 'degraded', message: `Redis ${detail}`, detail };
    }
    const refusal = this.#refusal;
    if (refusal !== null && (role === 'state' || this.#options.isOne)) {
      const consequence =
        role === 'state' ? 'limits are per process; changes fail' : 'new answers are kept in memory only';
      const detail = `Redis ${refusal.finding}; ${consequence}`;
      const fields = { err: this.#refusalReason };
      return { status: 'degraded', message: refusal.message, ...refusal.whenOver, detail, fields };
    }
    // A limit that somebody set and that holds is no trouble of Redis.
    const budget = role === 'cache' && this.#excess !== null ? `; ${describeExcess(this.#excess)}` : '';
    return { status: 'ok', detail: `answers, and its messages arrive${budget}` };
  }

  #checkDisconnected(role: RedisRole): DependencyState {
    const reason = this.#reasonOf(role);
    const refusal = refusalOf(reason, role === 'state' || this.#options.isOne ? 'REDIS_URL' : 'REDIS_CACHE_URL');
    const isWaitedFor = role === 'state' && !this.hasAnswered;
    const silence = isWaitedFor ? 'has not answered since this process started' : 'does not answer';
    const code = codeOf(reason);
    const finding = refusal?.finding ?? (code === null ? silence : `${silence} (${code})`);
    const consequence = isWaitedFor ? 'not ready until it has answered once' : 'this process goes on by itself';
    return {
      status: 'degraded',
      message: refusal?.message ?? 'Redis does not answer',
      ...refusal?.whenOver,
      detail: `${finding}: ${consequence}`,
      fields: { err: reason },
    };
  }

  #checkQuota(processes: number): DependencyState {
    if (this.isQuotaExact) return { status: 'ok', detail: 'exact over all processes' };
    const share = processes === 1 ? 'as the only process' : `with its share, one of ${processes}`;
    return {
      status: 'degraded',
      message: 'quotas: this process goes on with its share of the limits',
      detail: `Redis does not decide: this process goes on ${share}`,
      fields: { err: this.#quotaFailure?.reason ?? this.#refusalReason ?? this.#reasonOf('state') },
    };
  }

  #checkKeys(redis: TrackedRedis): DependencyState {
    if (this.#keySync === null) return { status: 'unknown', detail: 'not heard of yet' };
    if (this.#keySync === 'disconnected') return this.#checkDisconnectedKeys(redis);
    if (this.#keySync === 'subscriptionLost') {
      const message = 'keys: changes may be missed; each key is confirmed before it is used';
      const detail = 'changes may be missed: each key is confirmed at Redis before it is used';
      return { status: 'degraded', message, detail };
    }
    const refusal = this.#refusal;
    if (refusal === null) return { status: 'ok', detail: 'every change is heard of' };
    const [message, consequence] = refusal.isFull
      ? [
          'keys: Redis is full; they can be revoked, and not be issued or changed',
          'keys stay good and can be revoked; none can be issued or changed',
        ]
      : [
          'keys: Redis refuses changes; none can be issued, changed or revoked',
          'keys that are known stay good; none can be issued, changed or revoked',
        ];
    const overMessage = 'keys: they can be issued, changed and revoked again';
    return { status: 'degraded', message, overMessage, detail: `Redis ${refusal.finding}; ${consequence}` };
  }

  #checkDisconnectedKeys({ graceMs, hasDemoKeys }: TrackedRedis): DependencyState {
    const allowed = hasDemoKeys ? 'only the demo keys are let in' : 'no key is let in';
    const untilMs = this.#keysDisconnectedAtMs + graceMs;
    if (!this.#hasLookedUpKeys) {
      const message = `keys: Redis could not be asked since the start; ${allowed} until it answers`;
      const detail = `Redis could not be asked since this process started: ${allowed} until it answers`;
      return { status: 'degraded', message, detail };
    }
    const grace = formatDuration(graceMs);
    if (this.#options.clock.nowMs() > untilMs) {
      const message = `keys: Redis could not be asked for too long; ${allowed} until it answers`;
      return { status: 'degraded', message, detail: `Redis could not be asked for ${grace}: ${allowed}` };
    }
    const others = hasDemoKeys ? 'besides them, only the demo keys are let in' : 'no other key is let in';
    return {
      status: 'degraded',
      message: `keys: Redis cannot be asked; only keys that it confirmed lately ${hasDemoKeys ? 'and the demo keys ' : ''}are let in`,
      detail: `Redis cannot be asked: keys that it confirmed within ${grace} stay good, the last of them until ${new Date(untilMs).toISOString()}; ${others}`,
    };
  }
}

interface Refusal {
  readonly isFull: boolean;
  readonly finding: string;
  /** The line of the log. */
  readonly message: string;
  /** For a Redis that refuses changes and answers everything else. */
  readonly whenOver?: { readonly overMessage: string };
}

/** If Redis answered, and refused what it was asked for; null for any other error. `setting`: that of its address. */
function refusalOf(error: unknown, setting: string): Refusal | null {
  const code = refusalCode(error);
  const refused = 'Redis refuses the user, the password or the commands of this gateway';
  const readOnly = 'Redis refuses changes: limits are per process';
  const full = 'Redis is full (maxmemory): limits are per process, and changes fail';
  const isFull = code === 'OOM';
  const whenOver = { overMessage: 'Redis takes changes again' };
  if (isFull) return { isFull, finding: 'is full (maxmemory)', message: full, whenOver };
  if (code === 'MISCONF') return { isFull, finding: `cannot write to its disk (${code})`, message: readOnly, whenOver };
  if (code === 'READONLY') return { isFull, finding: `is a read-only replica (${code})`, message: readOnly, whenOver };
  if (code === 'NOPERM')
    return { isFull, finding: `refuses commands to the user of ${setting} (${code})`, message: refused };
  const isCredentials = code === 'NOAUTH' || code === 'WRONGPASS';
  return isCredentials
    ? { isFull, finding: `refuses the user or the password of ${setting} (${code})`, message: refused }
    : null;
}

/** The code of a reply, also if it is why a later command was not sent. */
function refusalCode(error: unknown): string | null {
  return replyCode(error instanceof NotSentError ? error.cause : error);
}

/** The code of a reply or of a system's error. Never its text, which names the address. */
function codeOf(error: unknown): string | null {
  const reply = replyCode(error);
  if (reply !== null) return reply;
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

function describeExcess({ limit, usedBytes, maxBytes }: BudgetExcess): string {
  const [used, most] = [usedBytes, maxBytes].map((bytes) => `${(bytes / 1_000_000).toFixed(1)} MB`);
  const reason =
    limit === 'budget'
      ? `the cache has some ${used} of ${most} (cache.redis)`
      : `${used} are in use, and above ${most} the memory (maxmemory) is for keys and limits`;
  return `new answers are kept in memory only: ${reason}`;
}
