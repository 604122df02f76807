/**
 * The key registry that all processes share, with copies in each of them (C8). While every change arrives (`RedisFeed`),
 * copies are used without asking; if changes may be missed, each key is confirmed before it is used; and while Redis does
 * not answer, keys that it confirmed within the grace stay good, and no other is let in.
 */
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Timers } from '../timers.ts';
import { redisSpan } from '../tracing/spans.ts';
import { IssuedHashes } from './issued-hashes.ts';
import { type ApiKey, type KeyHash, type KeyLookup, RegistryUnavailableError } from './key.ts';
import { KeyCache, type SyncState } from './key-cache.ts';
import { RedisFeed } from './redis-feed.ts';
import { RedisKeyTable } from './redis-table.ts';
import { TableRegistry } from './registry.ts';

/** A key in use is confirmed again after that time. */
const CONFIRM_EVERY_MS = 30_000;
const WRITE_USES_EVERY_MS = 30_000;

export interface RedisRegistryOptions {
  /** To the state Redis. It stays its owner's to close, after the registry. */
  readonly link: RedisLink;
  readonly clock: Clock;
  readonly timers: Timers;
  /** How long a key that Redis has confirmed stays good while Redis does not answer (KEY_GRACE). */
  readonly graceMs: number;
  /** Called for each record that `list` leaves out. The message is private. */
  readonly onBrokenRecord?: (error: RegistryUnavailableError) => void;
  /** Called at each change of how far copies may be used. */
  readonly onSyncState?: (state: SyncState) => void;
}

/** For gateways. It starts at once, whether Redis answers or not. */
export class RedisRegistry extends TableRegistry implements KeyLookup {
  readonly #options: RedisRegistryOptions;
  readonly #table: RedisKeyTable;
  readonly #cache: KeyCache;
  readonly #issued: IssuedHashes;
  readonly #feed: RedisFeed;
  /** Versions that changes of this process made, and that the feed has not brought back yet. */
  readonly #ownVersions = new Set<string>();
  /** When keys were last used, as far as Redis does not know yet. Only keys that were let in are in it. */
  #uses = new Map<KeyHash, number>();
  #writing: Promise<void> = Promise.resolve();
  #cancelWrite = (): void => {};
  #state: SyncState | null = null;

  constructor(options: RedisRegistryOptions) {
    const { link, clock, timers, graceMs } = options;
    const table = new RedisKeyTable({
      redis: link,
      onBrokenRecord: options.onBrokenRecord,
      onCommitted: (hashes, version) => {
        this.#ownVersions.add(version);
        this.#dropCopies(hashes);
      },
    });
    super(table, clock);
    this.#options = options;
    this.#table = table;
    this.#issued = new IssuedHashes(() => table.hashes());
    this.#cache = new KeyCache({
      ask: (hash) => table.get(hash),
      nowMs: () => clock.nowMicros() / 1000,
      confirmEveryMs: CONFIRM_EVERY_MS,
      freshMs: graceMs,
      graceMs,
    });
    this.#feed = new RedisFeed({
      link,
      clock,
      timers,
      onChange: (hashes, version) => {
        // Copies made since this process's own change are no older than it.
        if (!this.#ownVersions.delete(version)) this.#dropCopies(hashes);
      },
      onGap: () => this.#onGap(),
      onMissing: () => this.#cache.invalidateAll(),
      onState: (state) => this.#onState(state),
    });
    this.#feed.start();
    this.#scheduleWrite();
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    const copy = this.#cache.get(hash, this.#feed.state());
    if (copy !== undefined) return copy;
    try {
      return await redisSpan('state', 'HGET key', this.#cache.load(hash));
    } catch (error) {
      const confirmed = error instanceof RegistryUnavailableError ? this.#cache.lastConfirmed(hash) : null;
      if (confirmed === null) throw error;
      return confirmed;
    }
  }

  peek(hash: KeyHash): ApiKey | undefined {
    return this.#cache.get(hash, this.#feed.state()) ?? undefined;
  }

  isIssued(hash: KeyHash): boolean {
    return this.#issued.has(hash);
  }

  touch({ hash }: ApiKey): void {
    this.#uses.set(hash, this.#options.clock.nowMs());
  }

  /** Writes the last uses and stops listening. Never rejects. */
  async close(): Promise<void> {
    this.#cancelWrite();
    this.#feed.close();
    await this.#writeUses();
  }

  #dropCopies(hashes: readonly KeyHash[]): void {
    for (const hash of hashes) this.#cache.delete(hash);
    this.#issued.add(hashes);
  }

  #onGap(): void {
    this.#ownVersions.clear();
    this.#cache.markStale();
    this.#issued.markIncomplete();
    void this.#issued.refresh();
  }

  #onState(state: SyncState): void {
    if (state !== this.#state) this.#options.onSyncState?.(state);
    this.#state = state;
    if (state !== 'disconnected') void this.#issued.refresh();
  }

  #scheduleWrite(): void {
    this.#cancelWrite = this.#options.timers.after(WRITE_USES_EVERY_MS, () => {
      void this.#writeUses();
      this.#scheduleWrite();
    });
  }

  /** One at a time, so that an older time is never written after a newer one. */
  #writeUses(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeUsesNow());
    return this.#writing;
  }

  /** Never rejects: uses that cannot be written are kept for the next time. */
  async #writeUsesNow(): Promise<void> {
    const uses = this.#uses;
    if (uses.size === 0) return;
    this.#uses = new Map();
    try {
      await this.#table.recordUses(uses);
    } catch {
      this.#uses = new Map([...uses, ...this.#uses]);
    }
  }
}
