/**
 * Refusals that are given again without asking Redis. Until a refused quota has room nothing can be added to its log, so
 * its windows change only when their oldest request leaves, at a time that is known: until then the refusal holds.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { Clock } from '../time/clock.ts';
import type { QuotaDecision, QuotaLimits, WindowState } from './limiter.ts';

/** If more quotas are refused at once, some ask Redis more often. */
const MAX_REJECTIONS = 5000;
/** So that a step of Redis's clock, or a log dropped by hand, is noticed. */
const MAX_AGE_MICROS = 60_000_000;

/** When a call was sent and its reply came, by this process's clock: Redis's clock was read in between. */
interface CallTimes {
  readonly sentMicros: number;
  readonly receivedMicros: number;
}

interface Rejection extends QuotaDecision, CallTimes {
  readonly retryAtMicros: number;
  readonly validUntilMicros: number;
}

export class RejectionCache {
  readonly #clock: Clock;
  readonly #rejections = new LRUCache<string, Rejection>(atMost(MAX_REJECTIONS));

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The refusal of a request made now; null if Redis must be asked. */
  get(quotaId: string, limits: QuotaLimits): QuotaDecision | null {
    const rejection = this.#rejections.get(quotaId);
    if (rejection === undefined) return null;
    const { minute, hour, sentMicros, receivedMicros, retryAtMicros, validUntilMicros } = rejection;
    const clockMicros = this.#clock.nowMicros();
    // Redis's clock stands somewhere between these two: the later one never refuses what Redis would admit, the earlier
    // one never promises room too soon.
    const latestMicros = rejection.nowMicros + clockMicros - sentMicros;
    const nowMicros = rejection.nowMicros + clockMicros - receivedMicros;
    const isSame = minute.limit === limits.perMinute && hour.limit === limits.perHour;
    if (!isSame || latestMicros >= retryAtMicros || nowMicros > validUntilMicros) {
      this.#rejections.delete(quotaId);
      return null;
    }
    return { admitted: false, nowMicros, minute: at(nowMicros, minute), hour: at(nowMicros, hour), retryAtMicros };
  }

  /** Notes the last decision of a call: a refusal holds on, anything else ends an earlier one. */
  set(quotaId: string, decision: QuotaDecision, times: CallTimes): void {
    const { retryAtMicros, nowMicros } = decision;
    if (retryAtMicros === null) {
      this.#rejections.delete(quotaId);
      return;
    }
    const leaving = [decision.minute, decision.hour].filter((window) => !isEmpty(window));
    const validUntilMicros = Math.min(
      nowMicros + MAX_AGE_MICROS,
      ...leaving.map(({ nextFreeAtMicros }) => nextFreeAtMicros),
    );
    this.#rejections.set(quotaId, { ...decision, ...times, retryAtMicros, validUntilMicros });
  }
}

function isEmpty({ limit, remaining }: WindowState): boolean {
  return remaining === limit;
}

function at(nowMicros: number, window: WindowState): WindowState {
  return isEmpty(window) ? { ...window, emptyAtMicros: nowMicros, nextFreeAtMicros: nowMicros } : window;
}
