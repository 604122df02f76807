/** Waiting, handed in like the clock, so that a test moves time on by itself. */

/** Calls `run` once after that time, unless the returned function is called first. */
export interface Timers {
  after(delayMs: number, run: () => void): () => void;
}

/**
 * The machine's timers. Each runs once all that had arrived by its time was read: else a process that was held up would take its
 * own delay for one of Redis or of the store. They never keep the process alive: a reader that waits for an answer has a socket
 * that does.
 */
export const systemTimers: Timers = {
  after: (delayMs, run) => {
    let isCancelled = false;
    const timer = setTimeout(() => {
      setImmediate(() => {
        if (!isCancelled) run();
      });
    }, delayMs).unref();
    return () => {
      isCancelled = true;
      clearTimeout(timer);
    };
  },
};

/**
 * Settles as the promise does, or once that time is over with what `late` returns or throws. The promise goes on, and its
 * later rejection is handled.
 */
export function withDeadline<T, L>(
  promise: Promise<T>,
  delayMs: number,
  timers: Timers,
  late: () => L,
): Promise<T | L> {
  return new Promise<T | L>((resolve, reject) => {
    const cancel = timers.after(delayMs, () => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    });
    promise.then(resolve, reject).finally(cancel);
  });
}
