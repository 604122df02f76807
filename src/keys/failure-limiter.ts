/**
 * Counts failed authentications by address. The window is fixed and begins with an address's first failure: the last
 * one never has to be exact here, unlike the quota of a key, and one number an address is all it costs.
 */
import { RateLimiterMemory } from 'rate-limiter-flexible';

/** What an address may still do in its current window. */
export interface FailureAllowance {
  /** How many more failures are answered as such. */
  readonly left: number;
  /** Seconds, rounded up, to the end of the window; 0 where none has begun. */
  readonly retryAfterSeconds: number;
}

/** Where failures are counted. Addresses come as addressKey makes them. */
export interface FailureLimiter {
  allowance(address: string): Promise<FailureAllowance>;
  /** Counts one failure. */
  failed(address: string): Promise<void>;
}

const FAILURES_PER_WINDOW = 60;
const WINDOW_SECONDS = 60;
/** Some 20 MB at most. Whoever has this many addresses is not held back by a limit on each of them. */
const MAX_ADDRESSES = 100_000;

class MemoryFailureLimiter implements FailureLimiter {
  // The library's clock cannot be handed in, and it bounds time but not the number of addresses.
  readonly #failures = new RateLimiterMemory({
    points: FAILURES_PER_WINDOW,
    duration: WINDOW_SECONDS,
    keyPrefix: '',
  });
  /** In the order in which their windows began, which is also that in which they end. */
  readonly #addresses = new Set<string>();
  readonly #maxAddresses: number;

  constructor(maxAddresses: number) {
    this.#maxAddresses = maxAddresses;
  }

  async allowance(address: string): Promise<FailureAllowance> {
    const state = await this.#failures.get(address);
    if (state === null || state.msBeforeNext <= 0) return { left: FAILURES_PER_WINDOW, retryAfterSeconds: 0 };
    return { left: state.remainingPoints, retryAfterSeconds: Math.ceil(state.msBeforeNext / 1000) };
  }

  async failed(address: string): Promise<void> {
    const { isFirstInDuration } = await this.#failures.penalty(address);
    if (!isFirstInDuration) return;
    this.#addresses.delete(address);
    this.#addresses.add(address);
    if (this.#addresses.size <= this.#maxAddresses) return;
    const [oldest] = this.#addresses;
    if (oldest === undefined) return;
    this.#addresses.delete(oldest);
    await this.#failures.delete(oldest);
  }
}

/**
 * A limiter in this process's memory: 60 failures a minute and address. Beyond `maxAddresses` the address whose window
 * is the oldest is forgotten.
 */
export function createMemoryFailureLimiter({ maxAddresses = MAX_ADDRESSES } = {}): FailureLimiter {
  return new MemoryFailureLimiter(maxAddresses);
}
