/**
 * The key registry that all processes share, with copies in each of them (C8: what holds without Redis).
 *
 * A key that was revoked elsewhere stops working here when the journal brings the change, which takes milliseconds. How
 * that can fail, and what bounds it:
 * - Without proof that no event was missed (journal/redis-journal.ts), each key is confirmed in Redis before it is used.
 * - Events were lost or cut off: each key is confirmed before it is used again.
 * - Redis does not answer: keys that it confirmed within the grace (KEY_GRACE) stay good, and no other is let in. So a key that
 *   was revoked just before, or by others while only this process cannot reach Redis, works here for the grace at most.
 * - Redis lost the revocation (a failover, a restart without `appendonly`): the key works again. The gateways' logs have the
 *   revocation (docs/redis.md).
 */
import { isDeepStrictEqual } from 'node:util';
import type { RedisJournal } from '../journal/redis-journal.ts';
import type { RedisCommands, RedisLink } from '../redis/connection.ts';
import type { Connectivity } from '../redis/connectivity.ts';
import { registryKey } from '../redis/names.ts';
import { oneAtATime } from '../time/single-flight.ts';
import type { Timers } from '../time/timers.ts';
import { redisSpan } from '../tracing/spans.ts';
import { type ApiKey, type KeyHash, RegistryUnavailableError } from './key.ts';
import { KeyCache } from './key-cache.ts';
import { KeyCensus } from './key-census.ts';
import { RedisDirectory, type RedisDirectoryOptions } from './redis-directory.ts';
import type { KeyChange, KeyLookup, Made } from './registry.ts';

const WRITE_USES_EVERY_MS = 30_000;
/** In the witness: how many keys there are. */
const WITNESS = registryKey('known');
const WITNESS_SECONDS = 31 * 24 * 60 * 60;
/** Counting costs Redis three reads. */
const COUNT_EVERY_MS = 1000;

export interface RedisRegistryOptions extends Omit<RedisDirectoryOptions, 'redis'> {
  /** To the state Redis. It stays its owner's to close, after the registry; so does the journal. */
  readonly link: RedisLink;
  readonly journal: RedisJournal;
  readonly timers: Timers;
  /** How long a key that Redis has confirmed stays good while Redis does not answer (KEY_GRACE). */
  readonly graceMs: number;
  /** Keys were lost, or that is over; `census` has it. */
  readonly onLoss: () => void;
  /** A Redis that does not lose its data together with the other: the cache Redis. Null if there is none. */
  readonly witness: RedisCommands | null;
}

/** For gateways. It starts at once, whether Redis answers or not. */
export class RedisRegistry extends RedisDirectory implements KeyLookup {
  readonly #options: RedisRegistryOptions;
  readonly #cache: KeyCache;
  readonly #issued = new IssuedHashes(() => this.hashes());
  readonly #census = new KeyCensus();
  readonly #stops: readonly (() => void)[];
  /** When keys were last used, as far as Redis does not know yet. Only keys that were let in are in it. */
  #uses = new Map<KeyHash, number>();
  #cancelWrite = (): void => {};
  #cancelCount = (): void => {};
  #isClosed = false;
  /** Whether the witness has answered, or is of no use any more. */
  #isWitnessHeard = false;

  constructor(options: RedisRegistryOptions) {
    const { link, journal, graceMs } = options;
    super({ ...options, redis: link });
    this.#options = options;
    this.#cache = new KeyCache({
      ask: async (hash) => {
        await link.retried();
        return this.keyOf(hash);
      },
      nowMs: () => this.#nowMs(),
      graceMs,
    });
    const onGap = (): void => this.#onGap();
    this.#stops = [
      journal.on('keys', ({ hashes }) => {
        if (hashes === null) this.#onGap();
        else this.#dropCopies(hashes);
      }),
      journal.onSnapshot(onGap),
      link.onUp(() => void this.#count()),
    ];
    void this.#count();
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
    return { known: this.#census.known, loss: this.#census.loss };
  }

  /**
   * Before a key is added, the keys are counted: else it could stand for one that was lost since the last count. It is remembered
   * at once, since it could be lost before the next count.
   */
  protected override async commit(changes: readonly KeyChange[], isIssue: boolean): Promise<Made | null> {
    const added = changes.filter(({ replaces }) => replaces === null).length;
    if (added === 0) return super.commit(changes, isIssue);
    await this.#count();
    const { known } = this.#census;
    const made = await super.commit(changes, isIssue);
    if (made !== null && known !== null) this.#census.remember(known + added);
    return made;
  }

  touch({ hash }: ApiKey): void {
    this.#uses.set(hash, this.clock.nowMs());
  }

  /** Writes the last uses and stops listening. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    this.#cancelCount();
    this.#cancelWrite();
    await this.#writeUses();
  }

  #nowMs(): number {
    return this.clock.nowMicros() / 1000;
  }

  #connectivity(): Connectivity {
    if (this.#options.journal.isProven()) return 'hearing';
    return this.#options.link.mayAnswer() ? 'deaf' : 'alone';
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

  /** Counts the keys, and later again. Never rejects. */
  readonly #count = oneAtATime(async () => {
    if (this.#isClosed) return;
    this.#cancelCount();
    // If Redis does not answer, the next count tries again.
    await this.#countNow().catch(() => undefined);
    void this.#issued.refresh();
    if (!this.#isClosed) this.#cancelCount = this.#options.timers.after(COUNT_EVERY_MS, () => void this.#count());
  });

  /**
   * Notices that Redis has lost keys: this process remembers how many there were, or the witness does if all processes started
   * after the loss. The loss is noted in Redis, so that all processes, also later ones, know of it.
   */
  async #countNow(): Promise<void> {
    const { known: knownBefore, loss: lossBefore } = this.#census;
    const { known, noted } = await this.count();
    const note = this.#census.count(known, noted, this.clock.nowMs());
    if (note !== undefined) await this.noteLoss(note);
    const { loss } = this.#census;
    const isNews = known !== knownBefore || !isDeepStrictEqual(loss, lossBefore);
    if (isNews && (loss?.isAcknowledged === true || (loss === null && known > 0))) this.#tellWitness();
    // The answer is for the next count: a cache Redis that does not answer must hold up no count.
    else if (!this.#isWitnessHeard) void this.#askWitness();
    if (!isDeepStrictEqual(loss, lossBefore)) this.#options.onLoss();
  }

  async #askWitness(): Promise<void> {
    const { witness } = this.#options;
    const answer = await witness?.run((client) => client.get(WITNESS)).catch(() => undefined);
    if (answer === undefined || this.#isWitnessHeard) return;
    this.#isWitnessHeard = true;
    this.#census.remember(Number(answer) || 0);
  }

  /** Tells it how many keys there are, or to forget that there were any. If that fails, it is told again later. */
  #tellWitness(): void {
    const known = this.#census.known ?? 0;
    this.#isWitnessHeard = true;
    const told = this.#options.witness?.run<unknown>((client) =>
      known > 0 ? client.set(WITNESS, known, 'EX', WITNESS_SECONDS) : client.del(WITNESS),
    );
    told?.catch(() => undefined);
  }

  #writeUsesLater(): void {
    this.#cancelWrite = this.#options.timers.after(WRITE_USES_EVERY_MS, () => {
      void this.#writeUses();
      // So often that a cache Redis which evicts what was not used for long keeps it.
      if ((this.#census.known ?? 0) > 0 && this.#census.loss?.isAcknowledged !== false) this.#tellWitness();
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
