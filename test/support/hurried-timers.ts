import { systemTimers, type Timers } from '../../src/time/timers.ts';

/** The machine's timers, except that a test can end the waits of one length at once. */
export class HurriedTimers implements Timers {
  readonly #waiting = new Map<symbol, { readonly delayMs: number; readonly end: () => void }>();

  after(delayMs: number, run: () => void): () => void {
    const id = Symbol();
    const end = (): void => {
      cancel();
      run();
    };
    const stop = systemTimers.after(delayMs, end);
    const cancel = (): void => {
      stop();
      this.#waiting.delete(id);
    };
    this.#waiting.set(id, { delayMs, end });
    return cancel;
  }

  /** Everybody who waits that long has waited. */
  elapse(delayMs: number): void {
    const ending = [...this.#waiting.values()].filter((wait) => wait.delayMs === delayMs);
    for (const { end } of ending) end();
  }
}
