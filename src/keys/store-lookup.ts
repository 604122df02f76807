/**
 * Keys of the store (KEYS_SOURCE=upstream): a key that the registry doesn't know is looked up at the store. The registry
 * comes first, so an operator can revoke a key of the store by importing it as revoked.
 *
 * A copy is used for a minute. A key in use is confirmed in the background well before that; one that was not used for
 * longer is confirmed before it is used. If that fails or takes long, the copy is used until the grace ends.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../time/clock.ts';
import type { ApiKeyRecord } from '../domain/records.ts';
import { type Timers, withDeadline } from '../time/timers.ts';
import { type ApiKey, type KeyHash, type KeyStatus, RegistryUnavailableError, SCOPES } from './key.ts';
import { KeyCache } from './key-cache.ts';
import type { KeyLookup } from './registry.ts';

const LOOKUPS_PER_SECOND = 10;
/** Background confirmations leave so many look-ups of each second to keys that a caller waits for. */
const KEPT_FOR_CALLERS = 5;
const FRESH_MS = 60_000;
/** How long a caller waits for a confirmation if there is a copy to fall back on. */
const WAIT_MS = 1000;
/** After a confirmation that failed or took long, the copy is used without waiting for so long. */
const NO_WAIT_MS = 5000;
const MAX_KEYS = 10_000;

export interface StoreLookupOptions {
  /** Asked first. */
  readonly registry: KeyLookup;
  /** Asks the store by the lower-case hex SHA-256 of the key; null if the store has no such key. */
  readonly lookUp: (hash: KeyHash) => Promise<ApiKeyRecord | null>;
  readonly clock: Clock;
  readonly timers: Timers;
  /** How long a confirmed key stays good while the store or the registry does not answer (KEY_GRACE). */
  readonly graceMs: number;
}

/**
 * `find` rejects with RegistryUnavailableError if the registry or the store does not answer, or if more than 10 keys would
 * be looked up within a second, and there is no copy that was confirmed within the grace.
 */
export class StoreLookup implements KeyLookup {
  readonly #options: StoreLookupOptions;
  readonly #cache: KeyCache;
  /** When the last look-ups began, oldest first; never more than LOOKUPS_PER_SECOND. */
  #lookUpsAtMs: readonly number[] = [];
  /** Until when a key's copy is used without waiting for its confirmation. */
  readonly #noWaitUntilMs = new LRUCache<KeyHash, number>({ max: MAX_KEYS });

  constructor(options: StoreLookupOptions) {
    this.#options = options;
    this.#cache = new KeyCache({
      ask: (hash) => this.#ask(hash),
      nowMs: () => this.#nowMs(),
      canConfirm: () => this.#lookUpsLeft() > KEPT_FOR_CALLERS,
      freshMs: FRESH_MS,
      graceMs: options.graceMs,
    });
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    const copy = this.#get(hash);
    if (copy !== undefined) return copy;
    const confirmed = this.#options.registry.isIssued(hash) ? null : this.#cache.lastConfirmed(hash);
    return confirmed === null ? this.#cache.load(hash) : this.#confirm(confirmed);
  }

  peek(hash: KeyHash): ApiKey | undefined {
    return this.#get(hash) ?? undefined;
  }

  isIssued(hash: KeyHash): boolean {
    return this.#options.registry.isIssued(hash) || this.#cache.has(hash);
  }

  /** The registry ignores keys that are not its own. */
  touch(key: ApiKey): void {
    this.#options.registry.touch(key);
  }

  /** Null for a key that neither knows, undefined if they must be asked. */
  #get(hash: KeyHash): ApiKey | null | undefined {
    const { registry } = this.#options;
    const registered = registry.peek(hash);
    if (registered !== undefined) return registered;
    return registry.isIssued(hash) ? undefined : this.#cache.get(hash, 'connected');
  }

  async #ask(hash: KeyHash): Promise<ApiKey | null> {
    const registered = await this.#options.registry.find(hash);
    if (registered !== null) {
      // The registry has copies of its own: with its look-up deleted, the key is not cached here.
      this.#cache.delete(hash);
      return registered;
    }
    if (this.#lookUpsLeft() <= 0) {
      throw new RegistryUnavailableError(`More than ${LOOKUPS_PER_SECOND} keys a second to look up at the store.`);
    }
    this.#lookUpsAtMs = [...this.#lookUpsAtMs, this.#nowMs()].slice(-LOOKUPS_PER_SECOND);
    try {
      const record = await this.#options.lookUp(hash);
      this.#noWaitUntilMs.delete(hash);
      return record === null ? null : toApiKey(hash, record);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new RegistryUnavailableError(`The store cannot be asked for a key: ${reason}`, { cause: error });
    }
  }

  /** The key as the store has it now, or the copy if the store does not answer soon. */
  async #confirm(copy: ApiKey): Promise<ApiKey | null> {
    const { hash } = copy;
    const load = this.#cache.load(hash);
    load.catch(() => undefined);
    if (this.#nowMs() < (this.#noWaitUntilMs.get(hash) ?? 0)) return copy;
    try {
      const key = await withDeadline(load, WAIT_MS, this.#options.timers, () => undefined);
      if (key !== undefined) return key;
    } catch (error) {
      if (!(error instanceof RegistryUnavailableError)) throw error;
    }
    this.#noWaitUntilMs.set(hash, this.#nowMs() + NO_WAIT_MS);
    return copy;
  }

  #lookUpsLeft(): number {
    const nowMs = this.#nowMs();
    return LOOKUPS_PER_SECOND - this.#lookUpsAtMs.filter((atMs) => nowMs - atMs < 1000).length;
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }
}

const STATUSES: Readonly<Record<ApiKeyRecord['status'], KeyStatus>> = {
  ACTIVE: 'active',
  DEPRECATED: 'deprecated',
  REVOKED: 'revoked',
};

/** Scopes that the gateway doesn't know give no right here and are left out. The store has no time of creation. */
function toApiKey(hash: KeyHash, record: ApiKeyRecord): ApiKey {
  const { keyId, name, status, workspaceIds, expiresAtMs, limits } = record;
  return {
    keyId,
    hash,
    name,
    status: STATUSES[status],
    workspaceIds,
    scopes: SCOPES.filter((scope) => record.scopes.includes(scope)),
    createdAtMs: 0,
    expiresAtMs,
    limits: { perMinute: limits?.perMinute ?? null, perHour: limits?.perHour ?? null },
    // Store and registry issue ids without knowing of each other: the same id in both must not share one quota.
    quotaId: `upstream_${createHash('sha256').update(keyId).digest('base64url')}`,
    lastUsedAtMs: null,
  };
}
