/** The answer to each request of one call, worked out of the call's reply: pure, and equal to what `decide` would say. */
import type { QuotaWindows } from './log.ts';
import type { QuotaDecision, QuotaLimits, QuotaStanding, WindowState } from './quota.ts';
import type { LogReply, RequestRun, RunOutcome } from './redis-log.ts';

/** What both windows hold after some of the call's requests. */
interface Standing {
  readonly reply: LogReply;
  readonly windows: QuotaWindows;
  /** How many requests of the call were admitted so far, all at `nowMicros`. */
  readonly admitted: number;
}

function stateOf(standing: Standing, window: 'minute' | 'hour', limit: number): WindowState {
  const { reply, windows, admitted } = standing;
  const lengthMicros = window === 'minute' ? windows.minuteMicros : windows.hourMicros;
  const before = reply[window];
  const used = before.used + admitted;
  const newest = admitted > 0 ? reply.nowMicros : before.used > 0 ? reply.newestMicros : null;
  const oldest = before.oldestMicros ?? newest;
  return {
    limit,
    remaining: Math.max(0, limit - used),
    emptyAtMicros: newest === null ? reply.nowMicros : newest + lengthMicros,
    nextFreeAtMicros: oldest === null ? reply.nowMicros : oldest + lengthMicros,
  };
}

/** `outcome` is that of the run of a refused request, null for an admitted one. */
function decisionOf(standing: Standing, limits: QuotaLimits, outcome: RunOutcome | null): QuotaDecision {
  const { nowMicros } = standing.reply;
  return {
    admitted: outcome === null,
    nowMicros,
    minute: stateOf(standing, 'minute', limits.perMinute),
    hour: stateOf(standing, 'hour', limits.perHour),
    retryAtMicros:
      outcome === null
        ? null
        : Math.max(outcome.minuteRoomAtMicros ?? nowMicros, outcome.hourRoomAtMicros ?? nowMicros),
  };
}

/** How the quota stood before any request of the call. */
export function standingOf(reply: LogReply, limits: QuotaLimits, windows: QuotaWindows): QuotaStanding {
  const before = { reply, windows, admitted: 0 };
  return {
    nowMicros: reply.nowMicros,
    minute: stateOf(before, 'minute', limits.perMinute),
    hour: stateOf(before, 'hour', limits.perHour),
  };
}

/** One decision a request, in the order of the runs. */
export function decisionsOf(reply: LogReply, runs: readonly RequestRun[], windows: QuotaWindows): QuotaDecision[] {
  const decisions: QuotaDecision[] = [];
  let admitted = 0;
  for (const [index, { limits, count }] of runs.entries()) {
    const outcome = reply.outcomes[index];
    if (outcome === undefined) throw new RangeError(`The reply has no outcome for run ${index}.`);
    for (let i = 0; i < count; i += 1) {
      const isAdmitted = i < outcome.admitted;
      if (isAdmitted) admitted += 1;
      decisions.push(decisionOf({ reply, windows, admitted }, limits, isAdmitted ? null : outcome));
    }
  }
  return decisions;
}
