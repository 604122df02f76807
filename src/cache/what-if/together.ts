/**
 * Evaluations together with lists: a list page brings its evaluations along, so what these cost depends on the times of both.
 * Some evaluations are followed once more, in one cache for each fresh time of evaluations and each of lists (a world), and
 * in one without lists. How the calls of a world compare with those without lists holds for all evaluations.
 *
 * The fresh time of lists that is in force has a world of its own, which begins anew with another time.
 */
import { LRUCache } from 'lru-cache';
import type { TtlPolicy } from '../ttl-policy.ts';
import { AgeTally, bucketOf, BUCKETS, CANDIDATE_FRESH_MS, rounded, type TogetherReport } from './tally.ts';
import { ageAt, isSampled, jitteredMs, neverAt, ticksOf } from './ticks.ts';
import { BANDS } from './change-rate.ts';

/** The fresh times of lists that have a world. */
export const LIST_FRESH_MS: readonly number[] = [1500, 5000, 15_000, 45_000, 120_000, 360_000, 1_200_000, 3_600_000];
export const IN_FORCE = LIST_FRESH_MS.length;
export const WITHOUT_LISTS = IN_FORCE + 1;
const WORLDS = WITHOUT_LISTS + 1;
const CANDIDATES = CANDIDATE_FRESH_MS.length;
const COLUMNS = WORLDS * CANDIDATES;
/** More lists than these are hardly read twice before their turn to be forgotten comes: each read of them is a call. */
const MAX_LISTS = 1024;
const MAX_RECORDS = 1000;
const ROOM = 1 / 16;
const DAY_MS = 86_400_000;
const HALF_LIFE_MS = DAY_MS / 2;

export class Together {
  readonly #ttl: Pick<TtlPolicy, 'of'>;
  /** By id: when each world's copy of the list was filled. */
  readonly #lists = new LRUCache<number, Uint32Array>({ max: MAX_LISTS });
  /** By id: when the copy of the evaluation was filled, for each candidate of each world. */
  readonly #records = new Map<number, Uint32Array>();
  /** Calls and waits of each column; then the same of `WITHOUT_LISTS` since the time of lists is in force. */
  readonly #calls = new Float64Array(COLUMNS + CANDIDATES);
  readonly #waits = new Float64Array(COLUMNS + CANDIDATES);
  readonly #ages = new AgeTally(COLUMNS);
  readonly #items = new Float64Array(BANDS);
  #level = 0;
  #inForceMs = -1;
  #halvedAtMs = 0;
  /** The worlds in which the list that was read last is fetched at that read: one bit each. */
  #fetching = 0;

  constructor(ttl: Pick<TtlPolicy, 'of'>) {
    this.#ttl = ttl;
  }

  /** At which evaluations are sampled. */
  get level(): number {
    return this.#level;
  }

  /** A read of a list; the items of it that are sampled follow. */
  list(id: number, timeMs: number): void {
    this.#turn(timeMs);
    const known = this.#lists.get(id);
    const fills = known ?? new Uint32Array(WITHOUT_LISTS).fill(neverAt(timeMs));
    if (known === undefined) this.#lists.set(id, fills);
    this.#fetching = 0;
    for (let world = 0; world < WITHOUT_LISTS; world++) {
      const fill = fills[world] ?? 0;
      const ageMs = ageAt(fill, timeMs);
      const freshMs = world === IN_FORCE ? this.#inForceMs : (LIST_FRESH_MS[world] ?? 0);
      if (ageMs >= 0 && ageMs < jitteredMs(freshMs, id, fill)) continue;
      fills[world] = ticksOf(timeMs);
      this.#fetching |= 1 << world;
    }
  }

  item(id: number, band: number, timeMs: number): void {
    this.#items[band] = (this.#items[band] ?? 0) + 1;
    if (this.#fetching === 0) return;
    const cells = this.#follow(id, timeMs);
    if (cells === null) return;
    for (let world = 0; world < WITHOUT_LISTS; world++) {
      if ((this.#fetching & (1 << world)) === 0) continue;
      cells.fill(ticksOf(timeMs), world * CANDIDATES, (world + 1) * CANDIDATES);
    }
  }

  /** A read of an evaluation. Nothing is followed before the first list was read. */
  read(id: number, band: number, timeMs: number): void {
    if (this.#lists.size === 0) return;
    this.#turn(timeMs);
    const cells = this.#follow(id, timeMs);
    if (cells === null) return;
    const { staleMs } = this.#ttl.of('evaluation');
    const ages = this.#ages.of(band);
    for (let column = 0; column < COLUMNS; column++) {
      const fill = cells[column] ?? 0;
      const ageMs = ageAt(fill, timeMs);
      const endMs = jitteredMs(CANDIDATE_FRESH_MS[column % CANDIDATES] ?? 0, id, fill);
      const isCall = ageMs < 0 || ageMs >= endMs;
      const isWait = isCall && (ageMs < 0 || ageMs >= endMs + staleMs);
      if (isCall) cells[column] = ticksOf(timeMs);
      if (isCall) this.#count(this.#calls, column);
      if (isWait) this.#count(this.#waits, column);
      const bucket = column * BUCKETS + (isWait ? 0 : coarse(bucketOf(ageMs)));
      ages[bucket] = (ages[bucket] ?? 0) + 1;
    }
  }

  /** Samples evaluations at that level at least: reads at lower ones do not all arrive. */
  raise(level: number): void {
    if (level <= this.#level) return;
    this.#level = level;
    for (const id of this.#records.keys()) if (!isSampled(id, level)) this.#records.delete(id);
  }

  report(): TogetherReport | null {
    if (this.#lists.size === 0) return null;
    const callsAt = (first: number) => ({
      calls: Array.from(this.#calls.subarray(first, first + CANDIDATES), rounded),
      waits: Array.from(this.#waits.subarray(first, first + CANDIDATES), rounded),
    });
    return {
      inForceMs: this.#inForceMs,
      beside: callsAt(COLUMNS),
      worlds: Array.from({ length: WORLDS }, (_, world) => ({
        ...callsAt(world * CANDIDATES),
        ages: CANDIDATE_FRESH_MS.map((_each, index) => this.#ages.sharesOf(world * CANDIDATES + index, 3)),
      })),
      items: Array.from(this.#items, rounded),
    };
  }

  #count(sums: Float64Array, column: number): void {
    sums[column] = (sums[column] ?? 0) + 1;
    const beside = column - WITHOUT_LISTS * CANDIDATES + COLUMNS;
    if (beside >= COLUMNS) sums[beside] = (sums[beside] ?? 0) + 1;
  }

  /** Old counts weigh half as much every twelve hours. Another time of lists in force begins its world anew. */
  #turn(timeMs: number): void {
    if (this.#halvedAtMs === 0) this.#halvedAtMs = timeMs;
    for (; this.#halvedAtMs <= timeMs - HALF_LIFE_MS; this.#halvedAtMs += HALF_LIFE_MS) {
      for (const sums of [this.#calls, this.#waits, this.#items]) sums.set(sums.map((sum) => sum / 2));
      this.#ages.weaken(2);
    }
    const { freshMs } = this.#ttl.of('list');
    if (freshMs !== this.#inForceMs) this.#beginAnew(freshMs);
  }

  #beginAnew(freshMs: number): void {
    this.#inForceMs = freshMs;
    const first = IN_FORCE * CANDIDATES;
    for (const sums of [this.#calls, this.#waits]) {
      sums.fill(0, first, first + CANDIDATES);
      sums.fill(0, COLUMNS);
    }
    for (let column = first; column < first + CANDIDATES; column++) this.#ages.clear(column);
    // Copies are those of the next shorter time: as fresh as they may be.
    const like = Math.max(
      0,
      LIST_FRESH_MS.findLastIndex((each) => each <= freshMs),
    );
    for (const fills of this.#lists.values()) fills[IN_FORCE] = fills[like] ?? 0;
    for (const cells of this.#records.values()) cells.copyWithin(first, like * CANDIDATES, (like + 1) * CANDIDATES);
  }

  /** Null if the evaluation is not sampled. */
  #follow(id: number, timeMs: number): Uint32Array | null {
    if (!isSampled(id, this.#level)) return null;
    const known = this.#records.get(id);
    if (known !== undefined) return known;
    if (this.#records.size >= MAX_RECORDS) this.#makeRoom(timeMs);
    if (!isSampled(id, this.#level)) return null;
    const cells = new Uint32Array(COLUMNS).fill(neverAt(timeMs));
    this.#records.set(id, cells);
    return cells;
  }

  /** Evaluations go that were neither read nor listed for a day; then a part of them all. */
  #makeRoom(timeMs: number): void {
    for (const [id, cells] of this.#records) {
      const agesMs = [ageAt(cells[0] ?? 0, timeMs), ageAt(cells[WITHOUT_LISTS * CANDIDATES] ?? 0, timeMs)];
      if (agesMs.every((ageMs) => ageMs < 0 || ageMs > DAY_MS)) this.#records.delete(id);
    }
    while (this.#records.size > MAX_RECORDS * (1 - ROOM)) this.raise(this.#level + 1);
  }
}

/** Buckets are taken together by four: there are many columns to report. */
function coarse(bucket: number): number {
  return bucket < 4 ? bucket : bucket - (bucket % 4) + 2;
}
