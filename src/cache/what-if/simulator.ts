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
import { mix32 } from '../hash.ts';
import { CACHE_CLASSES, type CacheClass, type CacheTtl, type TtlPolicy } from '../ttl-policy.ts';
import { ChangeTally } from './change-rate.ts';
import type { Heat } from './hot-keys.ts';
import { KeyTable, MAX_KEYS } from './key-table.ts';
import { CANDIDATE_FRESH_MS, type Counts, type Outcomes, type ReadKind, Tally } from './tally.ts';

/** A read, by how hot its key was; or a backfill of a key, which is hot or not. In the order of their codes in messages. */
export const EVENT_KINDS = ['tail', 'turning', 'hot', 'backfill', 'hot-backfill'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

const CANDIDATES = CANDIDATE_FRESH_MS.length;
/** The column of the TTL in force, after those of the candidates. */
const IN_FORCE = CANDIDATES;
const DAY_MS = 86_400_000;
const TICK_MS = 10;
/** A candidate's fills are 16 bits, in units of its TTL / 4,096 or a millisecond: they wrap after 16 TTLs or more. */
const UNITS = 4096;
const WRAP = 2 ** 16;
/** A key that was not read for so many TTLs has no copy: its fills may have wrapped. */
const LONG_IDLE = 12;
/** Reads may come this much out of order. */
const MAX_LATE_MS = 10_000;
/** A clock that is further behind was set back. */
const MAX_STEP_BACK_MS = 60_000;
/** By how much of itself freshness is shortened at most, as the cache does. */
const MAX_JITTER = 0.1;
/** In the state of a slot, beside the class: the key was hot since the slots were last looked through. */
const RECENTLY_HOT = 128;
/** How much of the table is free after room was made. */
const ROOM = 1 / 16;
/** An upper bound for all that is not an array of numbers; measured. */
const OBJECT_BYTES = 60_000;

const ALL_HASHES = 2 ** 32;
const KEPT_PER_LEVEL = 7 / 8;
const MAX_LEVEL = 120;
const THRESHOLDS = Array.from({ length: MAX_LEVEL + 1 }, (_, level) => ALL_HASHES * KEPT_PER_LEVEL ** level);
/** Twelve hours each: after so many, a newly sampled key's copies are known. */
const TURNS_TO_KNOW = 2;

/** The key within its class, for the simulator. `keyHash` is `hash32` of the key. */
export function keyId(cacheClass: CacheClass, keyHash: number): number {
  return mix32(keyHash ^ Math.imul(CACHE_CLASSES.indexOf(cacheClass) + 1, 0x9e3779b9));
}

/** Whether the key is sampled at that level: level 0 samples every key, each further one 7/8 of the one before. */
export function isSampled(id: number, level: number): boolean {
  return id < (THRESHOLDS[level] ?? 0);
}

/** One class: how its keys are sampled, and what was counted. */
interface Watched {
  readonly state: number;
  readonly startedMs: number;
  readonly candidates: Tally;
  inForce: Tally;
  times: CacheTtl;
  /** The level at which sampled keys count, and the lower one at which they are followed until they are known. */
  level: number;
  followedLevel: number;
  turnsToWait: number;
}

export class TtlSimulator {
  readonly #clock: Clock;
  readonly #ttl: Pick<TtlPolicy, 'of'>;
  readonly #epochMs: number;
  readonly #keys = new KeyTable();
  readonly #watched = new Map<CacheClass, Watched>();
  readonly #changes = new Map<CacheClass, ChangeTally>();
  /** By column. The one in force changes with the class. */
  readonly #freshMs = Float64Array.of(...CANDIDATE_FRESH_MS, 0);
  readonly #unitsMs = CANDIDATE_FRESH_MS.map((freshMs) => Math.max(1, Math.ceil(freshMs / UNITS)));
  readonly #outcomes: Outcomes = {
    calls: new Uint8Array(CANDIDATES + 1),
    agesMs: new Float64Array(CANDIDATES + 1),
  };
  #latestMs = 0;

  constructor({ clock, ttl }: { readonly clock: Clock; readonly ttl: Pick<TtlPolicy, 'of'> }) {
    this.#clock = clock;
    this.#ttl = ttl;
    this.#epochMs = clock.nowMs() - MAX_LATE_MS;
  }

  /** The level at which each class's keys are followed, in the order of the classes. */
  levels(): readonly number[] {
    return CACHE_CLASSES.map((cacheClass) => this.#watched.get(cacheClass)?.followedLevel ?? 0);
  }

  /** An upper bound for the memory it takes. */
  get bytes(): number {
    const tallies = [...this.#watched.values()].flatMap(({ candidates, inForce }) => [candidates, inForce]);
    const parts = [this.#keys, ...tallies, ...this.#changes.values()];
    return parts.reduce((sum, { bytes }) => sum + bytes, OBJECT_BYTES);
  }

  /** A read of a key that is followed nowhere. */
  countUnsampled(cacheClass: CacheClass): void {
    const watched = this.#watch(cacheClass, this.#timeOf(this.#clock.nowMs()));
    watched.candidates.countUnsampled();
    watched.inForce.countUnsampled();
  }

  /** `id` is the key's `keyId`; `atMs` is Unix milliseconds, nearly in order: up to a second late does no harm. */
  add(kind: EventKind, cacheClass: CacheClass, id: number, atMs: number): void {
    const timeMs = this.#timeOf(atMs);
    const watched = this.#watch(cacheClass, timeMs);
    const known = this.#keys.find(id);
    if (kind === 'backfill' || kind === 'hot-backfill') {
      const slot = known < 0 ? this.#follow(watched, id, timeMs) : known;
      if (slot >= 0) this.#fill(slot, timeMs);
    } else if (known >= 0 && (kind !== 'turning' || isSampled(id, watched.followedLevel))) {
      this.#read(known, watched, timeMs);
      this.#count(kind, watched, known);
      if (kind === 'hot') this.#keys.states[known] = watched.state | RECENTLY_HOT;
    } else {
      this.#readUnknown(kind, { watched, id, timeMs, known });
    }
  }

  /** The store answered for a key of which a copy was held, `sinceMs` old. */
  refreshed(cacheClass: CacheClass, isChanged: boolean, sinceMs: number): void {
    const nowMs = this.#clock.nowMs();
    const changes = this.#changes.get(cacheClass) ?? new ChangeTally(nowMs);
    this.#changes.set(cacheClass, changes);
    changes.add(isChanged, sinceMs, nowMs);
  }

  /** The counts of all candidates, and those of the TTL in force if it is none of them. */
  countsOf(cacheClass: CacheClass): Counts[] {
    const watched = this.#watched.get(cacheClass);
    if (watched === undefined) return [];
    const { candidates, inForce, times } = watched;
    this.#freshMs[IN_FORCE] = times.freshMs;
    const tallies = CANDIDATE_FRESH_MS.includes(times.freshMs) ? [candidates] : [candidates, inForce];
    return tallies.map((tally) => tally.counts(this.#freshMs, this.#epochMs));
  }

  refreshesOf(cacheClass: CacheClass): [bucket: number, seen: number, changed: number][] {
    return this.#changes.get(cacheClass)?.rows() ?? [];
  }

  /** From the simulator's epoch. A clock that was set back must not make time stand still until it has caught up. */
  #timeOf(atMs: number): number {
    const nowMs = this.#clock.nowMs() - this.#epochMs;
    if (this.#latestMs - nowMs > MAX_STEP_BACK_MS) this.#latestMs = nowMs;
    const timeMs = Math.max(0, Math.min(atMs - this.#epochMs, nowMs), this.#latestMs - MAX_LATE_MS);
    this.#latestMs = Math.max(this.#latestMs, timeMs);
    return timeMs;
  }

  /** Brings the class up to date. */
  #watch(cacheClass: CacheClass, timeMs: number): Watched {
    const times = this.#ttl.of(cacheClass);
    this.#freshMs[IN_FORCE] = times.freshMs;
    const known = this.#watched.get(cacheClass);
    if (known === undefined) {
      const watched = {
        state: CACHE_CLASSES.indexOf(cacheClass) + 1,
        startedMs: timeMs,
        candidates: new Tally([...CANDIDATE_FRESH_MS.keys()], timeMs),
        inForce: new Tally([IN_FORCE], timeMs),
        times,
        level: 0,
        followedLevel: 0,
        turnsToWait: 0,
      };
      this.#watched.set(cacheClass, watched);
      return watched;
    }
    if (known.times.freshMs !== times.freshMs) known.inForce = new Tally([IN_FORCE], timeMs);
    known.times = times;
    known.inForce.turn(timeMs);
    if (known.candidates.turn(timeMs)) this.#turn(known, timeMs);
    return known;
  }

  /** Every twelve hours. If keys have become few again, more of them can be followed. */
  #turn(watched: Watched, timeMs: number): void {
    watched.turnsToWait -= 1;
    if (watched.turnsToWait <= 0) watched.level = watched.followedLevel;
    this.#forget(timeMs);
    const { free } = this.#keys;
    if (watched.level === 0 || watched.level !== watched.followedLevel || free < MAX_KEYS / 2) return;
    // Half of what is free: other classes may want some too.
    const factor = 1 + free / 2 / Math.max(1, this.#countSampled()[watched.state] ?? 0);
    const levels = Math.floor(Math.log(factor) / -Math.log(KEPT_PER_LEVEL));
    watched.followedLevel = Math.max(0, watched.level - levels);
    watched.turnsToWait = TURNS_TO_KNOW;
  }

  /** A read of a key that isn't followed, or wasn't while it turned hot. */
  #readUnknown(
    kind: Heat,
    { watched, id, timeMs, known }: { watched: Watched; id: number; timeMs: number; known: number },
  ): void {
    const slot = known >= 0 ? known : this.#follow(watched, id, timeMs, kind !== 'tail');
    if (slot >= 0 && isSampled(id, watched.followedLevel)) {
      this.#readFirst(slot, timeMs);
      this.#count(kind, watched, slot);
      return;
    }
    if (slot >= 0) {
      this.#guess(slot, watched, timeMs);
      this.#keys.states[slot] = watched.state | RECENTLY_HOT;
    }
    watched.candidates.countUnsampled();
    watched.inForce.countUnsampled();
  }

  /** A slot for a key that has none; -1 if it is neither sampled nor hot. */
  #follow(watched: Watched, id: number, timeMs: number, isHot = false): number {
    if (!isHot && !isSampled(id, watched.followedLevel)) return -1;
    if (this.#keys.free === 0) this.#makeRoom(timeMs);
    const isWanted = isHot || isSampled(id, watched.followedLevel);
    return isWanted && this.#keys.free > 0 ? this.#keys.add(id, watched.state) : -1;
  }

  /** Forgets what is of no use any more; then the classes with the most sampled keys give up some of them. */
  #makeRoom(timeMs: number): void {
    const { states, ids } = this.#keys;
    this.#forget(timeMs);
    while (this.#keys.free < MAX_KEYS * ROOM) {
      const counts = this.#countSampled();
      const most = Math.max(...counts);
      const largest = [...this.#watched.values()].find(({ state }) => counts[state] === most);
      if (largest === undefined || most === 0 || largest.level === MAX_LEVEL) return;
      const before = largest.followedLevel;
      // Those go first that don't count yet.
      if (before === largest.level) largest.level += 1;
      largest.followedLevel = largest.level;
      this.#keys.removeIf((slot) => {
        const id = ids[slot] ?? 0;
        return states[slot] === largest.state && isSampled(id, before) && !isSampled(id, largest.level);
      });
    }
  }

  /** Forgets keys that are no longer sampled nor hot, and those that have no copy of use for any TTL any more. */
  #forget(timeMs: number): void {
    const { states, ids, reads } = this.#keys;
    const byState = new Map([...this.#watched.values()].map((watched) => [watched.state, watched]));
    this.#keys.removeIf((slot) => {
      const state = states[slot] ?? 0;
      const watched = byState.get(state & ~RECENTLY_HOT);
      if (watched === undefined) return true;
      const { times, followedLevel } = watched;
      if (timeMs - (reads[slot] ?? 0) * TICK_MS > Math.max(DAY_MS, times.freshMs) + times.staleMs) return true;
      if (isSampled(ids[slot] ?? 0, followedLevel)) return false;
      // A hot key gets a second chance: until the next time round.
      states[slot] = watched.state;
      return state === watched.state;
    });
  }

  /** How many keys are sampled, by the state of their class. */
  #countSampled(): readonly number[] {
    const { states, ids } = this.#keys;
    const levels = [0, ...this.levels()];
    const counts = levels.map(() => 0);
    for (let slot = 0; slot < states.length; slot++) {
      const state = (states[slot] ?? 0) & ~RECENTLY_HOT;
      if (state > 0 && isSampled(ids[slot] ?? 0, levels[state] ?? 0)) counts[state] = (counts[state] ?? 0) + 1;
    }
    return counts;
  }

  /** By how the read was followed: everything is exact at level 0, and what is hot. */
  #count(heat: Heat, { level, candidates, inForce }: Watched, slot: number): void {
    const { ids, counts } = this.#keys;
    const before = counts[slot] ?? 0;
    if (before < 255) counts[slot] = before + 1;
    const isCounted = isSampled(ids[slot] ?? 0, level);
    const kind: ReadKind = level === 0 || heat === 'hot' ? 'exact' : isCounted ? 'sampled' : 'unsampled';
    for (const tally of [candidates, inForce]) {
      if (kind === 'unsampled') tally.countUnsampled();
      else tally.count(kind, kind === 'exact' ? 1 : ALL_HASHES / (THRESHOLDS[level] ?? 1), before, this.#outcomes);
    }
  }

  /** Works out what each cache does at a read of the key in that slot. */
  #read(slot: number, { times: { staleMs } }: Watched, timeMs: number): void {
    const { ids, reads } = this.#keys;
    const idleMs = timeMs - (reads[slot] ?? 0) * TICK_MS;
    // After a clock was set back nothing is known of fills that are later than now.
    if (idleMs < -MAX_LATE_MS) {
      this.#readFirst(slot, timeMs);
      return;
    }
    if (idleMs > 0) reads[slot] = Math.floor(timeMs / TICK_MS);
    for (let column = 0; column <= IN_FORCE; column++) {
      const freshMs = this.#freshMs[column] ?? 0;
      const fill = this.#fillOf(slot, column);
      const ageMs = this.#ageOf(column, fill, { timeMs, idleMs });
      const isClear = ageMs < freshMs * (1 - MAX_JITTER);
      const endMs = isClear ? freshMs : freshMs * (1 - MAX_JITTER * jitterOf(ids[slot] ?? 0, fill));
      const isCall = ageMs >= endMs;
      if (isCall) this.#setFill(slot, column, timeMs);
      this.#outcomes.calls[column] = isCall ? 1 : 0;
      this.#outcomes.agesMs[column] = isCall && ageMs >= endMs + staleMs ? 0 : ageMs;
    }
  }

  /** No cache holds a copy. */
  #readFirst(slot: number, timeMs: number): void {
    this.#fill(slot, timeMs);
    this.#outcomes.calls.fill(1);
    this.#outcomes.agesMs.fill(0);
  }

  #fill(slot: number, timeMs: number): void {
    this.#keys.reads[slot] = Math.floor(timeMs / TICK_MS);
    for (let column = 0; column <= IN_FORCE; column++) this.#setFill(slot, column, timeMs);
  }

  /** A hot key that wasn't followed has a copy of unknown age: any up to the TTL, or that of the first read there was. */
  #guess(slot: number, { startedMs }: Watched, timeMs: number): void {
    this.#keys.reads[slot] = Math.floor(timeMs / TICK_MS);
    for (let column = 0; column <= IN_FORCE; column++) {
      const freshMs = this.#freshMs[column] ?? 0;
      const ageMs =
        freshMs < timeMs - startedMs ? freshMs * jitterOf(this.#keys.ids[slot] ?? 0, column) : timeMs - startedMs;
      this.#setFill(slot, column, Math.max(0, timeMs - ageMs));
    }
  }

  #fillOf(slot: number, column: number): number {
    const { fills, fillsInForce } = this.#keys;
    return (column === IN_FORCE ? fillsInForce[slot] : fills[slot * CANDIDATES + column]) ?? 0;
  }

  #setFill(slot: number, column: number, timeMs: number): void {
    if (column === IN_FORCE) this.#keys.fillsInForce[slot] = Math.floor(timeMs / TICK_MS);
    else this.#keys.fills[slot * CANDIDATES + column] = Math.floor(timeMs / (this.#unitsMs[column] ?? 1)) % WRAP;
  }

  #ageOf(column: number, fill: number, { timeMs, idleMs }: { timeMs: number; idleMs: number }): number {
    if (column === IN_FORCE) return Math.max(0, timeMs - fill * TICK_MS);
    if (idleMs >= LONG_IDLE * (this.#freshMs[column] ?? 0)) return idleMs;
    const unitMs = this.#unitsMs[column] ?? 1;
    const units = (Math.floor(timeMs / unitMs) - fill) & (WRAP - 1);
    // Filled by a read that came before this one, and was later.
    return units >= WRAP - MAX_LATE_MS / unitMs - 1 ? 0 : units * unitMs;
  }
}

/** A number in [0, 1) that depends on the copy alone. */
function jitterOf(id: number, fill: number): number {
  return mix32(id ^ Math.imul(fill + 1, 0x9e3779b1)) / 2 ** 32;
}
