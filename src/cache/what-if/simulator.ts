/**
 * Predicts hit ratio, store load and staleness of each class for other TTLs: at each read it works out what a cache with
 * each of them would do. It holds times and no answers.
 *
 * While there is room every key is followed. Then keys are sampled by their hash, below a threshold that falls as keys
 * come (SHARDS with a fixed size: Waldspurger and others, 2015); the hot keys are followed all the same, so that their
 * reads are exact. The sampled reads stand for all others, which are only counted.
 *
 * A simulated copy is fresh for its TTL, shortened by the cache's jitter. The first read past that is one call to the
 * store, and is served the old copy within the class's `stale` time in force. A single record that a list page backfills
 * is a copy filled at that moment, without a call. Not modelled: purges, failures, and what memory can't hold.
 */
import type { Clock } from '../../time/clock.ts';
import { mix32 } from '../request.ts';
import { MAX_JITTER } from '../plan.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import { KeyTable, MAX_KEYS, STATE } from './keys.ts';
import { CANDIDATE_FRESH_MS, type Counts, type Outcomes, Tally } from './tally.ts';

/** A read, by how hot its key was; or a backfill of a key, which is hot or not. In the order of their codes in messages. */
export const EVENT_KINDS = ['tail', 'turning', 'hot', 'backfill', 'hot-backfill'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

const CANDIDATES = CANDIDATE_FRESH_MS.length;
/** In a row of the table: when each candidate's copy was filled, in ticks. 32 bits hold ages of up to 248 days. */
const FILLS = STATE + 1;
const TICK_MS = 10;
const NEVER = 2 ** 31;
/** The state: the class's code; whether the key was hot since the rows were last looked through; reads, up to 255. */
const CLASS_BITS = 15;
const RECENTLY_HOT = 16;
const ONE_READ = 256;
const MAX_READS = 255;
/** Reads may come this much out of order. */
const MAX_LATE_MS = 10_000;
const DAY_MS = 86_400_000;
/** How much of the table is free after room was made. */
const ROOM = 1 / 16;
const ALL_HASHES = 2 ** 32;

/** The key within its class, for the simulator. `keyHash` is `hash32` of the key. */
export function keyId(cacheClass: CacheClass, keyHash: number): number {
  return mix32(keyHash ^ Math.imul(codeOf(cacheClass), 0x9e3779b9));
}

/** Whether the key is sampled at that level: level 0 samples every key, each further one 7/8 of the one before. */
export function isSampled(id: number, level: number): boolean {
  return id < Math.floor(ALL_HASHES * sampledShare(level));
}

function sampledShare(level: number): number {
  return (7 / 8) ** level;
}

function codeOf(cacheClass: CacheClass): number {
  return CACHE_CLASSES.indexOf(cacheClass) + 1;
}

/** The keys of a class that are followed, and their tally. */
interface Watched {
  readonly class: CacheClass;
  /** At which its keys are sampled. */
  level: number;
  tally: Tally;
}

export class TtlSimulator {
  readonly #clock: Clock;
  readonly #ttl: Pick<TtlPolicy, 'of'>;
  readonly #keys = new KeyTable(FILLS + CANDIDATES);
  /** By the code of the class. */
  readonly #watched = new Map<number, Watched>();
  readonly #outcomes: Outcomes = {
    calls: new Uint8Array(CANDIDATES),
    waits: new Uint8Array(CANDIDATES),
    agesMs: new Float64Array(CANDIDATES),
  };

  constructor({ clock, ttl }: { readonly clock: Clock; readonly ttl: Pick<TtlPolicy, 'of'> }) {
    this.#clock = clock;
    this.#ttl = ttl;
  }

  /** The level at which each class's keys are sampled, in the order of the classes. */
  levels(): readonly number[] {
    return CACHE_CLASSES.map((cacheClass) => this.#watched.get(codeOf(cacheClass))?.level ?? 0);
  }

  /** The counts of all candidates; null if nothing was read. */
  countsOf(cacheClass: CacheClass): Counts | null {
    return this.#watched.get(codeOf(cacheClass))?.tally.counts() ?? null;
  }

  /** A read of a key that is followed nowhere. */
  countUnsampled(cacheClass: CacheClass): void {
    this.#watch(cacheClass, this.#clock.nowMs()).tally.countUnsampled();
  }

  /** `id` is the key's `keyId`; `atMs` is Unix milliseconds, nearly in order: up to ten seconds late does no harm. */
  add(kind: EventKind, cacheClass: CacheClass, id: number, atMs: number): void {
    const timeMs = Math.min(atMs, this.#clock.nowMs());
    const watched = this.#watch(cacheClass, timeMs);
    const isHot = kind === 'turning' || kind === 'hot';
    const known = this.#keys.find(id);
    const row = known < 0 && (isHot || isSampled(id, watched.level)) ? this.#follow(id, cacheClass, timeMs) : known;
    if (kind === 'backfill' || kind === 'hot-backfill') {
      if (row >= 0) this.#setFills(row, ticksOf(timeMs));
      return;
    }
    if (row < 0) {
      watched.tally.countUnsampled();
      return;
    }
    const { cells } = this.#keys;
    if (isHot) cells[row + STATE] = (cells[row + STATE] ?? 0) | RECENTLY_HOT;
    const isSample = isSampled(id, watched.level);
    if (!isSample && (known < 0 || kind === 'turning')) {
      this.#guess(row, timeMs, timeMs - watched.tally.startedMs);
      watched.tally.countUnsampled();
      return;
    }
    this.#read(row, timeMs, this.#ttl.of(cacheClass).staleMs);
    const isExact = watched.level === 0 || kind === 'hot';
    if (!isExact && !isSample) {
      watched.tally.countUnsampled();
      return;
    }
    const state = cells[row + STATE] ?? 0;
    const before = Math.floor(state / ONE_READ);
    if (before < MAX_READS) cells[row + STATE] = state + ONE_READ;
    watched.tally.count(isExact ? null : 1 / sampledShare(watched.level), before, this.#outcomes);
  }

  /** Brings the class up to date. */
  #watch(cacheClass: CacheClass, timeMs: number): Watched {
    const known = this.#watched.get(codeOf(cacheClass));
    if (known === undefined) {
      const watched = { class: cacheClass, level: 0, tally: new Tally(timeMs) };
      this.#watched.set(codeOf(cacheClass), watched);
      return watched;
    }
    if (known.tally.turn(timeMs) && known.level > 0) this.#beginAnewIfFew(known, timeMs);
    return known;
  }

  /** If all keys of the class would fit again: its sample would stay small for good. */
  #beginAnewIfFew(watched: Watched, timeMs: number): void {
    this.#forget(timeMs);
    const sampled = this.#countSampled().get(watched) ?? 0;
    if (sampled > (this.#keys.free / 2) * sampledShare(watched.level)) return;
    watched.level = 0;
    watched.tally = new Tally(timeMs);
  }

  /** A row for a key that has none, without a copy; -1 if there is no room for it. */
  #follow(id: number, cacheClass: CacheClass, timeMs: number): number {
    if (this.#keys.free === 0) this.#makeRoom(timeMs);
    if (this.#keys.free === 0) return -1;
    const row = this.#keys.add(id, codeOf(cacheClass));
    this.#setFills(row, ticksOf(timeMs) ^ NEVER);
    return row;
  }

  /**
   * Classes with the most sampled keys give up some of them until some rows are free. Keys that are not hot until the next
   * time are not followed as such any more.
   */
  #makeRoom(timeMs: number): void {
    this.#forget(timeMs);
    while (this.#keys.free < MAX_KEYS * ROOM) {
      const [largest] = [...this.#countSampled()].toSorted(([, a], [, b]) => b - a);
      if (largest === undefined) break;
      largest[0].level += 1;
      this.#forget(timeMs);
    }
    const { cells, width } = this.#keys;
    for (let at = STATE; at < cells.length; at += width) cells[at] = (cells[at] ?? 0) & ~RECENTLY_HOT;
  }

  /** Forgets keys that are neither sampled nor hot, and those that have no copy of use for any TTL any more. */
  #forget(timeMs: number): void {
    const { cells } = this.#keys;
    this.#keys.removeIf((row) => {
      const state = cells[row + STATE] ?? 0;
      const watched = this.#watched.get(state & CLASS_BITS);
      if (watched === undefined) return true;
      const { freshMs, staleMs } = this.#ttl.of(watched.class);
      // The copy of the shortest candidate is as old as the last read, nearly.
      const idleMs = this.#ageMs(row, 0, timeMs);
      if (idleMs < 0 || idleMs > Math.max(DAY_MS, freshMs) + staleMs) return true;
      return !isSampled(cells[row] ?? 0, watched.level) && (state & RECENTLY_HOT) === 0;
    });
  }

  /** How many keys of each class are sampled; classes without any are left out. */
  #countSampled(): ReadonlyMap<Watched, number> {
    const { cells, width } = this.#keys;
    const counts = new Map<Watched, number>();
    for (let row = 0; row < cells.length; row += width) {
      const watched = this.#watched.get((cells[row + STATE] ?? 0) & CLASS_BITS);
      if (watched !== undefined && isSampled(cells[row] ?? 0, watched.level)) {
        counts.set(watched, (counts.get(watched) ?? 0) + 1);
      }
    }
    return counts;
  }

  /** Works out what each cache does at a read of the key in that row. */
  #read(row: number, timeMs: number, staleMs: number): void {
    const { cells } = this.#keys;
    const { calls, waits, agesMs } = this.#outcomes;
    for (let column = 0; column < CANDIDATES; column++) {
      const ageMs = this.#ageMs(row, column, timeMs);
      const jitter = randomOf(cells[row] ?? 0, cells[row + FILLS + column] ?? 0);
      const endMs = (CANDIDATE_FRESH_MS[column] ?? 0) * (1 - MAX_JITTER * jitter);
      const isCall = ageMs < 0 || ageMs >= endMs;
      if (isCall) cells[row + FILLS + column] = ticksOf(timeMs);
      const isWait = isCall && (ageMs < 0 || ageMs >= endMs + staleMs);
      calls[column] = isCall ? 1 : 0;
      waits[column] = isWait ? 1 : 0;
      agesMs[column] = isWait ? 0 : ageMs;
    }
  }

  /** A hot key that was not followed has copies of any age up to their TTL, or as old as the first read there was. */
  #guess(row: number, timeMs: number, watchedMs: number): void {
    const { cells } = this.#keys;
    for (const [column, freshMs] of CANDIDATE_FRESH_MS.entries()) {
      const ageMs = freshMs < watchedMs ? freshMs * randomOf(cells[row] ?? 0, column) : watchedMs;
      cells[row + FILLS + column] = ticksOf(timeMs - ageMs);
    }
  }

  #setFills(row: number, ticks: number): void {
    this.#keys.cells.fill(ticks, row + FILLS, row + FILLS + CANDIDATES);
  }

  /** Negative if no copy is known, which is all that is known after a clock was set back. */
  #ageMs(row: number, column: number, timeMs: number): number {
    const ageMs = ((ticksOf(timeMs) - (this.#keys.cells[row + FILLS + column] ?? 0)) | 0) * TICK_MS;
    return ageMs < -MAX_LATE_MS ? ageMs : Math.max(0, ageMs);
  }
}

/** The last 32 bits of Unix time. */
function ticksOf(timeMs: number): number {
  return Math.floor(timeMs / TICK_MS) >>> 0;
}

/** A number in [0, 1) that depends on the copy alone. */
function randomOf(id: number, fill: number): number {
  return mix32(id ^ Math.imul(fill + 1, 0x9e3779b1)) / ALL_HASHES;
}
