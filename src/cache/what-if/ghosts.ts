/**
 * Ghosts of one class's cache, one a time that is tried out: what each would have done at a read. They keep no answers,
 * only when their copy of a key was filled.
 *
 * A fill is kept in 16 bits, in units of the ghost's time / 4,096, so that the count comes round after 16 times that
 * long. A key that was not read for nearly so long is told by the time of its last read.
 */
import { GHOSTS } from './candidates.ts';
import { mix32 } from '../hash.ts';
import type { Block } from './slot-pool.ts';

/** Of what the time of a key's last read is kept in. */
export const TICK_MS = 250;
/** By how much of itself freshness is shortened at most, as the cache does. */
const MAX_JITTER = 0.1;
const UNITS = 4096;
const ROUND = 2 ** 16;
/** From here on, a copy is as old as its key's last read: it was filled at most one time before that. */
const LONG_IDLE = 12;
/** Reads may come this much out of order. */
export const MAX_LATE_MS = 10_000;

export class Ghosts {
  readonly freshMs = new Float64Array(GHOSTS);
  readonly #unitMs = new Float64Array(GHOSTS).fill(1);
  /** What each did at the last read: 1 for a call to the store. */
  readonly calls = new Uint8Array(GHOSTS);
  /** How old what each served at the last read was. */
  readonly agesMs = new Float64Array(GHOSTS);

  /** Another time for a ghost. Its fills are in other units from now on: see `convert`. */
  set(ghost: number, freshMs: number): void {
    this.freshMs[ghost] = freshMs;
    this.#unitMs[ghost] = unitOf(freshMs);
  }

  /** The first read of a key: every ghost calls the store. `place` is the slot's in its block. */
  fill(block: Block, place: number, atMs: number): void {
    for (let ghost = 0; ghost < GHOSTS; ghost++) {
      block.fills[place * GHOSTS + ghost] = this.#unitsAt(ghost, atMs);
      this.calls[ghost] = 1;
      this.agesMs[ghost] = 0;
    }
    block.ticks[place] = Math.floor(atMs / TICK_MS);
  }

  /** Another read of a key: `calls` and `agesMs` then tell what each ghost did. */
  play(block: Block, place: number, { atMs, staleMs }: { readonly atMs: number; readonly staleMs: number }): void {
    const hash = block.hashes[place] ?? 0;
    const idleMs = this.idleMs(block, place, atMs);
    if (idleMs < -MAX_LATE_MS) {
      // The clock was set back: nothing can be said of what was filled later than now.
      this.fill(block, place, atMs);
      return;
    }
    if (idleMs > 0) block.ticks[place] = Math.floor(atMs / TICK_MS);
    for (let ghost = 0; ghost < GHOSTS; ghost++) {
      const at = place * GHOSTS + ghost;
      const freshMs = this.freshMs[ghost] ?? 0;
      const fill = block.fills[at] ?? 0;
      const ageMs = idleMs >= LONG_IDLE * freshMs ? idleMs : this.#ageOf(ghost, fill, atMs);
      const endMs = ageMs < freshMs * (1 - MAX_JITTER) ? freshMs : freshMs * (1 - MAX_JITTER * jitterOf(hash, fill));
      const isCall = ageMs >= endMs;
      if (isCall) block.fills[at] = this.#unitsAt(ghost, atMs);
      this.calls[ghost] = isCall ? 1 : 0;
      this.agesMs[ghost] = isCall && ageMs >= endMs + staleMs ? 0 : ageMs;
    }
  }

  /**
   * A key of which only the last read is known, and about how often it is read: what the ghosts hold of it is drawn as
   * it would be had its reads come at random, so that its unknown past is neither all calls nor all hits.
   */
  guess(block: Block, place: number, { atMs, readsPerMs, watchedMs }: Pace, random: () => number): void {
    for (let ghost = 0; ghost < GHOSTS; ghost++) {
      const freshMs = this.freshMs[ghost] ?? 0;
      const isHit = random() * (1 + readsPerMs * freshMs) >= 1;
      // Where nothing expires in the time that was watched, the copy is of the first read.
      const heldMs = freshMs < watchedMs ? freshMs * random() : watchedMs + Math.log(1 - random()) / readsPerMs;
      this.#setAge(block, place * GHOSTS + ghost, {
        atMs,
        unitMs: this.#unitMs[ghost] ?? 1,
        ageMs: isHit ? heldMs : 0,
      });
    }
    block.ticks[place] = Math.floor(atMs / TICK_MS);
  }

  /** Brings a ghost's copy into the units of another time, which it is then to be `set` to. */
  convert(block: Block, place: number, { ghost, atMs, freshMs }: Conversion): void {
    const at = place * GHOSTS + ghost;
    const idleMs = this.idleMs(block, place, atMs);
    const isLong = idleMs >= LONG_IDLE * (this.freshMs[ghost] ?? 0);
    const ageMs = isLong ? idleMs : this.#ageOf(ghost, block.fills[at] ?? 0, atMs);
    this.#setAge(block, at, { atMs, unitMs: unitOf(freshMs), ageMs: Math.min(ageMs, LONG_IDLE * freshMs) });
  }

  idleMs(block: Block, place: number, atMs: number): number {
    return (Math.floor(atMs / TICK_MS) - (block.ticks[place] ?? 0)) * TICK_MS;
  }

  #setAge(block: Block, at: number, { atMs, unitMs, ageMs }: Age): void {
    block.fills[at] = Math.floor((atMs - Math.max(0, ageMs)) / unitMs) % ROUND;
  }

  #unitsAt(ghost: number, atMs: number): number {
    return Math.floor(atMs / (this.#unitMs[ghost] ?? 1)) % ROUND;
  }

  #ageOf(ghost: number, fill: number, atMs: number): number {
    const unitMs = this.#unitMs[ghost] ?? 1;
    const units = (Math.floor(atMs / unitMs) - fill) & (ROUND - 1);
    // Filled by a read that came before this one, and was later.
    return units >= ROUND - MAX_LATE_MS / unitMs - 1 ? 0 : units * unitMs;
  }
}

interface Pace {
  readonly atMs: number;
  readonly readsPerMs: number;
  /** For how long the class was watched. */
  readonly watchedMs: number;
}

interface Conversion {
  readonly ghost: number;
  readonly atMs: number;
  readonly freshMs: number;
}

interface Age {
  readonly atMs: number;
  readonly unitMs: number;
  readonly ageMs: number;
}

function unitOf(freshMs: number): number {
  return Math.max(1, Math.ceil(freshMs / UNITS));
}

/** In [0, 1), the copy's own. */
function jitterOf(hash: number, fill: number): number {
  return mix32(hash ^ Math.imul(fill + 1, 0x9e3779b1)) / 2 ** 32;
}
