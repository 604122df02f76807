/**
 * The key registry that all processes share, with copies in each of them (C8: what holds without Redis).
 *
 * A key that was revoked elsewhere stops working here when the message of the change arrives, which takes milliseconds. How
 * that can fail, and what bounds it:
 * - A lost message: twice a second the process looks at the registry's version. Another one than that of the last change
 *   means that changes were missed, and each key is confirmed in Redis before it is used again.
 * - Messages do not arrive, or the process itself was held up: after `LOST_AFTER_MS` without proof that all arrived, each key
 *   is confirmed before it is used.
 * - Redis does not answer: keys that it confirmed within the grace (KEY_GRACE) stay good, and no other is let in. So a key that
 *   was revoked just before, or by others while only this process cannot reach Redis, works here for the grace at most.
 * - Redis lost the revocation (a failover, a restart without `appendonly`): the key works again. The gateways' logs have the
 *   revocation (docs/redis.md).
 */
import { isDeepStrictEqual } from 'node:util';
import type { RedisCommands, RedisLink } from '../redis/connection.ts';
import { type Connectivity, ConnectivityWatch } from '../redis/connectivity.ts';
import { registryKey } from '../redis/names.ts';
import type { Timers } from '../time/timers.ts';
import { redisSpan } from '../tracing/spans.ts';
import { type ApiKey, type KeyHash, type KeyLoss, RegistryUnavailableError } from './key.ts';
import { KeyCache } from './key-cache.ts';
import { changesChannel, RedisDirectory, type RedisDirectoryOptions } from './redis-directory.ts';
import type { KeyChange, KeyLookup } from './registry.ts';

const WRITE_USES_EVERY_MS = 30_000;
/** In the witness: how many keys there are. */
const WITNESS = registryKey('known');
const WITNESS_SECONDS = 31 * 24 * 60 * 60;
/** Longest time without proof that we are up to date. Longer than Redis has to answer a look at the version. */
const LOST_AFTER_MS = 900;

const CHANGE_MESSAGE = /^(\S{1,64}) (\S{1,64}) (\*|[0-9a-f]{64}(?:,[0-9a-f]{64})*)$/;

export interface RedisRegistryOptions extends Omit<RedisDirectoryOptions, 'redis'> {
  /** To the state Redis. It stays its owner's to close, after the registry. */
  readonly link: RedisLink;
  readonly timers: Timers;
  /** How long a key that Redis has confirmed stays good while Redis does not answer (KEY_GRACE). */
  readonly graceMs: number;
  /** All keys were lost, or that is over; `census` has it. */
  readonly onLoss: () => void;
  /** A Redis that does not lose its data together with the other: the cache Redis. Null if there is none. */
  readonly witness: RedisCommands | null;
}

/** For gateways. It starts at once, whether Redis answers or not. */
export class RedisRegistry extends RedisDirectory implements KeyLookup {
  readonly #options: RedisRegistryOptions;
  readonly #cache: KeyCache;
  readonly #issued = new IssuedHashes(() => this.hashes());
  readonly #watch: ConnectivityWatch;
  readonly #stopListening: () => void;
  /** When keys were last used, as far as Redis does not know yet. Only keys that were let in are in it. */
  #uses = new Map<KeyHash, number>();
  #cancelWrite = (): void => {};
  /** The registry's, after the last change that arrived. */
  #version: string | null = null;
  /** How many keys Redis has; null before the first look. */
  #known: number | null = null;
  /** The version that they were counted at, or before: a look that finds another one counts them again. */
  #countedVersion: string | null = null;
  #loss: KeyLoss | null = null;
  /** How many the witness knew of; null before it has answered, and once that is of no use. */
  #recalled: number | null = null;

  constructor(options: RedisRegistryOptions) {
    const { link, graceMs } = options;
    super({ ...options, redis: link });
    this.#options = options;
    this.#cache = new KeyCache({
      ask: (hash) => this.keyOf(hash),
      nowMs: () => this.#nowMs(),
      graceMs,
    });
    this.#stopListening = link.subscriber.listen(changesChannel(link), (message) => this.#onChange(message));
    this.#watch = new ConnectivityWatch({
      ...options,
      look: () => this.#look(),
      onChange: (now) => {
        // If Redis then stops answering, a key is used that it confirmed meanwhile, or that it was asked for in vain.
        if (now === 'subscriptionLost') this.#cache.markStale();
      },
    });
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

  override census() {
    return { known: this.#known, loss: this.#loss };
  }

  touch({ hash }: ApiKey): void {
    this.#uses.set(hash, this.clock.nowMs());
  }

  /** Writes the last uses and stops listening. Never rejects. */
  async close(): Promise<void> {
    this.#watch.close();
    this.#stopListening();
    this.#cancelWrite();
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
    if (this.#nowMs() - this.#watch.upToDateAtMs <= LOST_AFTER_MS) return 'connected';
    return this.#options.link.isUp() ? 'subscriptionLost' : 'disconnected';
  }

  #onChange(message: string): void {
    const [, before, after = null, hashes = '*'] = CHANGE_MESSAGE.exec(message) ?? [];
    const areNamed = hashes !== '*';
    if (areNamed) this.#dropCopies(hashes.split(','));
    // A look that was quicker than the message has found the change already.
    if (after !== null && after === this.#version) return;
    const isNext = before !== undefined && before === this.#version;
    this.#version = after;
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

  async #look(): Promise<void> {
    const { version, loss } = await this.summary();
    // They are as many as before unless something has changed.
    const known = version === this.#countedVersion ? this.#known : null;
    await this.#followLoss(known ?? (await this.count()), loss);
    this.#countedVersion = version;
    if (version !== this.#version) {
      this.#version = version;
      this.#onGap();
    }
    void this.#issued.refresh();
  }

  /**
   * Notices that Redis has lost all keys: this process remembers how many there were, or the witness does if all processes
   * started after the loss. The loss is noted in Redis, so that all processes, also later ones, know of it, and again if Redis
   * loses that too. If nobody remembers, it is no loss.
   */
  async #followLoss(known: number, noted: KeyLoss | null): Promise<void> {
    const before = this.#known || (this.#recalled ?? 0);
    const isChanged = known !== this.#known;
    this.#known = known;
    if (isChanged && known > 0) this.#tellWitness();
    // The answer is for the next look: a cache Redis that does not answer must hold up no look at the keys.
    if (known === 0 && noted === null && this.#recalled === null) void this.#askWitness();
    const own = before > 0 ? { atMs: this.clock.nowMs(), keys: before, isAcknowledged: false } : null;
    const loss = known > 0 ? null : (noted ?? this.#loss ?? own);
    // If it fails, the next look tries again.
    if ((loss === null) !== (noted === null)) await this.noteLoss(loss).catch(() => undefined);
    if (isDeepStrictEqual(loss, this.#loss)) return;
    this.#loss = loss;
    if (loss?.isAcknowledged === true) this.#tellWitness();
    this.#options.onLoss();
  }

  async #askWitness(): Promise<void> {
    const { witness } = this.#options;
    const answer = await witness?.run((client) => client.get(WITNESS)).catch(() => undefined);
    if (answer !== undefined) this.#recalled = Number(answer) || 0;
  }

  /** Tells it how many keys there are, or to forget that there were any. If that fails, it is told again later. */
  #tellWitness(): void {
    const known = this.#known ?? 0;
    this.#recalled = known > 0 ? null : 0;
    const told = this.#options.witness?.run<unknown>((client) =>
      known > 0 ? client.set(WITNESS, known, 'EX', WITNESS_SECONDS) : client.del(WITNESS),
    );
    told?.catch(() => undefined);
  }

  #writeUsesLater(): void {
    this.#cancelWrite = this.#options.timers.after(WRITE_USES_EVERY_MS, () => {
      void this.#writeUses();
      // So often that a cache Redis which evicts what was not used for long keeps it.
      if ((this.#known ?? 0) > 0) this.#tellWitness();
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
 * A hint which hashes are those of issued keys: a good key that is new to this process is looked up even from an address whose
 * failed attempts are used up (K9: a good key is never refused for its address). Keys are never deleted, so the set only grows;
 * a missing one only helps less.
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
