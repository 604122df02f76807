/** Waiting, handed in like the clock, so that a test moves time on by itself. */

/** Calls `run` once after that time, unless the returned function is called first. */
export interface Timers {
  after(delayMs: number, run: () => void): () => void;
}

/** The machine's timers. They never hold the process: whoever waits for an answer has a socket that does. */
export const systemTimers: Timers = {
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timer);
  },
};
