/** How Redis is doing and what follows from it for limits and keys: for `/readyz`, the metrics and the log. */
import type { BudgetExcess } from '../cache/redis/budget.ts';
import type { Clock } from '../time/clock.ts';
import { LOSS_ADVICE, lossText } from '../keys/key.ts';
import type { KeyDirectory } from '../keys/registry.ts';
import { clockText, formatDuration } from '../time/duration.ts';
import type { Logger } from '../log/logger.ts';
import type { UndecidableLogError } from '../quota/redis-limiter.ts';
import type { RedisLink, RedisRole } from '../redis/connection.ts';
import { replyCode } from '../redis/errors.ts';
import type { Connectivity } from '../redis/connectivity.ts';
import { readRedisMemory, type RedisMemory } from '../redis/memory.ts';
import { type Refusal, refusalOf } from '../redis/refusal.ts';
import { degraded, type DependencyState, type Health } from './health.ts';
import { systemCode } from '../log/error.ts';

/** So many logs of quotas are named in `/readyz`. */
const NAMED_LOGS = 3;
/** Lines of the log. */
const REFUSED: Readonly<Record<Refusal['kind'], string>> = {
  full: 'Redis is full (maxmemory): limits are per process, and changes fail',
  'read-only': 'Redis refuses changes: limits are per process',
  forbidden: 'Redis refuses the user, the password, the database or the commands of this gateway',
  away: 'Redis answers, and does not serve',
};

export interface RedisHealthOptions {
  readonly health: Health;
  readonly logger: Logger;
  readonly clock: Clock;
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
  /** What each worker, this one included, has counted for operators. Rejects if the first process does not answer in time. */
  counts(): Promise<readonly unknown[]>;
}

export interface TrackedRedis {
  readonly links: readonly RedisLink[];
  readonly processes: () => number;
  /** How far this process's clock is ahead of Redis's; 0 if they agree. Milliseconds. */
  readonly clockAheadMs: () => number;
  /** How long a key that Redis has confirmed stays good without it. */
  readonly graceMs: number;
  /** Knows whether all keys were lost. */
  readonly registry: Pick<KeyDirectory, 'census'>;
  /** How cached records are protected there. */
  readonly protection: () => string;
  /** Whether there are demo keys, which are in memory and let in whatever Redis does. */
  readonly hasDemoKeys: boolean;
}

export class RedisHealth {
  readonly #options: RedisHealthOptions;
  readonly #connectivity: Record<RedisRole, Connectivity> = { state: 'disconnected', cache: 'disconnected' };
  /** Why the last look for missed changes failed. */
  readonly #lookFailures = new Map<RedisRole, unknown>();
  readonly #answered = Promise.withResolvers<void>();
  #hasAnswered = false;
  /** Why the last request was decided without Redis; null if Redis decided. While Redis is absent none will be. */
  #quotaFailure: { readonly reason: unknown } | null = null;
  /** The quotas that Redis cannot decide on, with their logs' names there. */
  readonly #undecidedQuotas = new Map<string, string>();
  /** Why Redis refused the last heartbeat: an idle process finds out by it that Redis takes no changes. */
  #beatRefusal: unknown = null;
  /** Whether the state Redis had answered before it became unreachable: if not, it has confirmed no key. */
  #hadAnswered = false;
  #disconnectedAtMs = 0;
  /** Why no new answers are stored in the cache Redis; null if they are. */
  #excess: BudgetExcess | null = null;
  #links: readonly RedisLink[] = [];
  /** Under way: the gauges of one scrape share it. */
  #memory: Promise<readonly RedisMemory[]> | null = null;

  constructor(options: RedisHealthOptions) {
    this.#options = options;
  }

  /** Resolves when the state Redis answers this process for the first time. */
  get answered(): Promise<void> {
    return this.#answered.promise;
  }

  /** Whether the state Redis has answered since the start, or a sibling. Until then no key and no limit is known. */
  get hasAnswered(): boolean {
    return this.#hasAnswered || this.#options.siblings?.hasRedisAnswered() === true;
  }

  get isQuotaExact(): boolean {
    return this.#isQuotaShared && this.#undecidedQuotas.size === 0;
  }

  /** Whether Redis decides on limits, except single ones. */
  get #isQuotaShared(): boolean {
    return this.#quotaFailure === null && this.#connectivity.state !== 'disconnected' && this.#refusal === null;
  }

  /** Why Redis refuses changes although it answers; null if it takes them. */
  get refuses(): Refusal['kind'] | null {
    return this.#refusal?.kind ?? null;
  }

  /** Whether no new answers are stored in the cache Redis. */
  get isCacheOverBudget(): boolean {
    return this.#excess !== null;
  }

  /** `reason`: why Redis could not be asked, if it is disconnected. */
  readonly onConnectivity = (role: RedisRole, connectivity: Connectivity, reason: unknown): void => {
    this.#connectivity[role] = connectivity;
    this.#lookFailures.set(role, reason);
    // The connection was given up for a refused change. Whether Redis takes changes again, the next heartbeat shows.
    const lostFor = this.#reasonOf(role);
    if (role === 'state' && refusalOf(lostFor, 'REDIS_URL')?.code === 'READONLY') this.#beatRefusal = lostFor;
    if (role === 'state' && connectivity === 'disconnected') {
      this.#hadAnswered = this.#hasAnswered;
      this.#disconnectedAtMs = this.#options.clock.nowMs();
    }
    if (role === 'state' && connectivity !== 'disconnected' && !this.#hasAnswered) {
      this.#hasAnswered = true;
      this.#answered.resolve();
      this.#options.siblings?.redisAnswered();
    }
    this.#options.health.update();
  };

  /** Called when the shared cache goes over its budget, or over another of its limits, and when it is within (null). */
  readonly onBudget = (excess: BudgetExcess | null): void => {
    const { health, logger } = this.#options;
    this.#excess = excess;
    health.update('redis-cache');
    if (excess === null) logger.info('the cache is within its budget in Redis again: new answers are stored there');
    else logger.warn(excess, 'the cache is over its budget in Redis: new answers are kept in memory only');
  };

  readonly quotaHooks = {
    onDegraded: (reason: unknown): void => this.#setQuota({ reason }),
    onExact: (): void => this.#setQuota(null),
    onUndecided: (quotaId: string, reason: UndecidableLogError | null): void => {
      const { health, logger } = this.#options;
      if (reason === null) {
        this.#undecidedQuotas.delete(quotaId);
        logger.info({ quotaId }, 'Redis decides on a quota again');
      } else {
        this.#undecidedQuotas.set(quotaId, reason.log);
        const advice = `another application may have written into ${reason.log}: delete it there`;
        logger.warn({ quotaId, err: reason.cause }, `Redis cannot decide on one quota: ${advice}`);
      }
      health.update('quota');
    },
  };

  readonly onBeat = (refusal: Error | null): void => {
    this.#beatRefusal = refusal;
    // A heartbeat is a change too. Without it an idle process would report a full Redis until the next request.
    const kind = refusalOf(this.#quotaFailure?.reason, 'REDIS_URL')?.kind;
    if (refusal === null && (kind === 'full' || kind === 'read-only')) this.#quotaFailure = null;
    this.#options.health.update();
  };

  /** Called when all of it has been opened: until then silence is no trouble. */
  track(redis: TrackedRedis): void {
    const { health, isOne } = this.#options;
    this.#links = redis.links;
    const one = { okMessage: 'Redis answers again', ...(isOne ? { loggedAs: 'redis' } : {}) };
    health.add({ name: 'redis-state', ...one, check: () => this.#checkRedis('state', '') });
    const checkCache = (): DependencyState => this.#checkRedis('cache', `; ${redis.protection()}`);
    health.add({ name: 'redis-cache', ...one, check: checkCache });
    const exactAgain = 'quotas: exact over all processes again';
    health.add({ name: 'quota', okMessage: exactAgain, check: () => this.#checkQuota(redis.processes()) });
    const agreesAgain = 'the clock of this process agrees with that of Redis again';
    health.add({ name: 'clock', okMessage: agreesAgain, check: () => this.#checkClock(redis.clockAheadMs()) });
    const heardAgain = 'keys: changes arrive again';
    health.add({ name: 'keys', okMessage: heardAgain, check: () => this.#checkKeys(redis) });
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
    const up = this.#links.filter((link) => link.isUp());
    this.#memory ??= Promise.all(up.map((link) => readRedisMemory(link).catch(() => null)))
      .then((all) => all.filter((memory) => memory !== null))
      .finally(() => {
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
    const refusal = refusalOf(this.#refusalReason, 'REDIS_URL');
    if (refusal?.kind === 'away') return null;
    return this.#connectivity.state === 'disconnected' && refusal?.code !== 'READONLY' ? null : refusal;
  }

  get #refusalReason(): unknown {
    // The newest: quotas keep the reason for which they were first decided without Redis.
    return refusalOf(this.#beatRefusal, 'REDIS_URL') === null ? this.#quotaFailure?.reason : this.#beatRefusal;
  }

  /** `more` ends the detail if all is well. */
  #checkRedis(role: RedisRole, more: string): DependencyState {
    const connectivity = this.#connectivity[role];
    if (connectivity === 'disconnected') return this.#checkDisconnected(role);
    if (connectivity === 'subscriptionLost') {
      const code = replyCode(this.#lookFailures.get(role));
      const why = code === null ? '' : ` (${code})`;
      const detail = `answers, but its messages do not arrive${why}: it is asked before memory is used`;
      return degraded(`Redis ${detail}`, detail);
    }
    const refusal = this.#refusal;
    if (refusal !== null && (role === 'state' || this.#options.isOne)) {
      const consequence =
        role === 'state' ? 'limits are per process; changes fail' : 'new answers are kept in memory only';
      const fields = { err: this.#refusalReason };
      return degraded(REFUSED[refusal.kind], `Redis ${refusal.finding}; ${consequence}`, {
        fields,
        ...whenOver(refusal),
      });
    }
    // A limit that somebody set and that holds is no trouble of Redis.
    const budget = role === 'cache' && this.#excess !== null ? `; ${describeExcess(this.#excess)}` : '';
    return { status: 'ok', detail: `answers, and its messages arrive${budget}${more}${this.#pendingSecrets(role)}` };
  }

  /** Says why new secrets of its address are not in use yet. */
  #pendingSecrets(role: RedisRole): string {
    const reason = this.#links.find((link) => link.role === role)?.pendingReason ?? null;
    if (reason === null) return '';
    const code = refusalOf(reason, 'REDIS_URL')?.code ?? codeOf(reason) ?? 'no answer yet';
    return `; the new secrets of its address are tried (${code}), and the old ones stay in use until they are accepted`;
  }

  #checkDisconnected(role: RedisRole): DependencyState {
    const reason = this.#reasonOf(role);
    const refusal = refusalOf(reason, role === 'state' || this.#options.isOne ? 'REDIS_URL' : 'REDIS_CACHE_URL');
    const isWaitedFor = role === 'state' && !this.hasAnswered;
    const silence = isWaitedFor ? 'has not answered since this process started' : 'does not answer';
    const code = codeOf(reason);
    const finding = refusal?.finding ?? (code === null ? silence : `${silence} (${code})`);
    const consequence = isWaitedFor ? 'not ready until it has answered once' : 'this process goes on by itself';
    const message = refusal === null ? 'Redis does not answer' : REFUSED[refusal.kind];
    return degraded(message, `${finding}: ${consequence}`, { fields: { err: reason }, ...whenOver(refusal) });
  }

  #checkQuota(processes: number): DependencyState {
    if (this.isQuotaExact) return { status: 'ok', detail: 'exact over all processes' };
    if (this.#isQuotaShared) {
      const logs = [...this.#undecidedQuotas.values()];
      const named = logs.slice(0, NAMED_LOGS).join(', ') + (logs.length > NAMED_LOGS ? ', ...' : '');
      return degraded(
        'quotas: single ones are not exact over all processes',
        `Redis cannot decide on ${logs.length}, whose logs hold something else: ${named}; all others are exact. Delete these keys`,
      );
    }
    const share = processes === 1 ? 'as the only process' : `with its share, one of ${processes}`;
    const fields = { err: this.#quotaFailure?.reason ?? this.#refusalReason ?? this.#reasonOf('state') };
    const message = 'quotas: this process goes on with its share of the limits';
    return degraded(message, `Redis does not decide: this process goes on ${share}`, { fields });
  }

  #checkKeys(redis: TrackedRedis): DependencyState {
    const [connectivity, refusal] = [this.#connectivity.state, this.#refusal];
    if (connectivity === 'disconnected' && refusal === null) return this.#checkDisconnectedKeys(redis);
    if (connectivity === 'subscriptionLost') {
      return degraded(
        'keys: changes may be missed; each key is confirmed before it is used',
        'changes may be missed: each key is confirmed at Redis before it is used',
      );
    }
    const loss = redis.registry.census().loss;
    if (loss !== null && !loss.isAcknowledged) {
      const which = loss.left === 0 ? 'all' : 'some';
      return degraded(`keys: Redis lost ${which} of them, and consumers get 401`, `${lossText(loss)}; ${LOSS_ADVICE}`, {
        isCritical: true,
        sinceMs: loss.atMs,
        overMessage: 'keys: there are some again, or an operator knows of the loss',
      });
    }
    if (refusal === null) return { status: 'ok', detail: 'changes arrive' };
    const over = { overMessage: 'keys: they can be issued, changed and revoked again' };
    if (refusal.kind === 'full') {
      return degraded(
        'keys: Redis is full; they can be revoked, and not be issued or changed',
        `Redis ${refusal.finding}; keys stay good and can be revoked; none can be issued or changed`,
        over,
      );
    }
    return degraded(
      'keys: Redis refuses changes; none can be issued, changed or revoked',
      `Redis ${refusal.finding}; keys that are known stay good; none can be issued, changed or revoked`,
      over,
    );
  }

  #checkClock(aheadMs: number): DependencyState {
    if (aheadMs !== 0) {
      return degraded(
        'the clock of this process is not that of Redis: copies from the future are stale, and keys end at the wrong time',
        `the clock of this process is ${clockText(aheadMs)} that of Redis: set the wrong one right`,
        { fields: { clockAheadMs: aheadMs } },
      );
    }
    if (this.#connectivity.state === 'disconnected')
      return { status: 'unknown', detail: 'Redis does not say its time' };
    return { status: 'ok', detail: 'agrees with that of Redis within two seconds' };
  }

  #checkDisconnectedKeys({ graceMs, hasDemoKeys }: TrackedRedis): DependencyState {
    const allowed = hasDemoKeys ? 'only the demo keys are let in' : 'no key is let in';
    if (!this.#hadAnswered) {
      return degraded(
        `keys: Redis could not be asked since the start; ${allowed} until it answers`,
        `Redis could not be asked since this process started: ${allowed} until it answers`,
        { isCritical: true },
      );
    }
    const grace = formatDuration(graceMs);
    const untilMs = this.#disconnectedAtMs + graceMs;
    if (this.#options.clock.nowMs() > untilMs) {
      const message = `keys: Redis could not be asked for too long; ${allowed} until it answers`;
      return degraded(message, `Redis could not be asked for ${grace}: ${allowed}`, { isCritical: true });
    }
    const others = hasDemoKeys ? 'besides them, only the demo keys are let in' : 'no other key is let in';
    return degraded(
      `keys: Redis cannot be asked; only keys that it confirmed lately ${hasDemoKeys ? 'and the demo keys ' : ''}are let in`,
      `Redis cannot be asked: keys that it confirmed within ${grace} stay good, the last of them until ${new Date(untilMs).toISOString()}; ${others}`,
      { deadlineMs: untilMs },
    );
  }
}

/** A Redis that refuses changes answers everything else: it never ceased to answer. */
function whenOver(refusal: Refusal | null): { readonly overMessage?: string } {
  return refusal === null || refusal.kind === 'forbidden' ? {} : { overMessage: 'Redis takes changes again' };
}

/** The code of a reply or of a system's error. Never its text, which names the address. */
function codeOf(error: unknown): string | null {
  return replyCode(error) ?? systemCode(error);
}

function describeExcess({ limit, usedBytes, maxBytes }: BudgetExcess): string {
  const [used, most] = [usedBytes, maxBytes].map((bytes) => `${(bytes / 1_000_000).toFixed(1)} MB`);
  const reason =
    limit === 'budget'
      ? `the cache has some ${used} of ${most} (cache.redis)`
      : `${used} are in use, and above ${most} the memory (maxmemory) is for keys and limits`;
  return `new answers are kept in memory only: ${reason}`;
}
