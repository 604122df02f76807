import type { InsightOptions } from '../../src/admin/insight-endpoints.ts';
import { createHistory } from '../../src/admin/history.ts';
import { AdjustableTimes } from '../../src/cache/times.ts';
import { WhatIfModel } from '../../src/cache/what-if/model.ts';
import { localWhatIf } from '../../src/cache/what-if/what-if.ts';
import type { Clock } from '../../src/clock.ts';
import { singleInstance } from '../../src/redis/instances.ts';

export const OUTDATED_LIMITS = {
  list: 0.02,
  evaluation: 0.02,
  transcript: 0.02,
  scorecard: 0.02,
  rubric: 0.02,
  dealInsights: 0.02,
  notFound: 0.02,
};

/** Of a gateway that is alone and has seen nothing yet, with the default times. */
export function createInsight(clock: Clock): InsightOptions {
  const times = new AdjustableTimes();
  return {
    whatIf: localWhatIf({ model: new WhatIfModel({ clock, times }), clock }),
    times,
    outdatedLimits: () => OUTDATED_LIMITS,
    history: createHistory(clock),
    members: singleInstance({
      host: 'gateway-1',
      pid: 4242,
      version: '1.2.3',
      startedAtMs: clock.nowMs(),
      status: 'ready',
      store: 'test',
    }),
  };
}
