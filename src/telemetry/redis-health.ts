/** How Redis is doing and what follows from it for limits and keys: for `/readyz`, the metrics and the log. */
import type { BudgetExcess } from '../cache/redis/budget.ts';
import type { Clock } from '../time/clock.ts';
import type { KeyDirectory } from '../keys/registry.ts';
import { clockText } from '../time/duration.ts';
import type { Logger } from '../log/logger.ts';
import type { UndecidableLogError } from '../quota/redis-limiter.ts';
import type { RedisLink, RedisRole } from '../redis/connection.ts';
import { NotSentError, replyText } from '../redis/errors.ts';
import type { Connectivity } from '../redis/connectivity.ts';
import { replyCode } from '../redis/errors.ts';
import { readRedisMemory, type RedisMemory } from '../redis/memory.ts';
import type { Refusal } from '../redis/refusal.ts';
import { degraded, type DependencyState, type Health } from './health.ts';
import type { HistoryLoss } from './history-loss.ts';
import type { Eviction } from './eviction.ts';
import { keysState } from './key-health.ts';
import { systemCode } from '../log/error.ts';
import { SingleFlight } from '../time/single-flight.ts';

/** So many logs of quotas are named in `/readyz`. */
const NAMED_LOGS = 3;
/** It is never evalgate's own log that is to go. */
const FOREIGN_LOG =
  'Another application writes into the names of evalgate: give it a Redis or a database of its own, and move what it wrote away (RENAME)';
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
  /** Notifies them. */
  redisAnswered(): void;
  /** The counts of each worker, this one included, for operators. Rejects if the first process does not answer in time. */
  counts(): Promise<readonly unknown[]>;
}

type TrackedLink = Pick<
  RedisLink,
  'role' | 'isUp' | 'downReason' | 'refusal' | 'onChange' | 'pendingReason' | 'servers'
>;

export interface TrackedRedis {
  readonly links: readonly TrackedLink[];
  readonly processes: () => number;
  /** How far this process's clock is ahead of Redis's; 0 if they agree. Milliseconds. */
  readonly clockAheadMs: () => number;
  /** How long a key that Redis has confirmed stays good without it. */
  readonly graceMs: number;
  /** Knows whether keys were lost. */
  readonly registry: Pick<KeyDirectory, 'census'>;
  readonly eviction: Pick<Eviction, 'state' | 'losesKeys'>;
  readonly historyLoss: Pick<HistoryLoss, 'state'>;
  /** How cached records are protected there. */
  readonly protection: () => string;
  /** Whether there are demo keys, which are in memory and let in whatever Redis does. */
  readonly hasDemoKeys: boolean;
}

export class RedisHealth {
  readonly #options: RedisHealthOptions;
  readonly #connectivity: Record<RedisRole, Connectivity> = { state: 'alone', cache: 'alone' };
  /** Why the last look for missed changes failed. */
  readonly #lookFailures = new Map<RedisRole, unknown>();
  readonly #answered = Promise.withResolvers<void>();
  #hasAnswered = false;
  /** Why the last request was decided without Redis; null if Redis decided. While Redis is absent none will be. */
  #quotaFailure: { readonly reason: unknown } | null = null;
  /** The quotas that Redis cannot decide on, with their logs' names there. */
  readonly #undecidedQuotas = new Map<string, string>();
  /** Whether the state Redis had answered before it became unreachable: if not, it has confirmed no key. */
  #hadAnswered = false;
  #aloneSinceMs = 0;
  /** Why the cache Redis is over its budget, so that copies there make room for new ones; null if it is not. */
  #excess: BudgetExcess | null = null;
  #links: readonly TrackedLink[] = [];
  /** The gauges of one scrape share it. */
  readonly #memory = new SingleFlight<readonly RedisMemory[]>();

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
    return this.#quotaFailure === null && this.#connectivity.state !== 'alone' && this.#refusal === null;
  }

  /** Why Redis refuses changes although it answers; null if it takes them. */
  get refusesChanges(): 'full' | 'read-only' | null {
    return this.#refusal?.kind ?? null;
  }

  /** The refusal of each Redis to do something that a gateway needs; null if there is none. */
  refusals(): readonly { readonly role: RedisRole; readonly refusal: Refusal | null }[] {
    return this.#links.map(({ role, refusal }) => ({ role, refusal }));
  }

  /** Whether the cache Redis is over its budget, so that copies there make room for new ones. */
  get isCacheOverBudget(): boolean {
    return this.#excess !== null;
  }

  /** `reason`: why Redis could not be asked, if this process is alone. */
  readonly onConnectivity = (role: RedisRole, connectivity: Connectivity, reason: unknown): void => {
    this.#connectivity[role] = connectivity;
    this.#lookFailures.set(role, reason);
    if (role === 'state' && connectivity === 'alone') {
      this.#hadAnswered = this.#hasAnswered;
      this.#aloneSinceMs = this.#options.clock.nowMs();
    }
    this.#noteAnswer();
    this.#options.health.update();
  };

  /** A Redis that forbids what a gateway needs has not answered yet. */
  #noteAnswer(): void {
    const isForbidden = this.#linkOf('state')?.refusal?.kind === 'forbidden';
    if (this.#hasAnswered || isForbidden || this.#connectivity.state === 'alone') return;
    this.#hasAnswered = true;
    this.#answered.resolve();
    this.#options.siblings?.redisAnswered();
  }

  /** Called when the shared cache reaches its budget, or another of its limits, and when it is well below (null). */
  readonly onBudget = (excess: BudgetExcess | null): void => {
    const { health, logger } = this.#options;
    this.#excess = excess;
    health.update('redis-cache');
    if (excess === null) logger.info('the cache is well within its limit in Redis again');
    else logger.warn(excess, 'the cache is at its limit in Redis: copies make room for others');
  };

  readonly quotaHooks = {
    onDegraded: (reason: unknown): void => this.#setQuota({ reason }),
    onExact: (): void => this.#setQuota(null),
    onForgotten: (quotaId: string): void =>
      this.#options.logger.error(
        { quotaId },
        'Redis has lost the requests of a quota: they count no more. It must not evict',
      ),
    onUndecided: (quotaId: string, reason: UndecidableLogError | null): void => {
      const { health, logger } = this.#options;
      if (reason === null) {
        this.#undecidedQuotas.delete(quotaId);
        logger.info({ quotaId }, 'Redis decides on a quota again');
      } else {
        this.#undecidedQuotas.set(quotaId, reason.log);
        logger.warn(
          { quotaId, log: reason.log, err: reason.cause },
          `Redis cannot decide on one quota: ${FOREIGN_LOG}`,
        );
      }
      health.update('quota');
    },
  };

  /** Called when all of it has been opened: until then silence is no trouble. */
  track(redis: TrackedRedis): void {
    const { health, isOne } = this.#options;
    this.#links = redis.links;
    for (const link of redis.links) link.onChange(() => this.#onChange(link));
    this.#noteAnswer();
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
    const evictsNothing = 'Redis evicts nothing any more';
    const isLongAgo = 'the loss of what operators had set is an hour ago';
    health.add({ name: 'history', okMessage: isLongAgo, check: () => redis.historyLoss.state() });
    health.add({ name: 'eviction', okMessage: evictsNothing, check: () => redis.eviction.state() });
  }

  /** The links as they are known without asking. */
  links(): readonly { readonly role: RedisRole; readonly isUp: boolean; readonly connectivity: Connectivity }[] {
    return this.#links.map((link) => ({
      role: link.role,
      isUp: link.isUp(),
      connectivity: this.#connectivity[link.role],
    }));
  }

  /** Asks Redis, within the time of a command; nothing of one that is down or does not answer. Never rejects. */
  memory(): Promise<readonly RedisMemory[]> {
    return this.#memory.join('memory', async () => {
      const up = this.#links.filter((link) => link.isUp());
      const all = await Promise.all(up.map((link) => readRedisMemory(link).catch(() => null)));
      return all.filter((memory) => memory !== null);
    });
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

  #onChange({ role, refusal }: TrackedLink): void {
    // Quotas keep the reason for which they were first decided without Redis, and an idle process decides on none.
    const isRefusal = replyText(causeOf(this.#quotaFailure?.reason)) !== null;
    if (isRefusal && this.#linkOf('state')?.refusal === null) this.#quotaFailure = null;
    this.#noteAnswer();
    // A Redis that was lost for a refusal, and is about to be found, is not silent meanwhile.
    if (refusal !== null || this.#connectivity[role] !== 'alone') this.#options.health.update();
  }

  #linkOf(role: RedisRole): TrackedLink | undefined {
    return this.#links.find((link) => link.role === role);
  }

  /** Why Redis does not answer: of a connection that is down, its last error, which changes while it is down. */
  #reasonOf(role: RedisRole): unknown {
    const link = this.#linkOf(role);
    return (link?.isUp() === false ? link.downReason : null) ?? this.#lookFailures.get(role);
  }

  /**
   * The state Redis answers, and refuses changes; null if it does not. A connection that was given up for its refusal, to
   * look for another server, is no other trouble than the refusal.
   */
  get #refusal(): (Refusal & { readonly kind: 'full' | 'read-only' }) | null {
    const refusal = this.#linkOf('state')?.refusal ?? null;
    if (refusal === null || !refusesChanges(refusal)) return null;
    return this.#connectivity.state === 'alone' && refusal.code !== 'READONLY' ? null : refusal;
  }

  /** `more` ends the detail if all is well. */
  #checkRedis(role: RedisRole, more: string): DependencyState {
    const connectivity = this.#connectivity[role];
    if (connectivity === 'alone') return this.#checkAlone(role);
    const ofOne = this.#options.isOne && role === 'cache' ? this.#refusal : null;
    const refusal = this.#linkOf(role)?.refusal ?? ofOne;
    if (connectivity === 'deaf') {
      const code = replyCode(this.#lookFailures.get(role));
      const what = code === null ? '' : ` (${code})`;
      const why = refusal === null ? '' : `; it ${refusal.finding}`;
      const detail = `answers, but its messages do not arrive${what}: it is asked before memory is used${why}`;
      return refusal?.kind === 'forbidden'
        ? refusedBy(refusal, detail)
        : degraded('Redis answers, but its messages do not arrive: it is asked before memory is used', detail);
    }
    if (refusal !== null && refusal.kind !== 'away') {
      const ofKind = refusal.kind === 'forbidden' ? 'what it refuses is not done' : REFUSED_CHANGES[refusal.kind];
      const isOfCache = role === 'cache' && refusal.kind !== 'forbidden';
      const consequence = isOfCache ? 'new answers are kept in memory only' : ofKind;
      return refusedBy(refusal, `Redis ${refusal.finding}; ${consequence}`);
    }
    // A limit that somebody set and that holds is no trouble of Redis.
    const budget = role === 'cache' && this.#excess !== null ? `; ${describeExcess(this.#excess)}` : '';
    return { status: 'ok', detail: `answers, and its messages arrive${budget}${more}${this.#pendingSecrets(role)}` };
  }

  /** Says why new secrets of its address are not in use yet. */
  #pendingSecrets(role: RedisRole): string {
    const reason = this.#linkOf(role)?.pendingReason ?? null;
    if (reason === null) return '';
    const why = replyText(reason) ?? systemCode(reason) ?? 'no answer yet';
    return `; the new secrets of its address are tried (${why}), and the old ones stay in use until they are accepted`;
  }

  #checkAlone(role: RedisRole): DependencyState {
    const reason = this.#reasonOf(role);
    const refusal = this.#linkOf(role)?.refusal ?? null;
    const isWaitedFor = role === 'state' && !this.hasAnswered;
    const silence = isWaitedFor ? 'has not answered since this process started' : 'does not answer';
    const code = systemCode(reason);
    const finding = refusal?.finding ?? (code === null ? silence : `${silence} (${code})`);
    const consequence = isWaitedFor ? 'not ready until it has answered once' : 'this process goes on by itself';
    const detail = `${finding}: ${consequence}`;
    const fields = reasonOf(reason);
    return refusal === null
      ? degraded('Redis does not answer', detail, { fields })
      : refusedBy(refusal, detail, fields);
  }

  #checkQuota(processes: number): DependencyState {
    if (this.isQuotaExact) return { status: 'ok', detail: 'exact over all processes' };
    if (this.#isQuotaShared) {
      const logs = [...this.#undecidedQuotas.values()];
      const named = logs.slice(0, NAMED_LOGS).join(', ') + (logs.length > NAMED_LOGS ? ', ...' : '');
      return degraded(
        'quotas: single ones are not exact over all processes',
        `Redis cannot decide on ${logs.length}, whose logs hold something else: ${named}; all others are exact. ${FOREIGN_LOG}`,
      );
    }
    const share = processes === 1 ? 'as the only process' : `with its share, one of ${processes}`;
    const fields = reasonOf(this.#quotaFailure?.reason ?? this.#reasonOf('state'));
    const message = 'quotas: this process goes on with its share of the limits';
    return degraded(message, `Redis does not decide: this process goes on ${share}`, { fields });
  }

  #checkKeys({ registry, eviction, ...redis }: TrackedRedis): DependencyState {
    return keysState({
      ...redis,
      connectivity: this.#connectivity.state,
      refusal: this.#refusal,
      ...registry.census(),
      evictionPolicy: eviction.losesKeys,
      aloneSinceMs: this.#hadAnswered ? this.#aloneSinceMs : null,
      nowMs: this.#options.clock.nowMs(),
    });
  }

  #checkClock(aheadMs: number): DependencyState {
    if (aheadMs !== 0) {
      return degraded(
        'the clock of this process is not that of Redis: copies from the future are stale, and keys end at the wrong time',
        `the clock of this process is ${clockText(aheadMs)} that of Redis: set the wrong one right`,
        { fields: { clockAheadMs: aheadMs } },
      );
    }
    if (this.#connectivity.state === 'alone') return { status: 'unknown', detail: 'Redis does not say its time' };
    return { status: 'ok', detail: 'agrees with that of Redis within two seconds' };
  }
}

/** The consequences for those who change something. */
const REFUSED_CHANGES = {
  full: 'limits are per process; no key can be created, activated, edited, rotated or imported; revoking and deprecating keys, purges, times and maintenance work',
  'read-only': 'limits are per process; changes fail',
} as const;

/** Lines of the log. */
const REFUSED = {
  full: 'Redis is full (maxmemory): limits are per process, and only what needs no memory can be changed',
  'read-only': 'Redis refuses changes: limits are per process',
  away: 'Redis answers, and does not serve',
} as const;

/** `detail` holds what Redis says word for word, and so has the log. */
function refusedBy(refusal: Refusal, detail: string, fields: Readonly<Record<string, unknown>> = {}): DependencyState {
  const { kind, reply } = refusal;
  if (kind === 'forbidden') return degraded(`Redis refuses what a gateway needs: ${reply}`, detail, { fields });
  // A Redis that refuses changes answers everything else: it never ceased to answer.
  return degraded(REFUSED[kind], detail, { fields, overMessage: 'Redis takes changes again' });
}

/** One line of the log: frames of a client's code say nothing of why a server does not answer. */
function reasonOf(error: unknown): { readonly reason?: string } {
  const cause = causeOf(error);
  const reason = replyText(cause) ?? systemCode(cause) ?? (cause instanceof Error ? cause.message : null);
  return reason === null ? {} : { reason };
}

function refusesChanges(refusal: Refusal): refusal is Refusal & { readonly kind: 'full' | 'read-only' } {
  return refusal.kind === 'full' || refusal.kind === 'read-only';
}

function causeOf(error: unknown): unknown {
  return error instanceof NotSentError ? error.cause : error;
}

function describeExcess({ limit, usedBytes, maxBytes }: BudgetExcess): string {
  const [used, most] = [usedBytes, maxBytes].map((bytes) => `${(bytes / 1_000_000).toFixed(1)} MB`);
  const reason =
    limit === 'budget'
      ? `the cache has some ${used} of ${most} (cache.redis)`
      : `${used} are in use, and above ${most} the memory (maxmemory) is for keys and limits`;
  return `copies make room for others: ${reason}`;
}
