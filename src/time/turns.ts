/**
 * Turns of the event loop for long work. Ten pieces of work that each yield after ten milliseconds, and all go on in the same
 * turn, hold the event loop for a hundred: so all long work of the process takes its turns here, one after another.
 */
import { setImmediate } from 'node:timers/promises';

/** Work that has held the event loop this long lets others in before it goes on. */
const SLICE_MS = 10;

/** Those who wait for a turn are let in one by one, in their order. */
let lastTurn: Promise<void> = Promise.resolve();

/** Resolves in a later turn of the event loop, which is nobody else's. */
export function nextTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => setImmediate());
  return lastTurn;
}

/** Makes a function to call between the steps of long work: it waits for a turn if the work since the last one took long. */
export function createYield(): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < SLICE_MS) return;
    await nextTurn();
    sinceMs = performance.now();
  };
}

/** So many go on in one turn of the event loop; each writes some of a response, which takes a tenth of a millisecond. */
const BATCH = 50;

/** For many who have waited for the same thing: they go on in batches, each in a turn of its own. */
export class Batches {
  #inBatch = 0;
  #turn: Promise<void> = Promise.resolve();

  /** Resolves in the turn of the caller's batch. */
  next(): Promise<void> {
    this.#inBatch += 1;
    if (this.#inBatch > BATCH) {
      this.#inBatch = 1;
      this.#turn = nextTurn();
    }
    return this.#turn;
  }
}
