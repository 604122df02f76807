/**
 * Keeps look-ups of unknown keys within an address's allowance of failures, even where many come at once: each one under
 * way counts as a failure to come, and those for which nothing is left wait until one of them has ended. Without it, as
 * many look-ups as there are connections would pass before the first failure is counted.
 */
import type { FailureLimiter } from './failure-limiter.ts';

interface Pending {
  count: number;
  /** Resolved, and replaced, whenever one of them ends. */
  ended: PromiseWithResolvers<void>;
}

export class LookupGate {
  readonly #failures: FailureLimiter;
  /** Only addresses with look-ups under way. */
  readonly #pending = new Map<string, Pending>();

  constructor(failures: FailureLimiter) {
    this.#failures = failures;
  }

  /** Null once a look-up may begin: `leave` must follow. Else the seconds after which the address may try again. */
  async enter(address: string): Promise<number | null> {
    for (;;) {
      const { left, retryAfterSeconds } = await this.#failures.allowance(address);
      if (left <= 0) return retryAfterSeconds;
      const pending = this.#pending.get(address);
      if (pending === undefined) {
        this.#pending.set(address, { count: 1, ended: Promise.withResolvers() });
        return null;
      }
      if (pending.count < left) {
        pending.count += 1;
        return null;
      }
      await pending.ended.promise;
    }
  }

  /** Ends a look-up. A failure must have been counted before. */
  leave(address: string): void {
    const pending = this.#pending.get(address);
    if (pending === undefined) return;
    pending.count -= 1;
    if (pending.count === 0) this.#pending.delete(address);
    const { ended } = pending;
    pending.ended = Promise.withResolvers();
    ended.resolve();
  }
}
