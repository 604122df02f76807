/** The bars of every soak: its requests, and the secrets that must not have got anywhere. */
import { type Bar, count, ms, percent } from '../bar.ts';
import type { Failure, FaultLog } from './faults.ts';
import type { Secrets } from './secrets.ts';
import type { Traffic } from './traffic.ts';

/** The least of the time in which nothing may fail. */
const LEAST_CALM_SHARE = 0.3;
const LEAST_SEARCHED = 100;

export interface Ran {
  /** The kind and length of the run, in words. */
  readonly what: string;
  readonly traffic: Traffic;
  readonly failures: readonly Failure[];
  readonly log: FaultLog;
  readonly beganMs: number;
  readonly endedMs: number;
}

export function requestsBar({ what, traffic, failures, log, beganMs, endedMs }: Ran): Bar {
  const unexplained = failures.filter((failure) => !log.isExplained(failure));
  const calm = log.calmShare(beganMs, endedMs);
  const statuses = [...traffic.statuses].toSorted(([a], [b]) => a - b).map(([one, times]) => `${one}: ${count(times)}`);
  const shown = unexplained
    .slice(0, 3)
    .map(({ what: fault, gateway, toMs }) => `${fault} (gateway ${gateway}, ${log.before(toMs)})`);
  return {
    name: 'soak, requests',
    bar: `${what}: no failed request that none of the faults explains, at least ${percent(LEAST_CALM_SHARE)} of the time with nothing to explain any`,
    measured: `${count(traffic.requests)} requests (${statuses.join(', ')}), ${failures.length} failed, ${unexplained.length} unexplained${shown.length === 0 ? '' : `: ${shown.join('; ')}`}; longest ${ms(traffic.longestMs)}; calm ${percent(calm)}; ${log.counts()}`,
    ok: unexplained.length === 0 && calm >= LEAST_CALM_SHARE,
  };
}

export function secretsBar({ searched, found }: Secrets): Bar {
  return {
    name: 'soak, secrets',
    bar: 'API keys, admin and store tokens and query strings in no log, metric, error or anywhere in Redis; contents of records in no log, metric or error',
    measured: `${count(searched)} texts searched: ${found.length === 0 ? 'none found' : found.join('; ')}`,
    ok: found.length === 0 && searched > LEAST_SEARCHED,
  };
}
