/**
 * Predicts hit ratio, store load and staleness of each class for other TTLs: at each read it works out what a cache with
 * each of them would do. It holds times and no answers.
 *
 * While there is room every key is followed. Then keys are sampled by their hash, below a threshold that falls as keys
 * come (SHARDS with a fixed size: Waldspurger and others, 2015); the hot keys are followed all the same, so that their
 * reads are exact. The sampled reads stand for all others, which are only counted.
 *
 * A simulated copy is fresh for its TTL, shortened by the cache's jitter. The first read past that is one call to the
 * store, and is served the old copy within the class's `stale` time in force. If ten reads come in the TTL, the first read in
 * its last tenth is the call, as in the cache (early-renewal.ts). Evaluations that lists bring along are left to `Together`.
 * Not modelled: purges, failures, and what memory can't hold.
 */
import type { Clock } from '../../time/clock.ts';
import { EARLY_SHARE, HOT_READS } from '../early-renewal.ts';
import { mix32 } from '../request.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import { bandOf, ChangeTally } from './change-rate.ts';
import { KeyTable, MAX_KEYS, STATE } from './keys.ts';
import { CANDIDATE_FRESH_MS, type Outcomes, Tally, type WhatIfReport } from './tally.ts';
import { ageAt, isSampled, jitteredMs, neverAt, randomOf, sampledShare, ticksOf } from './ticks.ts';
import { Together } from './together.ts';

/**
 * In the order of their codes in messages:
 * - `tail`, `turning`, `hot`: a read, by how hot its key was
 * - `same`, `changed`: a copy of the key was compared with a new answer
 * - `list`, `item`: a read of a list; and each record in it that the receiver follows
 */
export const EVENT_KINDS = ['tail', 'turning', 'hot', 'same', 'changed', 'list', 'item'] as const;

export interface KeyEvent {
  readonly kind: (typeof EVENT_KINDS)[number];
  readonly class: CacheClass;
  /** The key's `keyId`. */
  readonly id: number;
  /** Unix milliseconds. */
  readonly atMs: number;
  /** The age of the copy that was read, or compared. */
  readonly ageMs: number;
  /** How long ago the record was made; 0 if that is not known. */
  readonly madeMsAgo: number;
}

const CANDIDATES = CANDIDATE_FRESH_MS.length;
/**
 * In a row of the table: reads since a copy was last compared; in ticks: since when the record is unchanged, when it was read
 * last, and when each candidate's copy was filled; and the milliseconds between two reads, 0 if that is not known.
 */
const READS = STATE + 1;
const UNCHANGED = READS + 1;
const LAST_READ = UNCHANGED + 1;
const PACE = LAST_READ + 1;
const FILLS = PACE + 1;
/** How much one read more says of the time between two. */
const PACE_WEIGHT = 1 / 8;
/** A comparison stands for the reads since the last one: for few if nobody reads the record, and not for all of a busy one. */
const [MIN_WEIGHT, MAX_WEIGHT] = [0.01, 50];
/**
 * The state: the class's code; whether the key was hot since the rows were last looked through; the band of its time unchanged;
 * reads, up to 255.
 */
const CLASS_BITS = 15;
const RECENTLY_HOT = 16;
const ONE_BAND = 32;
const BAND_BITS = 7 * ONE_BAND;
const ONE_READ = 256;
const MAX_READS = 255;
const DAY_MS = 86_400_000;
/** How much of the table is free after room was made. */
const ROOM = 1 / 16;

/** The key within its class, for the simulator. `keyHash` is `hash32` of the key. */
export function keyId(cacheClass: CacheClass, keyHash: number): number {
  return mix32(keyHash ^ Math.imul(codeOf(cacheClass), 0x9e3779b9));
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
  readonly changes: ChangeTally;
}

export class TtlSimulator {
  readonly #clock: Clock;
  readonly #ttl: Pick<TtlPolicy, 'of'>;
  readonly #keys = new KeyTable(FILLS + CANDIDATES);
  /** By the code of the class. */
  readonly #watched = new Map<number, Watched>();
  readonly #together: Together;
  readonly #outcomes: Outcomes = {
    calls: new Uint8Array(CANDIDATES),
    waits: new Uint8Array(CANDIDATES),
    agesMs: new Float64Array(CANDIDATES),
  };

  constructor({ clock, ttl }: { readonly clock: Clock; readonly ttl: Pick<TtlPolicy, 'of'> }) {
    this.#clock = clock;
    this.#ttl = ttl;
    this.#together = new Together(ttl);
  }

  /** The level at which each class's keys are sampled, in the order of the classes; then that of items on lists. */
  levels(): readonly number[] {
    const levels = CACHE_CLASSES.map((cacheClass) => this.#watched.get(codeOf(cacheClass))?.level ?? 0);
    return [...levels, this.#together.level];
  }

  together(): WhatIfReport['together'] {
    return this.#together.report();
  }

  /** The counts of all candidates, null if there was nothing; and of comparisons. */
  countsOf(cacheClass: CacheClass) {
    const watched = this.#watched.get(codeOf(cacheClass));
    return { counts: watched?.tally.counts() ?? null, comparisons: watched?.changes.rows() ?? [] };
  }

  /** A read of a key that is followed nowhere. */
  countUnsampled(cacheClass: CacheClass): void {
    this.#watch(cacheClass, this.#clock.nowMs()).tally.countUnsampled();
  }

  /** A list was compared with a new answer: which share of its records is new there. */
  compareList(changed: number, sinceMs: number): void {
    const nowMs = this.#clock.nowMs();
    this.#watch('list', nowMs).changes.add({ band: 0, changed, sinceMs, weight: 1 }, nowMs);
  }

  /** Events come nearly in order: up to ten seconds late does no harm. */
  add(event: KeyEvent, nowMs = this.#clock.nowMs()): void {
    const timeMs = Math.min(event.atMs, nowMs);
    switch (event.kind) {
      case 'list':
        this.#together.list(event.id, timeMs);
        break;
      case 'item':
        this.#together.item(event.id, this.#bandOf(this.#keys.find(event.id)), timeMs);
        break;
      case 'same':
      case 'changed':
        this.#compare(event, timeMs);
        break;
      case 'tail':
      case 'turning':
      case 'hot':
        this.#countRead(event, timeMs);
        break;
    }
  }

  /** At one moment: a list has up to a hundred items. */
  addAll(events: readonly KeyEvent[]): void {
    const nowMs = this.#clock.nowMs();
    for (const event of events) this.add(event, nowMs);
  }

  #compare({ kind, class: cacheClass, id, ageMs, madeMsAgo }: KeyEvent, timeMs: number): void {
    const watched = this.#watch(cacheClass, timeMs);
    const known = this.#keys.find(id);
    const row = known < 0 && isSampled(id, watched.level) ? this.#follow(id, cacheClass, timeMs) : known;
    const { cells } = this.#keys;
    const band = this.#bandOf(row);
    const seen = { band, changed: kind === 'changed' ? 1 : 0, sinceMs: ageMs };
    // On lists all records count alike, read by themselves or not.
    if (cacheClass === 'evaluation' && band > 0)
      this.#watch('list', timeMs).changes.add({ ...seen, weight: 1 }, timeMs);
    const weight = row < 0 ? 1 : Math.min(MAX_WEIGHT, Math.max(MIN_WEIGHT, cells[row + READS] ?? 0));
    watched.changes.add({ ...seen, weight }, timeMs);
    if (row < 0) return;
    cells[row + READS] = 0;
    // A change came at any time since the copy was fetched. A record that is looked at for the first time has at most its own age.
    if (kind === 'changed') cells[row + UNCHANGED] = ticksOf(timeMs - ageMs / 2);
    else if (band === 0) cells[row + UNCHANGED] = ticksOf(timeMs - Math.max(ageMs, madeMsAgo));
    const now = bandOf(Math.max(0, ageAt(cells[row + UNCHANGED] ?? 0, timeMs)));
    cells[row + STATE] = ((cells[row + STATE] ?? 0) & ~BAND_BITS) | (now * ONE_BAND);
  }

  #bandOf(row: number): number {
    return row < 0 ? 0 : ((this.#keys.cells[row + STATE] ?? 0) & BAND_BITS) / ONE_BAND;
  }

  #countRead({ kind, class: cacheClass, id, ageMs }: KeyEvent, timeMs: number): void {
    const watched = this.#watch(cacheClass, timeMs);
    const isHot = kind === 'turning' || kind === 'hot';
    const known = this.#keys.find(id);
    const row = known < 0 && (isHot || isSampled(id, watched.level)) ? this.#follow(id, cacheClass, timeMs) : known;
    if (cacheClass === 'evaluation') {
      this.#together.raise(watched.level);
      this.#together.read(id, this.#bandOf(row), timeMs);
    }
    if (row < 0) {
      watched.tally.countUnsampled();
      return;
    }
    const { cells } = this.#keys;
    if (isHot) cells[row + STATE] = (cells[row + STATE] ?? 0) | RECENTLY_HOT;
    // A copy from before this simulation began was filled for an earlier process.
    if (known < 0 && timeMs - ageMs < watched.tally.startedMs) this.#setFills(row, ticksOf(timeMs - ageMs));
    const isSample = isSampled(id, watched.level);
    if (!isSample && (known < 0 || kind === 'turning')) {
      this.#guess(row, timeMs, timeMs - watched.tally.startedMs);
      watched.tally.countUnsampled();
      return;
    }
    cells[row + READS] = (cells[row + READS] ?? 0) + 1;
    this.#read(row, timeMs, this.#ttl.of(cacheClass).staleMs);
    const isExact = watched.level === 0 || kind === 'hot';
    if (!isExact && !isSample) {
      watched.tally.countUnsampled();
      return;
    }
    const state = cells[row + STATE] ?? 0;
    const before = Math.floor(state / ONE_READ);
    if (before < MAX_READS) cells[row + STATE] = state + ONE_READ;
    const weight = isExact ? null : 1 / sampledShare(watched.level);
    watched.tally.count(weight, before, this.#bandOf(row), this.#outcomes);
  }

  /** Brings the class up to date. */
  #watch(cacheClass: CacheClass, timeMs: number): Watched {
    const known = this.#watched.get(codeOf(cacheClass));
    if (known === undefined) {
      const watched = { class: cacheClass, level: 0, tally: new Tally(timeMs), changes: new ChangeTally(timeMs) };
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
    this.#keys.cells[row + READS] = 0;
    this.#keys.cells[row + PACE] = 0;
    this.#keys.cells[row + LAST_READ] = neverAt(timeMs);
    this.#setFills(row, neverAt(timeMs));
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
      const idleMs = ageAt(cells[row + FILLS] ?? 0, timeMs);
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
    const paceMs = this.#notePace(row, timeMs);
    for (let column = 0; column < CANDIDATES; column++) {
      const fill = cells[row + FILLS + column] ?? 0;
      const ageMs = ageAt(fill, timeMs);
      const freshMs = CANDIDATE_FRESH_MS[column] ?? 0;
      const endMs = jitteredMs(freshMs, cells[row] ?? 0, fill);
      const isHot = paceMs > 0 && paceMs * HOT_READS <= freshMs;
      const isCall = ageMs < 0 || ageMs >= endMs - (isHot ? freshMs * EARLY_SHARE : 0);
      if (isCall) cells[row + FILLS + column] = ticksOf(timeMs);
      const isWait = isCall && (ageMs < 0 || ageMs >= endMs + staleMs);
      calls[column] = isCall ? 1 : 0;
      waits[column] = isWait ? 1 : 0;
      agesMs[column] = isWait ? 0 : ageMs;
    }
  }

  /** The milliseconds between two reads of late; 0 if that is not known. */
  #notePace(row: number, timeMs: number): number {
    const { cells } = this.#keys;
    const sinceMs = ageAt(cells[row + LAST_READ] ?? 0, timeMs);
    const before = cells[row + PACE] ?? 0;
    cells[row + LAST_READ] = ticksOf(timeMs);
    if (sinceMs < 0) return before;
    // A pace of 0 stands for none.
    const pace = Math.max(1, Math.round(before === 0 ? sinceMs : before + PACE_WEIGHT * (sinceMs - before)));
    cells[row + PACE] = pace;
    return pace;
  }

  /** A hot key that was not followed has copies of any age up to their TTL, or as old as the first read there was. */
  #guess(row: number, timeMs: number, watchedMs: number): void {
    const { cells } = this.#keys;
    for (const [column, freshMs] of CANDIDATE_FRESH_MS.entries()) {
      const ageMs = freshMs < watchedMs ? freshMs * randomOf(cells[row] ?? 0, column) : watchedMs;
      cells[row + FILLS + column] = ticksOf(timeMs - ageMs);
    }
  }

  #setFills(row: number, fill: number): void {
    this.#keys.cells.fill(fill, row + FILLS, row + FILLS + CANDIDATES);
  }
}
