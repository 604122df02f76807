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
import type { Clock } from '../../clock.ts';
import { mix32 } from '../request.ts';
import { MAX_JITTER } from '../plan.ts';
import { CACHE_CLASSES, type CacheClass, type CacheTtl, type TtlPolicy } from '../ttl-policy.ts';
import { ChangeTally } from './change-rate.ts';
import { type Heat, KeyTable, MAX_KEYS } from './keys.ts';
import { CANDIDATE_FRESH_MS, type Counts, type Outcomes, Tally } from './tally.ts';

/** A read, by how hot its key was; or a backfill of a key, which is hot or not. In the order of their codes in messages. */
export const EVENT_KINDS = ['tail', 'turning', 'hot', 'backfill', 'hot-backfill'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

const CANDIDATES = CANDIDATE_FRESH_MS.length;
/** A row of the table: id, state, then when each candidate's copy was filled, in ticks: 32 bits hold ages of up to 248 days. */
const [STATE, FILLS] = [1, 2];
const TICK_MS = 10;
const NEVER = 2 ** 31;
/** The state: the class + 1; whether the key was hot since the rows were last looked through; reads, up to 255. */
const CLASS_BITS = 15;
const RECENTLY_HOT = 16;
const ONE_READ = 256;
const MOST_READS = 255;
/** Reads may come this much out of order. */
const MAX_LATE_MS = 10_000;
const DAY_MS = 86_400_000;
/** How much of the table is free after room was made. */
const ROOM = 1 / 16;
/** An upper bound for all that is not an array of numbers; measured. */
const OBJECT_BYTES = 60_000;

const ALL_HASHES = 2 ** 32;
const MAX_LEVEL = 120;
const THRESHOLDS = Array.from({ length: MAX_LEVEL + 1 }, (_, level) => ALL_HASHES * (7 / 8) ** level);

/** The key within its class, for the simulator. `keyHash` is `hash32` of the key. */
export function keyId(cacheClass: CacheClass, keyHash: number): number {
  return mix32(keyHash ^ Math.imul(CACHE_CLASSES.indexOf(cacheClass) + 1, 0x9e3779b9));
}

/** Whether the key is sampled at that level: level 0 samples every key, each further one 7/8 of the one before. */
export function isSampled(id: number, level: number): boolean {
  return id < (THRESHOLDS[level] ?? 0);
}

interface Watched {
  readonly state: number;
  /** At which its keys are sampled. */
  level: number;
  tally: Tally;
  ttl: CacheTtl;
}

export class TtlSimulator {
  readonly #clock: Clock;
  readonly #ttl: Pick<TtlPolicy, 'of'>;
  readonly #keys = new KeyTable(FILLS + CANDIDATES);
  readonly #watched = new Map<CacheClass, Watched>();
  readonly #changes = new Map<CacheClass, ChangeTally>();
  /** The outcomes of the last read. */
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
    return CACHE_CLASSES.map((cacheClass) => this.#watched.get(cacheClass)?.level ?? 0);
  }

  /** An upper bound for the memory it takes. */
  get bytes(): number {
    const parts = [...this.#watched.values()].map(({ tally }) => tally);
    return [...parts, ...this.#changes.values()].reduce(
      (sum, { bytes }) => sum + bytes,
      OBJECT_BYTES + this.#keys.cells.byteLength,
    );
  }

  /** A read of a key that is followed nowhere. */
  countUnsampled(cacheClass: CacheClass): void {
    this.#count(this.#watch(cacheClass, this.#clock.nowMs()), null, false);
  }

  /** `id` is the key's `keyId`; `atMs` is Unix milliseconds, nearly in order: up to ten seconds late does no harm. */
  add(kind: EventKind, cacheClass: CacheClass, id: number, atMs: number): void {
    const timeMs = Math.min(atMs, this.#clock.nowMs());
    const watched = this.#watch(cacheClass, timeMs);
    const isWanted = kind === 'turning' || kind === 'hot' || isSampled(id, watched.level);
    const known = this.#keys.find(id);
    const row = known < 0 && isWanted ? this.#follow(id, watched.state, timeMs) : known;
    if (kind === 'backfill' || kind === 'hot-backfill') {
      if (row >= 0) this.#fill(row, timeMs);
    } else if (row < 0) {
      this.#count(watched, null, false);
    } else {
      this.#readRow(kind, row, watched, { timeMs, isNew: known < 0 });
    }
  }

  /** The store answered for a key of which a copy was held, `sinceMs` old. */
  refreshed(cacheClass: CacheClass, isChanged: boolean, sinceMs: number): void {
    const nowMs = this.#clock.nowMs();
    const changes = this.#changes.get(cacheClass) ?? new ChangeTally(nowMs);
    this.#changes.set(cacheClass, changes);
    changes.add(isChanged, sinceMs, nowMs);
  }

  /** The counts of all candidates; null if nothing was read. */
  countsOf(cacheClass: CacheClass): Counts | null {
    return this.#watched.get(cacheClass)?.tally.counts() ?? null;
  }

  refreshesOf(cacheClass: CacheClass): [bucket: number, seen: number, changed: number][] {
    return this.#changes.get(cacheClass)?.rows() ?? [];
  }

  /** Brings the class up to date. */
  #watch(cacheClass: CacheClass, timeMs: number): Watched {
    const ttl = this.#ttl.of(cacheClass);
    const known = this.#watched.get(cacheClass);
    if (known === undefined) {
      const watched = { state: CACHE_CLASSES.indexOf(cacheClass) + 1, level: 0, tally: new Tally(timeMs), ttl };
      this.#watched.set(cacheClass, watched);
      return watched;
    }
    known.ttl = ttl;
    if (known.tally.turn(timeMs) && known.level > 0) this.#beginAnewIfFew(known, timeMs);
    return known;
  }

  /** If all keys of the class would fit again: its sample would stay small for good. */
  #beginAnewIfFew(watched: Watched, timeMs: number): void {
    this.#forget(timeMs);
    const keys = ((this.#countSampled()[watched.state] ?? 0) * ALL_HASHES) / (THRESHOLDS[watched.level] ?? 1);
    if (keys > this.#keys.free / 2) return;
    watched.level = 0;
    watched.tally = new Tally(timeMs);
  }

  /** A row for a key that has none, without a copy; -1 if there is no room for it. */
  #follow(id: number, state: number, timeMs: number): number {
    if (this.#keys.free === 0) this.#makeRoom(timeMs);
    if (this.#keys.free === 0) return -1;
    const row = this.#keys.add(id, state);
    this.#keys.cells.fill(ticksOf(timeMs) ^ NEVER, row + FILLS, row + FILLS + CANDIDATES);
    return row;
  }

  /**
   * Classes with the most sampled keys give up some of them until some rows are free. Keys that are not hot until the next
   * time are not followed as such any more.
   */
  #makeRoom(timeMs: number): void {
    this.#forget(timeMs);
    while (this.#keys.free < MAX_KEYS * ROOM) {
      const counts = this.#countSampled();
      const most = Math.max(...counts);
      const largest = [...this.#watched.values()].find(({ state }) => counts[state] === most);
      if (largest === undefined || most === 0 || largest.level === MAX_LEVEL) break;
      largest.level += 1;
      this.#forget(timeMs);
    }
    const { cells, width } = this.#keys;
    for (let at = STATE; at < cells.length; at += width) cells[at] = (cells[at] ?? 0) & ~RECENTLY_HOT;
  }

  /** Forgets keys that are neither sampled nor hot, and those that have no copy of use for any TTL any more. */
  #forget(timeMs: number): void {
    const { cells } = this.#keys;
    const byState = new Map([...this.#watched.values()].map((watched) => [watched.state, watched]));
    this.#keys.removeIf((row) => {
      const state = cells[row + STATE] ?? 0;
      const watched = byState.get(state & CLASS_BITS);
      if (watched === undefined) return true;
      const { ttl, level } = watched;
      // The copy of the shortest candidate is as old as the last read, nearly.
      const idleMs = this.#ageMs(row, 0, timeMs);
      if (idleMs < 0 || idleMs > Math.max(DAY_MS, ttl.freshMs) + ttl.staleMs) return true;
      return !isSampled(cells[row] ?? 0, level) && (state & RECENTLY_HOT) === 0;
    });
  }

  /** How many keys are sampled, by the state of their class. */
  #countSampled(): readonly number[] {
    const { cells, width } = this.#keys;
    const levels = [0, ...this.levels()];
    const counts = levels.map(() => 0);
    for (let row = 0; row < cells.length; row += width) {
      const state = (cells[row + STATE] ?? 0) & CLASS_BITS;
      if (state > 0 && isSampled(cells[row] ?? 0, levels[state] ?? 0)) counts[state] = (counts[state] ?? 0) + 1;
    }
    return counts;
  }

  #readRow(
    heat: Heat,
    row: number,
    watched: Watched,
    { timeMs, isNew }: { readonly timeMs: number; readonly isNew: boolean },
  ): void {
    const { cells } = this.#keys;
    if (heat !== 'tail') cells[row + STATE] = (cells[row + STATE] ?? 0) | RECENTLY_HOT;
    const isSample = isSampled(cells[row] ?? 0, watched.level);
    if (!isSample && (isNew || heat === 'turning')) {
      this.#guess(row, watched, timeMs);
      this.#count(watched, null, false);
      return;
    }
    this.#read(row, watched, timeMs);
    const isExact = watched.level === 0 || heat === 'hot';
    this.#count(watched, isExact || isSample ? row : null, isExact);
  }

  /** Works out what each cache does at a read of the key in that row. */
  #read(row: number, { ttl: { staleMs } }: Watched, timeMs: number): void {
    const { cells } = this.#keys;
    const { calls, waits, agesMs } = this.#outcomes;
    for (let column = 0; column < CANDIDATES; column++) {
      const ageMs = this.#ageMs(row, column, timeMs);
      const jitter = randomOf(cells[row] ?? 0, cells[row + FILLS + column] ?? 0);
      const endMs = (CANDIDATE_FRESH_MS[column] ?? 0) * (1 - MAX_JITTER * jitter);
      const isCall = ageMs < 0 || ageMs >= endMs;
      if (isCall) this.#setFill(row, column, timeMs);
      const isWait = isCall && (ageMs < 0 || ageMs >= endMs + staleMs);
      calls[column] = isCall ? 1 : 0;
      waits[column] = isWait ? 1 : 0;
      agesMs[column] = isWait ? 0 : ageMs;
    }
  }

  /** Every cache has just got a copy. */
  #fill(row: number, timeMs: number): void {
    for (let column = 0; column < CANDIDATES; column++) this.#setFill(row, column, timeMs);
  }

  /** A hot key that was not followed has copies of any age up to their TTL, or as old as the first read there was. */
  #guess(row: number, { tally: { startedMs } }: Watched, timeMs: number): void {
    const watchedMs = timeMs - startedMs;
    for (let column = 0; column < CANDIDATES; column++) {
      const freshMs = CANDIDATE_FRESH_MS[column] ?? 0;
      const ageMs = freshMs < watchedMs ? freshMs * randomOf(this.#keys.cells[row] ?? 0, column) : watchedMs;
      this.#setFill(row, column, timeMs - ageMs);
    }
  }

  /** `row`: null for a read that is not simulated. An exact one stands for itself, a sampled one for others, too. */
  #count({ level, tally }: Watched, row: number | null, isExact: boolean): void {
    if (row === null) {
      tally.countUnsampled();
      return;
    }
    const { cells } = this.#keys;
    const state = cells[row + STATE] ?? 0;
    const before = Math.floor(state / ONE_READ);
    if (before < MOST_READS) cells[row + STATE] = state + ONE_READ;
    const weight = isExact ? null : ALL_HASHES / (THRESHOLDS[level] ?? 1);
    tally.count(weight, before, this.#outcomes);
  }

  #setFill(row: number, column: number, timeMs: number): void {
    this.#keys.cells[row + FILLS + column] = ticksOf(timeMs);
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
