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
import { messageOf } from '../log/error.ts';

/** Look-ups of one second that were in vain or have no answer yet. One that finds a key makes room at once. */
const LOOKUPS_PER_SECOND = 10;
/** How long a look-up waits for room. */
const ROOM_WITHIN_MS = 5000;
const LOOK_FOR_ROOM_EVERY_MS = 50;
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
 * `find` rejects with RegistryUnavailableError if the registry or the store does not answer, or if it has waited for 5 s
 * while 10 keys a second were looked up in vain, and there is no copy that was confirmed within the grace.
 */
export class StoreLookup implements KeyLookup {
  readonly #options: StoreLookupOptions;
  readonly #cache: KeyCache;
  /** When each look-up began that was in vain or goes on; of the last second, and never more than LOOKUPS_PER_SECOND. */
  readonly #lookUps = new Map<symbol, number>();
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
    await this.#untilRoom();
    const lookUp = Symbol('look-up');
    this.#lookUps.set(lookUp, this.#nowMs());
    try {
      const record = await this.#options.lookUp(hash);
      this.#noWaitUntilMs.delete(hash);
      if (record === null) return null;
      this.#lookUps.delete(lookUp);
      return toApiKey(hash, record);
    } catch (error) {
      throw new RegistryUnavailableError(`The store cannot be asked for a key: ${messageOf(error)}`, { cause: error });
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

  /** In order of arrival, since all look again at the same times. The authenticator bounds how many of one address wait. */
  async #untilRoom(): Promise<void> {
    const untilMs = this.#nowMs() + ROOM_WITHIN_MS;
    while (this.#lookUpsLeft() <= 0) {
      if (this.#nowMs() > untilMs) {
        throw new RegistryUnavailableError(`More than ${LOOKUPS_PER_SECOND} keys a second to look up at the store.`);
      }
      await new Promise<void>((resolve) => this.#options.timers.after(LOOK_FOR_ROOM_EVERY_MS, resolve));
    }
  }

  #lookUpsLeft(): number {
    const nowMs = this.#nowMs();
    for (const [lookUp, atMs] of this.#lookUps) if (nowMs - atMs >= 1000) this.#lookUps.delete(lookUp);
    return LOOKUPS_PER_SECOND - this.#lookUps.size;
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
