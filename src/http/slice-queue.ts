/** Runs long computations so that neither the event loop nor one caller waits for another's. */
import { nextTurn } from '../time/turns.ts';
import type { Slices } from '../transcript/slices.ts';

/** Runs a slice of a computation; false if it was the last. */
type RunSlice = () => boolean;

/**
 * One slice of one computation is run in each turn that the process's long work takes. API keys take turns, slice by slice;
 * the computations of one key are run one after another. So a key with many long computations lengthens another key's by a
 * factor of two at most, and what they hold while they run is bounded by the number of keys.
 */
export class SliceQueue {
  /** The jobs of each key, the key whose turn is next first. A key without jobs is not there. */
  readonly #jobs = new Map<string, RunSlice[]>();
  #isRunning = false;

  /**
   * Runs what `begin` returns, in the key's turns. Rejects with the reason of the signal if that was aborted before the
   * computation has ended, and with what the computation throws.
   */
  run<T>(keyId: string, begin: () => Slices<T>, signal?: AbortSignal): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let slices: Slices<T> | null = null;
    const runSlice: RunSlice = () => {
      try {
        signal?.throwIfAborted();
        slices ??= begin();
        const slice = slices.next();
        if (slice.done !== true) return true;
        resolve(slice.value);
      } catch (error) {
        reject(error instanceof Error ? error : new Error('a computation was given up', { cause: error }));
      }
      return false;
    };
    const waiting = this.#jobs.get(keyId);
    if (waiting === undefined) this.#jobs.set(keyId, [runSlice]);
    else waiting.push(runSlice);
    if (!this.#isRunning) void this.#takeTurns();
    return promise;
  }

  /** Runs a slice in each of its turns, until no job is left. */
  async #takeTurns(): Promise<void> {
    this.#isRunning = true;
    for (let [next] = this.#jobs; next !== undefined; [next] = this.#jobs) {
      const [keyId, jobs] = next;
      this.#jobs.delete(keyId);
      const [runSlice] = jobs;
      if (runSlice?.() === false) jobs.shift();
      // Behind the keys that have waited longer.
      if (jobs.length > 0) this.#jobs.set(keyId, jobs);
      await nextTurn();
    }
    this.#isRunning = false;
  }
}
