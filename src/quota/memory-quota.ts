/** The exact quota in this process's memory: what a gateway without Redis uses. */
import type { Clock } from '../clock.ts';
import { decide, QUOTA_WINDOWS, type QuotaWindows, standing } from './log.ts';
import type { Quota, QuotaDecision, QuotaLimits, QuotaStanding } from './quota.ts';
import { RingLog } from './ring-log.ts';

/** Idle logs dropped with one request. Each adds at most one, so two keep ahead of it and bound the work. */
const DROPS_PER_REQUEST = 2;

export interface MemoryQuota extends Quota {
  take(quotaId: string, limits: QuotaLimits): QuotaDecision;
  peek(quotaId: string, limits: QuotaLimits): QuotaStanding;
  /** How many logs are held: one for each quota used within the last hour, and those not yet dropped. */
  readonly logCount: number;
  /** How many admitted requests they hold together, at 8 to 32 bytes each. Goes through all logs. */
  readonly entryCount: number;
}

export interface MemoryQuotaOptions {
  readonly clock: Clock;
  /** Other lengths than a minute and an hour, for tests. */
  readonly windows?: QuotaWindows;
}

class LocalQuota implements MemoryQuota {
  /** In the order of their newest entries: the longest idle comes first. */
  readonly #logs = new Map<string, RingLog>();
  readonly #clock: Clock;
  readonly #windows: QuotaWindows;

  constructor({ clock, windows = QUOTA_WINDOWS }: MemoryQuotaOptions) {
    this.#clock = clock;
    this.#windows = windows;
  }

  get logCount(): number {
    return this.#logs.size;
  }

  get entryCount(): number {
    let count = 0;
    for (const log of this.#logs.values()) count += log.length;
    return count;
  }

  take(quotaId: string, limits: QuotaLimits): QuotaDecision {
    const clockMicros = this.#clock.nowMicros();
    this.#dropIdle(clockMicros);
    const log = this.#logs.get(quotaId) ?? new RingLog();
    const { decision, expired } = decide(log, clockMicros, limits, this.#windows);
    if (!decision.admitted) return decision;
    log.dropOldest(expired);
    log.push(decision.nowMicros, limits.perHour);
    this.#logs.delete(quotaId);
    this.#logs.set(quotaId, log);
    return decision;
  }

  peek(quotaId: string, limits: QuotaLimits): QuotaStanding {
    const log = this.#logs.get(quotaId) ?? new RingLog();
    return standing(log, this.#clock.nowMicros(), limits, this.#windows);
  }

  #dropIdle(nowMicros: number): void {
    let drops = 0;
    for (const [quotaId, log] of this.#logs) {
      const isIdle = log.at(log.length - 1) < nowMicros - this.#windows.hourMicros;
      if (!isIdle || drops === DROPS_PER_REQUEST) return;
      this.#logs.delete(quotaId);
      drops += 1;
    }
  }
}

/** A quota in memory. It has no timers: what is idle is dropped as other requests come. */
export function createMemoryQuota(options: MemoryQuotaOptions): MemoryQuota {
  return new LocalQuota(options);
}
