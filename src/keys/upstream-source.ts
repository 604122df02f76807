/**
 * Keys of the store, behind a registry: a key that the registry doesn't know is asked of the store. The registry's word
 * comes first, so that an operator can revoke a store's key by importing it as revoked.
 *
 * A key is remembered for a minute. One in use is confirmed behind the caller's back well before that; one that was not
 * used for longer is confirmed before it is used. Where that fails or takes long, the copy serves until the grace ends.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import type { ApiKeyRecord } from '../domain/records.ts';
import { type ApiKey, type KeyHash, type KeyLookup, RegistryUnavailableError } from './key.ts';
import { KeyFlights } from './key-flights.ts';
import { KnownKeys } from './known-keys.ts';
import { LookupBudget } from './lookup-budget.ts';
import { upstreamKey } from './upstream-key.ts';
import { within } from './within.ts';

const LOOKUPS_PER_SECOND = 10;
/** Confirmations behind a caller's back leave so many look-ups of each second to keys that somebody waits for. */
const KEPT_FOR_CALLERS = 5;
const REMEMBERED_MS = 60_000;
const CONFIRM_EVERY_MS = 30_000;
const UNKNOWN_MS = 5000;
/** How long a caller waits for a confirmation where there is a copy to go on with. */
const WAIT_MS = 1000;
/** After a confirmation that failed or took long, the copy is used at once for so long. */
const GO_ON_MS = 5000;
const MAX_KEYS = 10_000;

export interface UpstreamKeySourceOptions {
  /** Asked first. */
  readonly registry: KeyLookup;
  /** Asks the store by the lower-case hex SHA-256 of the key; null where it says that there is no such key. */
  readonly lookUp: (hash: KeyHash) => Promise<ApiKeyRecord | null>;
  readonly clock: Clock;
  /** How long a key that the store has confirmed stays good while the store or the registry can't be asked. */
  readonly graceMs: number;
  readonly waitMs?: number;
}

/** `isOwn`: the registry's, not the store's. */
interface Answer {
  readonly key: ApiKey | null;
  readonly isOwn: boolean;
}

class UpstreamKeySource implements KeyLookup {
  readonly #registry: KeyLookup;
  readonly #lookUp: UpstreamKeySourceOptions['lookUp'];
  readonly #clock: Clock;
  readonly #waitMs: number;
  readonly #known: KnownKeys;
  readonly #flights: KeyFlights<Answer>;
  readonly #budget = new LookupBudget(LOOKUPS_PER_SECOND);
  readonly #ofStore = new WeakSet<ApiKey>();
  /** Until when a key's copy is used without waiting for its confirmation. */
  readonly #goOnUntilMs = new LRUCache<KeyHash, number>({ max: MAX_KEYS });

  constructor({ registry, lookUp, clock, graceMs, waitMs = WAIT_MS }: UpstreamKeySourceOptions) {
    this.#registry = registry;
    this.#lookUp = lookUp;
    this.#clock = clock;
    this.#waitMs = waitMs;
    this.#known = new KnownKeys({
      confirmEveryMs: CONFIRM_EVERY_MS,
      trustMs: Math.min(REMEMBERED_MS, graceMs),
      graceMs,
      unknownMs: UNKNOWN_MS,
      maxKnown: MAX_KEYS,
    });
    this.#flights = new KeyFlights({
      ask: (hash) => this.#ask(hash),
      onAnswer: (hash, answer, askedAtMs) => this.#remember(hash, answer, askedAtMs),
      nowMs: () => this.#nowMs(),
    });
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    const known = this.#recall(hash);
    if (known !== undefined) return known;
    const copy = this.#isOwn(hash) ? null : this.#known.withinGrace(hash, this.#nowMs());
    return copy === null ? (await this.#flights.join(hash)).key : this.#confirm(copy);
  }

  peek(hash: KeyHash): ApiKey | undefined {
    return this.#recall(hash) ?? undefined;
  }

  isIssued(hash: KeyHash): boolean {
    return this.#isOwn(hash) || this.#known.has(hash);
  }

  /** Uses of the store's keys are noted by nobody: their ids mean nothing to the registry. */
  touch(key: ApiKey): void {
    if (!this.#ofStore.has(key)) this.#registry.touch(key);
  }

  /** Null for a key that neither knows, undefined where they must be asked. */
  #recall(hash: KeyHash): ApiKey | null | undefined {
    const own = this.#registry.peek(hash);
    if (own !== undefined) return own;
    if (this.#isOwn(hash)) return undefined;
    const recollection = this.#known.recall(hash, this.#nowMs(), 'heard');
    if (recollection.kind === 'unsure') return undefined;
    if (recollection.kind === 'none') return null;
    if (recollection.isDue) this.#confirmBehind(hash);
    return recollection.key;
  }

  #isOwn(hash: KeyHash): boolean {
    return this.#registry.isIssued?.(hash) === true;
  }

  async #ask(hash: KeyHash): Promise<Answer> {
    const own = await this.#registry.find(hash);
    if (own !== null) return { key: own, isOwn: true };
    if (!this.#budget.take(this.#nowMs())) {
      throw new RegistryUnavailableError(`More than ${LOOKUPS_PER_SECOND} keys a second to look up at the store.`);
    }
    try {
      const record = await this.#lookUp(hash);
      if (record === null) return { key: null, isOwn: false };
      const key = upstreamKey(hash, record);
      this.#ofStore.add(key);
      return { key, isOwn: false };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new RegistryUnavailableError(`The store cannot be asked for a key: ${reason}`, { cause: error });
    }
  }

  #remember(hash: KeyHash, { key, isOwn }: Answer, askedAtMs: number): void {
    this.#goOnUntilMs.delete(hash);
    if (isOwn) this.#known.forget(hash);
    else this.#known.remember(hash, key, askedAtMs);
  }

  #confirmBehind(hash: KeyHash): void {
    if (this.#budget.left(this.#nowMs()) <= KEPT_FOR_CALLERS) return;
    this.#flights.join(hash).catch(() => undefined);
  }

  /** What the store says of the key now, or the copy where it doesn't say so soon. */
  async #confirm(copy: ApiKey): Promise<ApiKey | null> {
    const { hash } = copy;
    const landing = this.#flights.join(hash);
    landing.catch(() => undefined);
    if (this.#nowMs() < (this.#goOnUntilMs.get(hash) ?? 0)) return copy;
    try {
      const answer = await within(landing, this.#waitMs);
      if (answer !== undefined) return answer.key;
    } catch (error) {
      if (!(error instanceof RegistryUnavailableError)) throw error;
    }
    this.#goOnUntilMs.set(hash, this.#nowMs() + GO_ON_MS);
    return copy;
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / 1000;
  }
}

/**
 * A registry that also knows the store's keys. `find` rejects with RegistryUnavailableError where the registry or the
 * store can't be asked, or more than 10 keys would have to be looked up within a second, and there is no copy that was
 * confirmed within the grace.
 */
export function createUpstreamKeySource(options: UpstreamKeySourceOptions): KeyLookup {
  return new UpstreamKeySource(options);
}
