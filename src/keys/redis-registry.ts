/**
 * The key registry that all processes of a fleet share, with a memory in each of them. What is remembered is used as long
 * as every change is heard of (`RedisFeed`); where one may have been missed each key is confirmed before it is used; and
 * where Redis can't be asked, a key that it confirmed within the grace stays good, and nothing else is let in.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { IssuedHashes } from './issued-hashes.ts';
import { KeyFlights } from './key-flights.ts';
import { KeyUses } from './key-uses.ts';
import {
  type ApiKey,
  type ImportedKey,
  type IssuedKey,
  type KeyHash,
  type KeyRegistry,
  type KeyStatus,
  type NewKey,
  RegistryUnavailableError,
} from './key.ts';
import { KnownKeys, type Trust } from './known-keys.ts';
import { RedisFeed } from './redis-feed.ts';
import { createRedisKeyStore } from './redis-key-store.ts';
import { RedisKeyTable } from './redis-key-table.ts';

const CONFIRM_EVERY_MS = 30_000;
const UNKNOWN_MS = 5000;
const FLUSH_EVERY_MS = 30_000;
const MAX_OWN_VERSIONS = 100;

/** They report, for logs and metrics, and must not throw. Messages of errors are private. */
export interface RedisRegistryHooks {
  readonly onBrokenRecord?: (error: RegistryUnavailableError) => void;
  /** Told of each change in how far the memory can be trusted. */
  readonly onTrust?: (trust: Trust) => void;
}

export interface RedisRegistryOptions {
  /** To the state Redis. It stays its owner's to close, after the registry. */
  readonly link: RedisLink;
  readonly clock: Clock;
  /** How long a key that Redis has confirmed stays good while Redis can't be asked. */
  readonly graceMs: number;
  /** A key in use is confirmed again after that time. */
  readonly confirmEveryMs?: number;
  readonly maxKnown?: number;
  readonly maxUnknown?: number;
  readonly hooks?: RedisRegistryHooks;
}

export interface RedisRegistry extends KeyRegistry {
  isIssued(hash: KeyHash): boolean;
  /** How far the memory can be trusted now: `heard` where all is well. */
  trust(): Trust;
  /** Hands on the last uses and stops listening. Never rejects. */
  close(): Promise<void>;
}

class RememberingRegistry implements RedisRegistry {
  readonly #clock: Clock;
  readonly #hooks: RedisRegistryHooks;
  readonly #store: KeyRegistry;
  readonly #known: KnownKeys;
  readonly #issued: IssuedHashes;
  readonly #flights: KeyFlights<ApiKey | null>;
  readonly #uses: KeyUses;
  readonly #feed: RedisFeed;
  readonly #flushTimer: NodeJS.Timeout;
  /** Made by changes of this process that were taken note of already. */
  readonly #ownVersions = new LRUCache<string, true>({ max: MAX_OWN_VERSIONS });
  #lastTrust: Trust | null = null;

  constructor(options: RedisRegistryOptions) {
    const { link, clock, graceMs, confirmEveryMs = CONFIRM_EVERY_MS, hooks = {}, ...bounds } = options;
    const table = new RedisKeyTable(link);
    this.#clock = clock;
    this.#hooks = hooks;
    this.#store = createRedisKeyStore({
      redis: link,
      clock,
      onBrokenRecord: (error) => hooks.onBrokenRecord?.(error),
      onCommitted: (hashes, version) => {
        this.#ownVersions.set(version, true);
        this.#onChanged(hashes);
      },
    });
    this.#known = new KnownKeys({ confirmEveryMs, trustMs: graceMs, graceMs, unknownMs: UNKNOWN_MS, ...bounds });
    this.#issued = new IssuedHashes(() => table.hashes());
    this.#flights = new KeyFlights({
      ask: (hash) => this.#store.find(hash),
      onAnswer: (hash, key, askedAtMs) => this.#known.remember(hash, key, askedAtMs),
      nowMs: () => this.#nowMs(),
    });
    this.#uses = new KeyUses((uses) => table.noteUses(uses));
    this.#feed = new RedisFeed({
      link,
      clock,
      onChanged: (hashes, version) => {
        // What was read since this process made that change is no older than it.
        if (!this.#ownVersions.delete(version)) this.#onChanged(hashes);
      },
      onMissed: () => this.#onMissed(),
      // What is remembered would only grow wrong; it is not used even before, since the feed says so. But a Redis that then
      // fails must not lock everybody out: what it confirmed lately stays good once it was asked in vain (C8).
      onDeaf: () => this.#known.distrustAll(),
      onBeat: (trust) => this.#onBeat(trust),
    });
    this.#feed.start();
    this.#flushTimer = setInterval(() => void this.#uses.flush(), FLUSH_EVERY_MS).unref();
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    const known = this.#recall(hash);
    if (known !== undefined) return known;
    try {
      return await this.#flights.join(hash);
    } catch (error) {
      if (!(error instanceof RegistryUnavailableError)) throw error;
      const key = this.#known.withinGrace(hash, this.#nowMs());
      if (key === null) throw error;
      return key;
    }
  }

  peek(hash: KeyHash): ApiKey | undefined {
    return this.#recall(hash) ?? undefined;
  }

  isIssued(hash: KeyHash): boolean {
    return this.#issued.has(hash);
  }

  list(): Promise<readonly ApiKey[]> {
    return this.#store.list();
  }

  get(keyId: string): Promise<ApiKey | null> {
    return this.#store.get(keyId);
  }

  create(key: NewKey): Promise<IssuedKey> {
    return this.#store.create(key);
  }

  setStatus(keyId: string, status: KeyStatus): Promise<ApiKey | null> {
    return this.#store.setStatus(keyId, status);
  }

  rotate(keyId: string, overlapMs: number): Promise<IssuedKey | null> {
    return this.#store.rotate(keyId, overlapMs);
  }

  importKeys(keys: readonly ImportedKey[]): Promise<{ readonly added: number; readonly replaced: number }> {
    return this.#store.importKeys(keys);
  }

  touch(key: ApiKey): void {
    this.#uses.note(key.hash, this.#clock.nowMs());
  }

  trust(): Trust {
    return this.#feed.trust();
  }

  async close(): Promise<void> {
    clearInterval(this.#flushTimer);
    this.#feed.close();
    await this.#uses.flush();
  }

  /** What memory says: null for a key that was never issued, undefined where Redis must be asked. */
  #recall(hash: KeyHash): ApiKey | null | undefined {
    const recollection = this.#known.recall(hash, this.#nowMs(), this.#feed.trust());
    if (recollection.kind === 'unsure') return undefined;
    if (recollection.kind === 'none') return null;
    // Not being able to confirm it now is no news: the grace bounds how long that may go on.
    if (recollection.isDue) this.#flights.join(hash).catch(() => undefined);
    return recollection.key;
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / 1000;
  }

  #onChanged(hashes: readonly KeyHash[]): void {
    for (const hash of hashes) {
      this.#known.forget(hash);
      this.#flights.overtake(hash);
    }
    this.#issued.add(hashes);
  }

  #onMissed(): void {
    this.#known.doubtAll();
    this.#flights.overtakeAll();
    this.#issued.doubt();
    void this.#issued.catchUp();
  }

  #onBeat(trust: Trust): void {
    if (trust !== this.#lastTrust) this.#hooks.onTrust?.(trust);
    this.#lastTrust = trust;
    if (trust !== 'offline') void this.#issued.catchUp();
  }
}

/**
 * A registry over the state Redis, for a gateway. It returns at once; while Redis can't be asked, `find` rejects with
 * RegistryUnavailableError but for keys that Redis has confirmed within `graceMs`.
 */
export function createRedisRegistry(options: RedisRegistryOptions): RedisRegistry {
  return new RememberingRegistry(options);
}
