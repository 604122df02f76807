import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { RunLog } from '../../../src/quota/fallback-log.ts';
import { decideShare } from '../../../src/quota/fallback-share.ts';
import type { QuotaLimits } from '../../../src/quota/quota.ts';
import { QuotaOracle } from '../../contract/quota/oracle.ts';

const WINDOWS = { minuteMicros: 60, hourMicros: 3600 };

test('R5: with one process the share is the quota itself, decided as the oracle does', () => {
  const step = fc.record({
    gap: fc.oneof(fc.constantFrom(0, 1, 59, 60, 61, 3540, 3600, 3601), fc.nat(200)),
    perMinute: fc.integer({ min: 1, max: 5 }),
    perHour: fc.integer({ min: 1, max: 12 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const log = new RunLog();
      const oracle = new QuotaOracle(WINDOWS);
      let clock = 1_000_000;
      for (const { gap, ...limits } of steps) {
        clock += gap;
        const decision = decideShare(log, clock, { limits, windows: WINDOWS, processes: 1 });
        expect(decision).toEqual(oracle.take(clock, limits));
      }
    }),
  );
});

test.each([
  { limit: 12, used: 0, processes: 4, admits: 3 },
  { limit: 12, used: 4, processes: 4, admits: 2 },
  { limit: 12, used: 5, processes: 4, admits: 1 },
  { limit: 12, used: 9, processes: 4, admits: 0 },
  { limit: 12, used: 12, processes: 4, admits: 0 },
  { limit: 3, used: 0, processes: 4, admits: 1 },
  { limit: 3, used: 1, processes: 4, admits: 0 },
  { limit: 1, used: 0, processes: 9, admits: 1 },
])(
  'R5: of a limit of $limit with $used used, each of $processes processes admits $admits and says so',
  ({ limit, used, processes, admits }) => {
    const log = new RunLog();
    if (used > 0) log.push(100, used);
    const share = { limits: { perMinute: limit, perHour: 1000 }, windows: WINDOWS, processes };
    const decisions = Array.from({ length: admits + 1 }, () => decideShare(log, 101, share));
    expect(decisions.map((decision) => decision.admitted)).toEqual([
      ...Array.from({ length: admits }, () => true),
      false,
    ]);
    expect(decisions.map((decision) => decision.minute.remaining)).toEqual([
      ...Array.from({ length: admits }, (_, i) => admits - 1 - i),
      0,
    ]);
    expect(new Set(decisions.map((decision) => decision.minute.limit))).toEqual(new Set([limit]));
  },
);

function wouldAdmit(log: RunLog, timeMicros: number, limits: QuotaLimits): boolean {
  const copy = new RunLog();
  for (const [time, count] of log.runs()) copy.push(time, count);
  return decideShare(copy, timeMicros, { limits, windows: WINDOWS, processes: 4 }).admitted;
}

test('R5: processes that know the use never admit more than the limit together, and each is told the truth', () => {
  const arrival = fc.record({ gap: fc.nat(40), process: fc.nat(3) });
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 30 }),
      fc.integer({ min: 4, max: 60 }),
      fc.array(fc.nat(30), { maxLength: 30 }),
      fc.array(arrival, { maxLength: 200 }),
      (perMinute, perHour, gaps, arrivals) => {
        const limits = { perMinute, perHour };
        // While they are together one exact log decides; each knows it when they lose each other.
        const together = new QuotaOracle(WINDOWS);
        let clock = 10_000;
        for (const gap of gaps) together.take((clock += gap), limits);
        const logs = Array.from({ length: 4 }, () => new RunLog());
        for (const log of logs) for (const time of together.admitted) log.push(time, 1);
        const admitted = [...together.admitted];
        for (const { gap, process } of arrivals) {
          clock += gap;
          const log = logs[process] ?? new RunLog();
          const decision = decideShare(log, clock, { limits, windows: WINDOWS, processes: 4 });
          if (decision.admitted) admitted.push(clock);
          const retry = decision.retryAtMicros;
          const around = retry === null ? [] : [retry - 1, retry].map((time) => wouldAdmit(log, time, limits));
          expect(around).toEqual(retry === null ? [] : [false, true]);
        }
        for (const [lengthMicros, limit] of [
          [WINDOWS.minuteMicros, perMinute],
          [WINDOWS.hourMicros, perHour],
        ] as const) {
          const fullest = Math.max(
            0,
            ...admitted.map((end) => admitted.filter((time) => time <= end && end - time <= lengthMicros).length),
          );
          expect(fullest).toBeLessThanOrEqual(limit);
        }
      },
    ),
    { numRuns: 200 },
  );
});
