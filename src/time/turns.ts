/**
 * Turns of the event loop for long work. Ten pieces of work that each yield after ten milliseconds, and all go on in the same
 * turn, hold the event loop for a hundred: so all long work of the process takes its turns here, one after another.
 *
 * Every other turn is that of the work which has had least of the event loop, the others go by arrival. So what is short, such
 * as reading a small answer, waits for two steps of long work at most, however much of that waits; and long work goes on as
 * well, however much short work comes.
 */
import { setImmediate } from 'node:timers/promises';

/** Work that has held the event loop this long lets others in before it goes on. */
const SLICE_MS = 10;

interface Waiting {
  /** For how long the work has held the event loop so far. */
  readonly usedMs: number;
  readonly goOn: () => void;
}

/** In order of arrival. */
const waiting: Waiting[] = [];
let isShortsTurn = true;
let isTakingTurns = false;

/** Resolves in a later turn of the event loop, which is nobody else's. `usedMs`: what the work has had of it so far. */
export function nextTurn(usedMs = 0): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push({ usedMs, goOn: resolve });
  if (!isTakingTurns) void takeTurns();
  return promise;
}

async function takeTurns(): Promise<void> {
  isTakingTurns = true;
  while (waiting.length > 0) {
    await setImmediate();
    const place = isShortsTurn ? placeOfShortest() : 0;
    isShortsTurn = !isShortsTurn;
    const [next] = waiting.splice(place, 1);
    next?.goOn();
  }
  isTakingTurns = false;
}

/** The place of the work that has had least; among equals, of the work that waits longest. */
function placeOfShortest(): number {
  let shortest = 0;
  for (const [place, { usedMs }] of waiting.entries()) {
    if (usedMs < (waiting[shortest]?.usedMs ?? 0)) shortest = place;
  }
  return shortest;
}

/** Makes a function to call between the steps of long work: it waits for a turn if the work since the last one took long. */
export function createYield(): () => Promise<void> {
  let sinceMs = performance.now();
  let usedMs = 0;
  return async () => {
    const heldMs = performance.now() - sinceMs;
    if (heldMs < SLICE_MS) return;
    usedMs += heldMs;
    await nextTurn(usedMs);
    sinceMs = performance.now();
  };
}

/** So many go on in one turn of the event loop; each writes some of a response, which takes a tenth of a millisecond. */
const BATCH = 50;

/**
 * For many who have waited for the same thing: they go on in batches, each in a turn of its own. All want the same, so nobody has
 * to be fair here, as a `FairQueue` is.
 */
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
