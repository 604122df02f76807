import { setTimeout as after } from 'node:timers/promises';

/**
 * What the promise resolves to, or undefined where it does not within that time; it goes on then, and whoever made it
 * looks after its failure. Rejects as the promise does.
 */
export async function within<T>(promise: Promise<T>, waitMs: number): Promise<T | undefined> {
  const waiting = new AbortController();
  const tooLong = after(waitMs, undefined, { signal: waiting.signal, ref: false });
  // Ended below, where the promise was quicker.
  tooLong.catch(() => undefined);
  try {
    return await Promise.race([promise, tooLong]);
  } finally {
    waiting.abort();
  }
}
