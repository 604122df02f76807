/**
 * The keys that a simulator follows, in numbers side by side: as objects they would take ten times the memory. An
 * open-addressed table with linear probing, 38 bytes per slot.
 */
import { mix32 } from '../hash.ts';
import { CANDIDATE_FRESH_MS } from './tally.ts';

const SLOTS = 20_500;
/** A fuller table would have to probe too long. */
export const MAX_KEYS = 16_600;
const CANDIDATES = CANDIDATE_FRESH_MS.length;

export class KeyTable {
  readonly ids = new Uint32Array(SLOTS);
  /** The class of the key + 1, 0 for an empty slot; and RECENTLY_HOT. */
  readonly states = new Uint8Array(SLOTS);
  /** The time of the last read, in ticks. */
  readonly reads = new Uint32Array(SLOTS);
  /** How often the key was read, 255 at most. */
  readonly counts = new Uint8Array(SLOTS);
  /** When the copy with the TTL in force was filled, in ticks. */
  readonly fillsInForce = new Uint32Array(SLOTS);
  /** When each candidate's copy was filled, in that candidate's units. */
  readonly fills = new Uint16Array(SLOTS * CANDIDATES);
  #size = 0;

  get free(): number {
    return MAX_KEYS - this.#size;
  }

  get bytes(): number {
    const { ids, states, reads, counts, fillsInForce, fills } = this;
    return [ids, states, reads, counts, fillsInForce, fills].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** The key's slot; -1 if it is not followed. */
  find(id: number): number {
    for (let slot = homeOf(id); this.states[slot] !== 0; slot = next(slot)) if (this.ids[slot] === id) return slot;
    return -1;
  }

  /** A slot for a key that has none. Its times are still another key's. `free` must not be 0. */
  add(id: number, state: number): number {
    let slot = homeOf(id);
    while (this.states[slot] !== 0) slot = next(slot);
    this.ids[slot] = id;
    this.states[slot] = state;
    this.counts[slot] = 0;
    this.#size += 1;
    return slot;
  }

  /** Removes every key for whose slot `isGone`, which is asked at least once for each. */
  removeIf(isGone: (slot: number) => boolean): void {
    for (let slot = 0; slot < SLOTS; slot++) {
      // A removal moves another key, which was not looked at yet, into the slot.
      while (this.states[slot] !== 0 && isGone(slot)) this.#remove(slot);
    }
  }

  /** Closes the gap, so that a search may end at the first empty slot. */
  #remove(slot: number): void {
    this.#size -= 1;
    let gap = slot;
    for (let from = next(gap); this.states[from] !== 0; from = next(from)) {
      if (distance(homeOf(this.ids[from] ?? 0), from) < distance(gap, from)) continue;
      this.#move(from, gap);
      gap = from;
    }
    this.states[gap] = 0;
  }

  #move(from: number, to: number): void {
    this.ids[to] = this.ids[from] ?? 0;
    this.states[to] = this.states[from] ?? 0;
    this.reads[to] = this.reads[from] ?? 0;
    this.counts[to] = this.counts[from] ?? 0;
    this.fillsInForce[to] = this.fillsInForce[from] ?? 0;
    this.fills.copyWithin(to * CANDIDATES, from * CANDIDATES, (from + 1) * CANDIDATES);
  }
}

function homeOf(id: number): number {
  return mix32(id) % SLOTS;
}

function next(slot: number): number {
  return slot + 1 === SLOTS ? 0 : slot + 1;
}

/** How many slots on from the first the second one is. */
function distance(from: number, to: number): number {
  return to >= from ? to - from : to - from + SLOTS;
}
