/** Runs long computations so that neither the event loop nor one caller waits for another's. */
import { nextTurn } from '../time/turns.ts';
import type { Slices } from '../transcript/slices.ts';

/** A computation that waits or goes on. */
interface Job {
  /** Runs a slice, which takes a millisecond or so; false if it was the last. */
  readonly runSlice: () => boolean;
  slices: number;
}

/** Run in one turn: what is small is done in one or two of them. */
const SLICES_PER_TURN = 8;

/**
 * A few slices of one computation are run in each turn that the process's long work takes. API keys take turns, and the
 * computations of one key are run one after another: so what they hold while they run is bounded by the number of keys. Every
 * other turn is that of the key whose computation has had fewest slices so far: so a small one never waits for large ones of
 * other keys, but for one turn of each kind. A `FairQueue` (shares/shares.ts) grants a turn once, for as long as its holder needs;
 * here a computation gives way after each turn.
 */
export class SliceQueue {
  /** The jobs of each key, the key whose turn is next first. A key without jobs is not there. */
  readonly #jobs = new Map<string, Job[]>();
  #isShortsTurn = false;
  #isRunning = false;

  /**
   * Runs what `begin` returns, in the key's turns. Rejects with the reason of the signal if that was aborted before the
   * computation has ended, and with what the computation throws.
   */
  run<T>(keyId: string, begin: () => Slices<T>, signal?: AbortSignal): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let slices: Slices<T> | null = null;
    const runSlice = (): boolean => {
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
    const job = { runSlice, slices: 0 };
    const waiting = this.#jobs.get(keyId);
    if (waiting === undefined) this.#jobs.set(keyId, [job]);
    else waiting.push(job);
    if (!this.#isRunning) void this.#takeTurns();
    return promise;
  }

  /** Runs a few slices in each of its turns, until no job is left. */
  async #takeTurns(): Promise<void> {
    this.#isRunning = true;
    for (let keyId = this.#next(); keyId !== undefined; keyId = this.#next()) {
      const jobs = this.#jobs.get(keyId) ?? [];
      this.#jobs.delete(keyId);
      const [job] = jobs;
      if (job === undefined || !hasMore(job)) jobs.shift();
      // Behind the keys that have waited longer.
      if (jobs.length > 0) this.#jobs.set(keyId, jobs);
      await nextTurn(jobs[0]?.slices);
    }
    this.#isRunning = false;
  }

  /** The key whose turn it is; undefined if there are no jobs. */
  #next(): string | undefined {
    this.#isShortsTurn = !this.#isShortsTurn;
    const [first] = this.#jobs.keys();
    let [next, fewest] = [first, Infinity];
    for (const [keyId, [job]] of this.#isShortsTurn ? this.#jobs : []) {
      if (job !== undefined && job.slices < fewest) [next, fewest] = [keyId, job.slices];
    }
    return next;
  }
}

/** Runs some slices; false if the last was among them. */
function hasMore(job: Job): boolean {
  for (let left = SLICES_PER_TURN; left > 0; left -= 1) {
    job.slices += 1;
    if (!job.runSlice()) return false;
  }
  return true;
}
