/** How Redis is doing and what follows from it for limits and keys: for `/readyz`, the metrics and the log. */
import type { BudgetExcess } from '../cache/redis/budget.ts';
import type { Connectivity } from '../cache/redis/redis-cache.ts';
import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import type { SyncState } from '../keys/key-cache.ts';
import { type RedisHooks, type RedisLink, type RedisRole, type RedisServer, replyCode } from '../redis/connection.ts';
import { settingsOf } from '../redis/settings.ts';
import type { Timers } from '../timers.ts';
import type { DependencyState, Health } from './health.ts';

/** As long as the cache takes to report that its subscription is lost. */
const SUBSCRIPTION_LOST_AFTER_MS = 1000;
/** Codes of error replies to a user, a password or permissions that are wrong. */
const CREDENTIALS_REFUSED: ReadonlySet<string | null> = new Set(['WRONGPASS', 'NOAUTH', 'NOPERM']);

export interface RedisHealthOptions {
  readonly health: Health;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Whether one Redis has both roles: its troubles are then logged as one. */
  readonly isOne: boolean;
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

type KeysWithoutRedis = Pick<TrackedRedis, 'graceMs' | 'hasDemoKeys'>;

export interface RedisMemory {
  readonly role: RedisRole;
  readonly usedBytes: number;
  /** 0 for no limit; null if Redis does not report it. */
  readonly maxBytes: number | null;
  /** In the database that is used there. */
  readonly keys: number;
}

export class RedisHealth {
  readonly #options: RedisHealthOptions;
  readonly #downFor = new Map<RedisRole, unknown>();
  readonly #connectivity: Record<RedisRole, Connectivity> = { state: 'disconnected', cache: 'disconnected' };
  #hasAnswered = false;
  /** Why the last request was decided without Redis; null if Redis decided. While Redis is absent none will be. */
  #quotaFailure: { readonly reason: unknown } | null = null;
  /** Null before the keys were looked for. */
  #keySync: SyncState | null = null;
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

  /** Whether the state Redis has answered since the start. Until then no key and no limit is known. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  get isQuotaExact(): boolean {
    return this.#quotaFailure === null && this.#connectivity.state !== 'disconnected';
  }

  /** Whether no new answers are stored in the cache Redis. */
  get isCacheOverBudget(): boolean {
    return this.#excess !== null;
  }

  // Why the connection failed says more than the error of a command that could not be sent.
  readonly onDown: NonNullable<RedisHooks['onDown']> = (role, reason) => this.#downFor.set(role, reason);

  readonly onConnectivity = (role: RedisRole, connectivity: Connectivity): void => {
    this.#connectivity[role] = connectivity;
    if (role === 'state' && connectivity !== 'disconnected') this.#hasAnswered = true;
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

  /** The subscription is lost for a moment between any two of the others, which is no trouble of its own. */
  readonly onKeySync = (state: SyncState): void => {
    this.#cancelSubscriptionLost();
    if (state !== 'disconnected') this.#hasLookedUpKeys = true;
    if (state !== 'subscriptionLost') this.#setKeySync(state);
    else if (this.#keySync !== state) {
      const { timers } = this.#options;
      this.#cancelSubscriptionLost = timers.after(SUBSCRIPTION_LOST_AFTER_MS, () => this.#setKeySync(state));
    }
  };

  /** Called when all of it has been opened: until then silence is no trouble. */
  track({ links, processes, graceMs, hasDemoKeys }: TrackedRedis): void {
    const { health, isOne } = this.#options;
    this.#links = links;
    const loggedAs = isOne ? { loggedAs: 'redis' } : {};
    health.add({ name: 'redis-state', ...loggedAs, check: () => this.#checkRedis('state') });
    health.add({ name: 'redis-cache', ...loggedAs, check: () => this.#checkRedis('cache') });
    health.add({ name: 'quota', check: () => this.#checkQuota(processes()) });
    health.add({ name: 'keys', check: () => this.#checkKeys({ graceMs, hasDemoKeys }) });
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
    this.#memory ??= this.#readMemory().finally(() => {
      this.#memory = null;
    });
    return this.#memory;
  }

  async #readMemory(): Promise<readonly RedisMemory[]> {
    const found = await Promise.all(this.#links.filter((link) => link.isUp()).map(memoryOf));
    return found.filter((memory) => memory !== null);
  }

  #setKeySync(state: SyncState): void {
    const isNew = this.#keySync !== state;
    if (isNew && state === 'disconnected') this.#keysDisconnectedAtMs = this.#options.clock.nowMs();
    this.#keySync = state;
    this.#options.health.update('keys');
  }

  #setQuota(failure: { readonly reason: unknown } | null): void {
    this.#quotaFailure = failure;
    this.#options.health.update();
  }

  /** It answers, and refuses every command that needs memory. */
  get #isFull(): boolean {
    return this.#connectivity.state !== 'disconnected' && replyCode(this.#quotaFailure?.reason) === 'OOM';
  }

  #checkRedis(role: RedisRole): DependencyState {
    const trouble = this.#connectivity[role];
    const fields = { err: this.#downFor.get(role) };
    if (trouble === 'disconnected') {
      return { status: 'degraded', trouble, detail: this.#disconnectedDetail(role), fields };
    }
    if (trouble === 'subscriptionLost') {
      const detail = 'answers, but its messages do not arrive: nothing is served from memory';
      return { status: 'degraded', trouble, detail, fields };
    }
    if (this.#isFull && (role === 'state' || this.#options.isOne)) {
      const consequence =
        role === 'state' ? 'limits are per process; changes fail' : 'new answers are kept in memory only';
      const detail = `Redis is full (maxmemory); ${consequence}`;
      return { status: 'degraded', trouble: 'full', detail, fields: { err: this.#quotaFailure?.reason } };
    }
    // A limit that somebody set and that holds is no trouble of Redis.
    const budget = role === 'cache' && this.#excess !== null ? `; ${describeExcess(this.#excess)}` : '';
    return { status: 'ok', detail: `answers, and its messages arrive${budget}` };
  }

  #disconnectedDetail(role: RedisRole): string {
    if (role === 'cache' || this.#hasAnswered) return 'does not answer: this process goes on by itself';
    const code = codeOf(this.#downFor.get(role));
    const reason = code === null ? '' : ` (${code})`;
    return CREDENTIALS_REFUSED.has(code)
      ? `refuses the user or the password of REDIS_URL${reason}: not ready until it has answered once`
      : `has not answered since this process started${reason}: not ready until it has answered once`;
  }

  #checkQuota(processes: number): DependencyState {
    if (this.isQuotaExact) return { status: 'ok', detail: 'exact over all processes' };
    const reason = this.#quotaFailure === null ? this.#downFor.get('state') : this.#quotaFailure.reason;
    const share = processes === 1 ? 'as the only process' : `with its share, one of ${processes}`;
    const detail = `Redis does not decide: this process goes on ${share}`;
    return { status: 'degraded', detail, fields: { err: reason } };
  }

  #checkKeys(keys: KeysWithoutRedis): DependencyState {
    if (this.#keySync === null) return { status: 'unknown', detail: 'not heard of yet' };
    if (this.#keySync === 'subscriptionLost') {
      const detail = 'changes may be missed: each key is confirmed at Redis before it is used';
      return { status: 'degraded', trouble: 'subscriptionLost', detail };
    }
    if (this.#keySync === 'disconnected') return this.#checkDisconnectedKeys(keys);
    if (this.#isFull) {
      const detail = 'Redis is full (maxmemory); keys stay good and can be revoked; none can be issued or changed';
      return { status: 'degraded', trouble: 'full', detail };
    }
    return { status: 'ok', detail: 'every change is heard of' };
  }

  #checkDisconnectedKeys({ graceMs, hasDemoKeys }: KeysWithoutRedis): DependencyState {
    const degraded = (trouble: string, detail: string): DependencyState => ({
      status: 'degraded',
      trouble: hasDemoKeys ? `${trouble}Demo` : trouble,
      detail,
    });
    const allowed = hasDemoKeys ? 'only the demo keys are let in' : 'no key is let in';
    if (!this.#hasLookedUpKeys) {
      const since = 'Redis could not be asked since this process started';
      return degraded('neverAsked', `${since}: ${allowed} until it answers`);
    }
    const untilMs = this.#keysDisconnectedAtMs + graceMs;
    if (this.#options.clock.nowMs() > untilMs) {
      return degraded('graceOver', `Redis could not be asked for ${formatDuration(graceMs)}: ${allowed}`);
    }
    const confirmed = `keys that it confirmed within ${formatDuration(graceMs)} stay good, the last of them until ${new Date(untilMs).toISOString()}`;
    const others = hasDemoKeys ? 'besides them, only the demo keys are let in' : 'no other key is let in';
    return degraded('disconnected', `Redis cannot be asked: ${confirmed}; ${others}`);
  }
}

/** The code of a reply or of a system's error. Never its text, which names the address. */
function codeOf(error: unknown): string | null {
  const reply = replyCode(error);
  if (reply !== null) return reply;
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

/** For a Cluster, the sums of its primaries; without a limit if one of them has none. */
async function memoryOf(link: RedisLink): Promise<RedisMemory | null> {
  try {
    const read = await Promise.all(link.servers().map(readMemory));
    const usedBytes = sumOf(read.map(({ usedMemoryBytes }) => usedMemoryBytes));
    if (usedBytes === null) return null;
    const limits = read.map(({ maxMemoryBytes }) => maxMemoryBytes);
    return {
      role: link.role,
      usedBytes,
      maxBytes: limits.includes(0) ? 0 : sumOf(limits),
      keys: sumOf(read.map(({ keys }) => keys)) ?? 0,
    };
  } catch {
    return null;
  }
}

async function readMemory({ client }: RedisServer) {
  const [info, keys] = await Promise.all([client.info('memory'), client.dbsize()]);
  const { usedMemoryBytes, maxMemoryBytes } = settingsOf(info, null);
  return { usedMemoryBytes, maxMemoryBytes, keys };
}

/** Null if one of them is not known, or there is none. */
function sumOf(values: readonly (number | null)[]): number | null {
  return values.reduce(
    (sum, value) => (sum === null || value === null ? null : sum + value),
    values.length === 0 ? null : 0,
  );
}

function describeExcess({ limit, usedBytes, maxBytes }: BudgetExcess): string {
  const [used, most] = [usedBytes, maxBytes].map((bytes) => `${(bytes / 1_000_000).toFixed(1)} MB`);
  const reason =
    limit === 'budget'
      ? `the cache has some ${used} of ${most} (cache.redis)`
      : `${used} are in use, and above ${most} the memory (maxmemory) is for keys and limits`;
  return `new answers are kept in memory only: ${reason}`;
}
