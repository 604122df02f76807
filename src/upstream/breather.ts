/** Lets other requests in between the steps of a long piece of work. */
import { setImmediate } from 'node:timers/promises';

/** Work that has held the event loop this long pauses before it goes on. */
const SLICE_MS = 20;

export interface Breather {
  /** Gives the event loop a turn where the work since the last one took long; else goes on at once. */
  pause(): Promise<void>;
}

export function createBreather(): Breather {
  let sinceMs = performance.now();
  return {
    pause: async () => {
      if (performance.now() - sinceMs < SLICE_MS) return;
      await setImmediate();
      sinceMs = performance.now();
    },
  };
}
