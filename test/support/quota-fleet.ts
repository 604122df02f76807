/** Several processes that hammer one quota in one Redis, and what the oracle says of all they were told. */
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { rateLimitHeaders } from './quota-headers.ts';
import type { QuotaDecision } from '../../src/quota/quota.ts';
import { QuotaOracle } from './quota-oracle.ts';
import { headersByTheBook } from './quota-headers.ts';
import { type HammerReport, hammerReport, type HammerTask } from './redis-quota-worker.ts';

const run = promisify(execFile);
const WORKER = resolve(import.meta.dirname, 'redis-quota-worker.ts');
/** Node and its modules have to load in each of them first. */
const START_DELAY_MS = 2000;
const MOST_FAULTS = 5;
/** So many that have left both windows are let be before they are dropped from the oracle, which goes through all. */
const MOST_STALE = 200;

export interface FleetTask extends Omit<HammerTask, 'seed' | 'startAtMs'> {
  readonly processes: number;
}

export interface FleetVerdict {
  readonly decisions: number;
  readonly admitted: number;
  readonly refused: number;
  /** How many of each process's requests were admitted. */
  readonly admittedByProcess: readonly number[];
  /** How often a process went on without Redis. */
  readonly wentAlone: number;
  /** The most admitted requests in any trailing window. */
  readonly fullestMinute: number;
  readonly fullestHour: number;
  /** The first few decisions and headers that are not what the oracle says; none where all is well. */
  readonly faults: readonly string[];
}

export async function hammerFleet({ processes, ...task }: FleetTask): Promise<FleetVerdict> {
  const startAtMs = Date.now() + START_DELAY_MS;
  const reports = await Promise.all(
    Array.from({ length: processes }, async (_, index): Promise<HammerReport> => {
      const argument = JSON.stringify({ ...task, startAtMs, seed: index + 1 });
      const { stdout } = await run(process.execPath, [WORKER, argument], { maxBuffer: 1e9 });
      return hammerReport.parse(JSON.parse(stdout));
    }),
  );
  const decisions = reports.flatMap((report) => report.decisions).toSorted(inOrder);
  const admitted = decisions.filter((decision) => decision.admitted).map((decision) => decision.nowMicros);
  return {
    decisions: decisions.length,
    admitted: admitted.length,
    refused: decisions.length - admitted.length,
    admittedByProcess: reports.map((report) => report.decisions.filter((decision) => decision.admitted).length),
    wentAlone: reports.reduce((sum, report) => sum + report.wentAlone, 0),
    fullestMinute: fullest(admitted, task.windows.minuteMicros),
    fullestHour: fullest(admitted, task.windows.hourMicros),
    faults: faultsOf(decisions, task),
  };
}

/** By time; of those at the same microsecond, which one call decided on, the admitted come first. */
function inOrder(a: QuotaDecision, b: QuotaDecision): number {
  return a.nowMicros - b.nowMicros || Number(b.admitted) - Number(a.admitted) || b.hour.remaining - a.hour.remaining;
}

function faultsOf(
  decisions: readonly QuotaDecision[],
  { windows, limits }: Pick<FleetTask, 'windows' | 'limits'>,
): readonly string[] {
  const faults: string[] = [];
  const oracle = new QuotaOracle(windows);
  for (const decision of decisions) {
    const stale = oracle.admitted.findIndex((time) => time >= decision.nowMicros - windows.hourMicros);
    if (stale > MOST_STALE) oracle.admitted.splice(0, stale);
    const expected = oracle.take(decision.nowMicros, limits);
    const isExact =
      isDeepStrictEqual(decision, expected) &&
      isDeepStrictEqual(rateLimitHeaders(decision), headersByTheBook(expected));
    if (!isExact) faults.push(`${JSON.stringify(decision)} instead of ${JSON.stringify(expected)}`);
    if (faults.length === MOST_FAULTS) break;
  }
  return faults;
}

/** The most of the times, which never fall, that any closed stretch of that length holds. */
function fullest(times: readonly number[], lengthMicros: number): number {
  let first = 0;
  let most = 0;
  for (const [index, end] of times.entries()) {
    while ((times[first] ?? end) < end - lengthMicros) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
