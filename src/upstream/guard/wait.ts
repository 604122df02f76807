/** Waiting that can be given up. */
import type { Timers } from '../../timers.ts';

/** Resolves after that time, or as soon as the signal aborts. */
export function wait(delayMs: number, timers: Timers, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = timers.after(delayMs, () => end());
  const end = (): void => {
    cancel();
    signal?.removeEventListener('abort', end);
    resolve();
  };
  signal?.addEventListener('abort', end, { once: true });
  return promise;
}
