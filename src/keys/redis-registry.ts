/**
 * The key registry that all processes share, with copies in each of them (C8: what holds without Redis). Here it is decided
 * when a key that was revoked elsewhere stops working: when the message of the change arrives, which takes milliseconds, and
 * after `LOST_AFTER_MS` at the latest, since then every key is confirmed before it is used; while Redis is down, after
 * KEY_GRACE. (Keys of the store itself: store-lookup.ts.)
 *
 * Whether changes arrive: four times a second the process sends itself a heartbeat through Redis, along the way of the
 * changes. A heartbeat that arrives proves that every change published before it was sent has arrived, and it carries the
 * registry's version: another version than that of the last change means that some were missed. So a cut connection is
 * noticed at once, and one that silently delivers nothing, or delivers late, after `LOST_AFTER_MS`. While Redis does not
 * answer, keys that it confirmed within the grace stay good, and no other is let in.
 */
import { randomUUID } from 'node:crypto';
import { type RedisLink, replyCode } from '../redis/connection.ts';
import type { Connectivity } from '../redis/connectivity.ts';
import { channelName } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { Timers } from '../timers.ts';
import { redisSpan } from '../tracing/spans.ts';
import { type ApiKey, type KeyHash, RegistryUnavailableError } from './key.ts';
import { KeyCache } from './key-cache.ts';
import { changesChannel, RedisDirectory, type RedisDirectoryOptions, VERSION } from './redis-directory.ts';
import type { KeyChange, KeyLookup } from './registry.ts';

const WRITE_USES_EVERY_MS = 30_000;
const HEARTBEAT_EVERY_MS = 250;
/** Since the last heartbeat that arrived was sent. Longer than Redis has to answer one. */
const LOST_AFTER_MS = 900;
/** Redis that has not answered a heartbeat for so long is silent itself: the subscription is not to blame. */
const UNANSWERED_AFTER_MS = 100;
/** A connection that was just cut, or just came back, misses one at most. */
const MAX_MISSED = 2;
/** Heartbeats that may still arrive. */
const MAX_AWAITED = 8;
/** After so many that were answered and did not arrive, and again after as many, the subscriber connects anew. */
const RECONNECT_AFTER_MISSED = 8;
/** Refusals of every command: a Cluster without most of its primaries, a Redis that loads its data or lost its primary. */
const REFUSES_ALL = new Set(['CLUSTERDOWN', 'LOADING', 'MASTERDOWN']);

const HEARTBEAT = defineScript(
  'keysBeat',
  `
redis.call('PUBLISH', ARGV[1], ARGV[2] .. ' ' .. (redis.call('GET', KEYS[1]) or '-'))
return 1
`,
);

const CHANGE_MESSAGE = /^(\S{1,64}) (\S{1,64}) (\*|[0-9a-f]{64}(?:,[0-9a-f]{64})*)$/;
const HEARTBEAT_MESSAGE = /^([0-9]{1,15}) (\S{1,64})$/;

export interface RedisRegistryOptions extends Omit<RedisDirectoryOptions, 'redis'> {
  /** To the state Redis. It stays its owner's to close, after the registry. */
  readonly link: RedisLink;
  readonly timers: Timers;
  /** How long a key that Redis has confirmed stays good while Redis does not answer (KEY_GRACE). */
  readonly graceMs: number;
  /** Called at each change of how far copies may be used. */
  readonly onConnectivity?: (connectivity: Connectivity) => void;
}

/** For gateways. It starts at once, whether Redis answers or not. */
export class RedisRegistry extends RedisDirectory implements KeyLookup {
  readonly #options: RedisRegistryOptions;
  readonly #cache: KeyCache;
  readonly #issued = new IssuedHashes(() => this.hashes());
  readonly #endings: readonly (() => void)[];
  /** When keys were last used, as far as Redis does not know yet. Only keys that were let in are in it. */
  #uses = new Map<KeyHash, number>();
  #cancelWrite = (): void => {};
  #cancelBeat = (): void => {};
  #isBeating = false;
  #isClosed = false;

  readonly #beatChannel = channelName('keys', 'beat', randomUUID());
  #lastBeat = 0;
  /** When the heartbeats that may still arrive were sent, by their number. */
  readonly #sentAtMs = new Map<number, number>();
  /** When the newest heartbeat that arrived was sent. */
  #arrivedSentAtMs = Number.NEGATIVE_INFINITY;
  /** Heartbeats in a row that were answered and did not arrive, with the one under way. */
  #missed = 0;
  #doesRedisAnswer = false;
  #isUnanswered = false;
  /** The registry's, after the last change that arrived. */
  #version: string | null = null;
  #reported: Connectivity | null = null;

  constructor(options: RedisRegistryOptions) {
    const { link, graceMs } = options;
    super({ ...options, redis: link });
    this.#options = options;
    this.#cache = new KeyCache({
      ask: (hash) => this.keyOf(hash),
      nowMs: () => this.#nowMs(),
      freshMs: graceMs,
      graceMs,
    });
    const { subscriber } = link;
    this.#endings = [
      // In this order: if heartbeats arrive, changes do.
      subscriber.listen(changesChannel(link), (message) => this.#onChange(message)),
      subscriber.listen(this.#beatChannel, (message) => this.#onHeartbeat(message)),
      subscriber.onDown(() => this.#loseSync()),
      // At once, so that the state does not wait for the next heartbeat.
      subscriber.onUp(() => void this.#beat()),
      link.onUp(() => void this.#beat()),
    ];
    void this.#beat();
    this.#writeUsesLater();
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    const copy = this.#cache.get(hash, this.#connectivity());
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
    return this.#cache.get(hash, this.#connectivity()) ?? undefined;
  }

  isIssued(hash: KeyHash): boolean {
    return this.#issued.has(hash);
  }

  touch({ hash }: ApiKey): void {
    this.#uses.set(hash, this.clock.nowMs());
  }

  /** Writes the last uses and stops listening. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelBeat();
    this.#cancelWrite();
    for (const end of this.#endings) end();
    this.#loseSync();
    await this.#writeUses();
  }

  protected override async commit(changes: readonly KeyChange[]): Promise<boolean> {
    const isMade = await super.commit(changes);
    if (isMade) this.#dropCopies(changes.map(({ key }) => key.hash));
    return isMade;
  }

  #nowMs(): number {
    return this.clock.nowMicros() / 1000;
  }

  #connectivity(): Connectivity {
    if (this.#nowMs() - this.#arrivedSentAtMs <= LOST_AFTER_MS) return 'connected';
    return this.#doesRedisAnswer && !this.#isUnanswered ? 'subscriptionLost' : 'disconnected';
  }

  #loseSync(): void {
    this.#arrivedSentAtMs = Number.NEGATIVE_INFINITY;
    this.#sentAtMs.clear();
  }

  #onChange(message: string): void {
    const [, before, after = null, hashes] = CHANGE_MESSAGE.exec(message) ?? [];
    const isNext = before !== undefined && before === this.#version;
    this.#version = after;
    const areNamed = hashes !== undefined && hashes !== '*';
    if (areNamed) this.#dropCopies(hashes.split(','));
    if (!isNext || !areNamed) this.#onGap();
  }

  #dropCopies(hashes: readonly KeyHash[]): void {
    for (const hash of hashes) this.#cache.delete(hash);
    this.#issued.add(hashes);
  }

  /** Changes were missed: any key may have changed. */
  #onGap(): void {
    this.#cache.markStale();
    this.#issued.markIncomplete();
    void this.#issued.refresh();
  }

  #onHeartbeat(message: string): void {
    const [, number, version] = HEARTBEAT_MESSAGE.exec(message) ?? [];
    const sentAtMs = this.#sentAtMs.get(Number(number));
    if (version === undefined || sentAtMs === undefined) return;
    this.#sentAtMs.delete(Number(number));
    this.#missed = 0;
    if (version !== this.#version) {
      this.#version = version;
      this.#onGap();
    }
    this.#arrivedSentAtMs = Math.max(this.#arrivedSentAtMs, sentAtMs);
  }

  /** Sends a heartbeat, and the next one later. Never rejects. The command's own timeout bounds it. */
  async #beat(): Promise<void> {
    if (this.#isBeating || this.#isClosed) return;
    const { link, timers } = this.#options;
    this.#cancelBeat();
    // Now and not after the answer, which may come just before the heartbeat arrives.
    if (this.#lastBeat > 0) this.#adopt(this.#connectivity());
    // If Redis then stops answering, a key is used that it confirmed meanwhile, or that it was asked for in vain.
    if (this.#missed >= MAX_MISSED) this.#cache.markStale();
    if (this.#missed % RECONNECT_AFTER_MISSED === RECONNECT_AFTER_MISSED - 1) link.subscriber.renew();
    this.#missed += 1;
    this.#lastBeat += 1;
    this.#sentAtMs.set(this.#lastBeat, this.#nowMs());
    this.#sentAtMs.delete(this.#lastBeat - MAX_AWAITED);
    this.#isBeating = true;
    const answered = timers.after(UNANSWERED_AFTER_MS, () => {
      this.#isUnanswered = true;
    });
    try {
      await runScript(link, HEARTBEAT, { keys: [VERSION], args: [this.#beatChannel, this.#lastBeat] });
      this.#doesRedisAnswer = true;
    } catch (error) {
      const code = replyCode(error);
      // A Redis that refuses a heartbeat can still be asked for keys, unless it refuses everything.
      this.#doesRedisAnswer = code !== null && !REFUSES_ALL.has(code);
      this.#missed = 0;
    }
    answered();
    this.#isBeating = false;
    this.#isUnanswered = false;
    if (!this.#isClosed) this.#cancelBeat = timers.after(HEARTBEAT_EVERY_MS, () => void this.#beat());
  }

  #adopt(connectivity: Connectivity): void {
    if (connectivity !== this.#reported) this.#options.onConnectivity?.(connectivity);
    this.#reported = connectivity;
    if (connectivity !== 'disconnected') void this.#issued.refresh();
  }

  #writeUsesLater(): void {
    this.#cancelWrite = this.#options.timers.after(WRITE_USES_EVERY_MS, () => {
      void this.#writeUses();
      this.#writeUsesLater();
    });
  }

  /** Never rejects: uses that cannot be written are kept for the next time. */
  async #writeUses(): Promise<void> {
    const uses = this.#uses;
    this.#uses = new Map();
    try {
      await this.recordUses(uses);
    } catch {
      this.#uses = new Map([...uses, ...this.#uses]);
    }
  }
}

/** Some 10 MB. */
const MAX_HASHES = 250_000;
/** 48 bits, which a number holds exactly. Another hash that begins alike costs one look-up. */
const PREFIX_DIGITS = 12;

/**
 * A hint which hashes are those of issued keys: a good key that is new to this process is looked up even from an address
 * whose failed attempts are used up (K9). Keys are never deleted, so the set only grows; a missing one only helps less.
 */
class IssuedHashes {
  readonly #prefixes = new Set<number>();
  /** Reads the hashes of all keys, in pages. */
  readonly #read: () => AsyncIterable<readonly KeyHash[]>;
  #isReading = false;
  #isComplete = false;

  constructor(read: () => AsyncIterable<readonly KeyHash[]>) {
    this.#read = read;
  }

  has(hash: KeyHash): boolean {
    return this.#prefixes.has(prefixOf(hash));
  }

  add(hashes: readonly KeyHash[]): void {
    for (const hash of hashes) if (this.#prefixes.size < MAX_HASHES) this.#prefixes.add(prefixOf(hash));
  }

  /** Some may be missing: `refresh` reads them. */
  markIncomplete(): void {
    this.#isComplete = false;
  }

  /** Reads all hashes if some may be missing. Never rejects: a reading that failed is repeated by the next call. */
  async refresh(): Promise<void> {
    if (this.#isComplete || this.#isReading) return;
    this.#isComplete = true;
    this.#isReading = true;
    try {
      for await (const page of this.#read()) this.add(page);
    } catch {
      this.#isComplete = false;
    } finally {
      this.#isReading = false;
    }
  }
}

function prefixOf(hash: KeyHash): number {
  return Number.parseInt(hash.slice(0, PREFIX_DIGITS), 16);
}
