/** How long one request waits for Redis in all (R6: `redis.timeout`, 250 ms), however many commands it causes. */
import { systemTimers, withDeadline } from '../time/timers.ts';
import { RedisTimeoutError } from './errors.ts';

/** Every answer gets as long as that: a process that is held up itself must not mistake that for a slow Redis. */
const MIN_WAIT_MS = 10;

export class RedisWait {
  #leftMs: number;

  constructor(totalMs: number) {
    this.#leftMs = totalMs;
  }

  /** Takes the time until the answer is there off the request's; does not end the wait. */
  async timed<T>(answer: Promise<T> | T): Promise<T> {
    const sinceMs = performance.now();
    try {
      return await answer;
    } finally {
      this.#leftMs -= performance.now() - sinceMs;
    }
  }

  /** The same; rejects with RedisTimeoutError once the request has waited long enough. The command itself goes on. */
  within<T>(answer: Promise<T>): Promise<T> {
    return this.timed(this.#bounded(answer));
  }

  /** The same while the request waits for something else anyway: only an answer that does not come in time costs it time. */
  async beside<T>(answer: Promise<T>): Promise<T> {
    try {
      return await this.#bounded(answer);
    } catch (error) {
      if (error instanceof RedisTimeoutError) this.#leftMs = 0;
      throw error;
    }
  }

  #bounded<T>(answer: Promise<T>): Promise<T> {
    return beforeDeadline(answer, Math.max(MIN_WAIT_MS, this.#leftMs));
  }
}

/** By so much longer than a command a probe may take: a gateway that only looks is not to lose a Redis that is just slow. */
export const PROBE_SLACK_MS = 250;

/** Rejects with RedisTimeoutError after that time. */
export function beforeDeadline<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  return withDeadline(answer, timeoutMs, systemTimers, () => {
    throw new RedisTimeoutError(timeoutMs);
  });
}
