/** The exact quota: the pure algorithm, four processes on one Redis, clients that obey `Retry-After`, and what it costs. */
import { openRedis } from '../../../src/redis/connection.ts';
import { scriptMicros } from '../../support/quota-cost.ts';
import { hammerFleet } from '../../support/quota-fleet.ts';
import { followRetryAfter } from '../../support/quota-retry.ts';
import { judgeTraces } from '../../support/quota-traces.ts';
import { linkUp } from '../../support/redis-link.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { count, ms, type Row, scaled, type Scale } from '../row.ts';

const PROCESSES = 4;
const LOG_ENTRIES = 1000;
const SCRIPT_BAR_MICROS = { whole: 30, short: 60 };

export async function run(scale: Scale): Promise<readonly Row[]> {
  const pure = traces(scale);
  const redis = await startRedis();
  try {
    const [shared, obeyed] = await Promise.all([fleet(redis, scale), retries(redis, scale)]);
    // What a script costs a server does not depend on how many there are.
    return [pure, shared, obeyed, ...(redis.servers.length === 1 ? [await cost(redis, scale)] : [])];
  } finally {
    await redis.close();
  }
}

function traces(scale: Scale): Row {
  const whole = scaled(scale, 10_000);
  const { decisions, refusals, faults } = judgeTraces(whole);
  return {
    name: 'quota, pure algorithm',
    bar: `${count(whole)} random traces, decided as by an oracle that goes through the whole log`,
    measured: `${count(decisions)} decisions, ${count(refusals)} refusals: ${faults[0] ?? 'all as the oracle'}`,
    // Traces that hardly refuse would show nothing.
    ok: faults.length === 0 && refusals > 5 * whole,
  };
}

async function fleet({ url }: TestRedis, scale: Scale): Promise<Row> {
  const windows = { minuteMicros: 250_000, hourMicros: 1_500_000 };
  const limits = { perMinute: 12, perHour: 40 };
  const durationMs = scaled(scale, 60_000);
  const told = await hammerFleet({ processes: PROCESSES, url, windows, limits, durationMs });
  const hours = Math.floor((durationMs * 1000) / windows.hourMicros);
  const isFull = told.fullestMinute === limits.perMinute && told.fullestHour === limits.perHour;
  // All that the limits give was given: no process keeps another from what is left.
  const isGiven = told.admitted > (hours - 1) * limits.perHour && told.admittedByProcess.every((own) => own > 0);
  const trouble = told.wentAlone > 0 ? `${told.wentAlone} times without Redis` : told.faults[0];
  return {
    name: 'quota, fleet',
    bar: `${PROCESSES} processes, bursts at the edges of windows of 250 and 1,500 ms, ${ms(durationMs)}: never over ${limits.perMinute} and ${limits.perHour} in any trailing window, every decision and header exact`,
    measured: `${count(told.decisions)} requests, ${count(told.admitted)} admitted; fullest windows ${told.fullestMinute} and ${told.fullestHour}; ${trouble ?? 'all exact'}`,
    ok: isFull && isGiven && trouble === undefined,
  };
}

async function retries({ url }: TestRedis, scale: Scale): Promise<Row> {
  const quotas = scaled(scale, 400);
  const windows =
    scale === 'whole'
      ? { minuteMicros: 2_000_000, hourMicros: 5_000_000 }
      : { minuteMicros: 1_200_000, hourMicros: 2_500_000 };
  const told = await followRetryAfter({ url, windows, quotas });
  return {
    name: 'quota, Retry-After',
    bar: `${count(quotas)} clients that wait as long as it says are admitted, those that come a second earlier are not`,
    measured: `${count(told.waited)} waited, ${told.waitedAndRefused} of them refused; ${count(told.early)} came early, ${told.earlyAndAdmitted} of them admitted`,
    ok: told.waitedAndRefused === 0 && told.earlyAndAdmitted === 0 && told.early > quotas / 5 && told.wentAlone === 0,
  };
}

async function cost({ url }: TestRedis, scale: Scale): Promise<Row> {
  const link = openRedis({ url, role: 'state' });
  await linkUp(link);
  try {
    const micros = await scriptMicros(link, LOG_ENTRIES);
    return {
      name: 'quota, cost',
      bar: `at most ${SCRIPT_BAR_MICROS[scale]} µs of Redis's CPU a request with ${count(LOG_ENTRIES)} requests in the log`,
      measured: `${micros.toFixed(1)} µs`,
      ok: micros <= SCRIPT_BAR_MICROS[scale],
    };
  } finally {
    await link.close();
  }
}
