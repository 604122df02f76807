/** An algorithm of the quota on random traces, judged by the oracle. */
import { isDeepStrictEqual } from 'node:util';
import type { QuotaDecision, QuotaLimits } from '../../src/quota/limiter.ts';
import { HOUR_MICROS, MINUTE_MICROS, SlidingWindowLog } from '../../src/quota/window-log.ts';
import { QuotaOracle } from './quota-oracle.ts';
import { SeededRandom } from './random.ts';

const START = 1_768_478_400_000_000;
const STEPS = 40;
const MAX_FAULTS = 5;

/** A log that holds requests admitted at those times, the oldest first. */
export function logOf(times: readonly number[]): SlidingWindowLog {
  const log = new SlidingWindowLog();
  for (const time of times) log.add(time, 1);
  return log;
}

export interface TracesVerdict {
  readonly decisions: number;
  readonly refusals: number;
  /** The first few things that were not as the oracle says; none if all is well. */
  readonly faults: readonly string[];
}

/** The decision on a request at that time, which is remembered if it is admitted. */
export type Decide = (nowMicros: number, limits: QuotaLimits) => QuotaDecision | Promise<QuotaDecision>;

function decideInMemory(): Decide {
  const log = new SlidingWindowLog();
  return (nowMicros, limits) => log.consume(nowMicros, limits);
}

/**
 * So many traces: bursts, steps to the edges of windows, limits that change, clocks that go back. `begin` begins a log for each;
 * by default that of the pure algorithm.
 */
export async function judgeTraces(traces: number, begin: () => Decide = decideInMemory): Promise<TracesVerdict> {
  const tally = { decisions: 0, refusals: 0, faults: [] as string[] };
  for (let seed = 1; seed <= traces && tally.faults.length < MAX_FAULTS; seed += 1) {
    const verdict = await judgeTrace(new SeededRandom(seed), begin());
    tally.decisions += verdict.decisions;
    tally.refusals += verdict.refusals;
    tally.faults.push(...verdict.faults.map((fault) => `trace ${seed}: ${fault}`));
  }
  return tally;
}

async function judgeTrace(random: SeededRandom, decide: Decide): Promise<TracesVerdict> {
  const changing = random.next() < 0.3;
  const newLimits = (): QuotaLimits => ({ perMinute: random.integer(1, 6), perHour: random.integer(1, 15) });
  const isSteppedBack = random.next() < 0.2;
  let limits = newLimits();
  let nowMicros = START;
  let refusals = 0;
  const faults: string[] = [];
  const oracle = new QuotaOracle();
  for (let step = 0; step < STEPS; step += 1) {
    nowMicros = nextTime(random, nowMicros, oracle);
    if (isSteppedBack && random.next() < 0.1) nowMicros -= random.integer(0, 2 * HOUR_MICROS);
    if (changing && random.next() < 0.2) limits = newLimits();
    const expected = oracle.consume(nowMicros, limits);
    const decision = await decide(nowMicros, limits);
    if (!isDeepStrictEqual(decision, expected)) {
      faults.push(`step ${step} is ${JSON.stringify(decision)} instead of ${JSON.stringify(expected)}`);
    }
    if (decision.admitted) {
      // Entries that the log has dropped do not come back when the clock goes back.
      const expired = oracle.admitted.findIndex((time) => time >= nowMicros - HOUR_MICROS);
      if (isSteppedBack) oracle.admitted.splice(0, expired);
      continue;
    }
    refusals += 1;
    const isRetryExact = step % 8 !== 0 || admitsFromOnly(oracle, decision, limits);
    if (!isRetryExact) faults.push(`step ${step}: ${decision.retryAtMicros} is not the first time with room`);
  }
  const isOver =
    mostWithin(oracle.admitted, MINUTE_MICROS) > limits.perMinute ||
    mostWithin(oracle.admitted, HOUR_MICROS) > limits.perHour;
  // A clock that goes back sees requests closer together than they were.
  if (!changing && !isSteppedBack && isOver) faults.push('a window holds more than its limit');
  return { decisions: STEPS, refusals, faults };
}

/** The most requests in any closed stretch of that length that ends with an admitted one. */
function mostWithin(times: readonly number[], lengthMicros: number): number {
  return Math.max(0, ...times.map((end) => times.filter((time) => time <= end && time >= end - lengthMicros).length));
}

/** A random step: mostly nothing or little, often right at the edge of a window seen from some earlier request. */
function nextTime(random: SeededRandom, nowMicros: number, oracle: QuotaOracle): number {
  const earlier = oracle.admitted[random.integer(0, oracle.admitted.length - 1)] ?? nowMicros;
  const edge = earlier + random.pick(MINUTE_MICROS, HOUR_MICROS) + random.integer(-1, 2);
  const step = random.pick(0, 0, 1, random.integer(0, MINUTE_MICROS), random.integer(0, HOUR_MICROS));
  return random.next() < 0.4 && edge >= nowMicros ? edge : nowMicros + step;
}

/** Whether one request is admitted at the time that the refusal tells, and not a microsecond before. */
function admitsFromOnly(oracle: QuotaOracle, { retryAtMicros }: QuotaDecision, limits: QuotaLimits): boolean {
  if (retryAtMicros === null) return false;
  const isAdmittedAt = (micros: number): boolean => logOf(oracle.admitted).consume(micros, limits).admitted;
  return isAdmittedAt(retryAtMicros) && !isAdmittedAt(retryAtMicros - 1);
}
