/**
 * A process's share of a quota while it is on its own: pure. Each of n processes takes it that whatever it admits, the
 * others admit as well, so that one admission counts n times. Together they so never admit more than what was left when
 * they lost each other, as far as they knew it; where the limit is below n, each still admits one in a window.
 */
import type { RunLog } from './fallback-log.ts';
import { decide, type QuotaWindows, standing } from './log.ts';
import type { QuotaDecision, QuotaLimits, QuotaStanding, WindowState } from './quota.ts';

export interface Share {
  readonly limits: QuotaLimits;
  readonly windows: QuotaWindows;
  /** How many processes share the limits; an integer from 1. */
  readonly processes: number;
}

/** A request needs room for one of each process. */
function inForce(limit: number, processes: number): number {
  return Math.max(1, limit - processes + 1);
}

/** `decide` counted an admitted request once. The consumer is told the key's own limit, and what this process has left. */
function shareOf(state: WindowState, admitted: boolean, limit: number, processes: number): WindowState {
  const room = admitted ? state.remaining + 1 - processes : state.remaining;
  return { ...state, limit, remaining: Math.max(0, Math.ceil(room / processes)) };
}

function inForceOf({ limits, processes }: Share): QuotaLimits {
  return { perMinute: inForce(limits.perMinute, processes), perHour: inForce(limits.perHour, processes) };
}

/** How the share stands by what the log holds, which is not changed. */
export function shareStanding(log: RunLog, clockMicros: number, share: Share): QuotaStanding {
  const { limits, windows, processes } = share;
  const { nowMicros, minute, hour } = standing(log, clockMicros, inForceOf(share), windows);
  return {
    nowMicros,
    minute: shareOf(minute, false, limits.perMinute, processes),
    hour: shareOf(hour, false, limits.perHour, processes),
  };
}

/** Decides on one more request by what the log holds, and adds it, once a process, if it is admitted. */
export function decideShare(log: RunLog, clockMicros: number, share: Share): QuotaDecision {
  const { limits, windows, processes } = share;
  const { decision, expired } = decide(log, clockMicros, inForceOf(share), windows);
  if (decision.admitted) {
    log.dropOldest(expired);
    log.push(decision.nowMicros, processes);
  }
  return {
    ...decision,
    minute: shareOf(decision.minute, decision.admitted, limits.perMinute, processes),
    hour: shareOf(decision.hour, decision.admitted, limits.perHour, processes),
  };
}
