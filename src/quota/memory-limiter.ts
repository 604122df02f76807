/** The limits of a gateway without Redis, in the memory of its one process. */
import { type Clock, wallMicros } from '../time/clock.ts';
import { later, type QuotaDecision, type QuotaLimiter, type QuotaLimits, type QuotaUsage } from './limiter.ts';
import { HOUR_MICROS, SlidingWindowLog } from './window-log.ts';

/** Idle logs dropped per request. A request adds at most one log, so two keep ahead of it and bound the work. */
const DROPS_PER_REQUEST = 2;

/** It has no timers: idle logs are dropped as other requests come. */
export class MemoryLimiter implements QuotaLimiter {
  /** In the order of their newest requests: the longest idle comes first. */
  readonly #logs = new Map<string, SlidingWindowLog>();
  readonly #clock: Clock;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  async consume(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    const nowMicros = this.#clock.nowMicros();
    this.#dropIdle(nowMicros);
    const log = this.#logs.get(quotaId) ?? new SlidingWindowLog();
    const decision = log.consume(nowMicros, limits);
    if (decision.admitted) {
      this.#logs.delete(quotaId);
      this.#logs.set(quotaId, log);
    }
    return this.#shown(decision);
  }

  async usage(quotaId: string, limits: QuotaLimits): Promise<QuotaUsage> {
    const log = this.#logs.get(quotaId) ?? new SlidingWindowLog();
    return this.#shown(log.usage(this.#clock.nowMicros(), limits));
  }

  /** Consumers live by the wall clock, which may have been set since this process started (C9: the wall clock is not trusted). */
  #shown<T extends QuotaUsage & { readonly retryAtMicros?: number | null }>(usage: T): T {
    return later(usage, wallMicros(this.#clock) - usage.nowMicros);
  }

  #dropIdle(nowMicros: number): void {
    let drops = 0;
    for (const [quotaId, log] of this.#logs) {
      const isIdle = log.newestMicros < nowMicros - HOUR_MICROS;
      if (!isIdle || drops === DROPS_PER_REQUEST) return;
      this.#logs.delete(quotaId);
      drops += 1;
    }
  }
}
