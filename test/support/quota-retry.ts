/** Clients that do what `Retry-After` says, and others that come a second too early, on a real Redis and a real clock. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/clock.ts';
import { rateLimitHeaders } from './quota-headers.ts';
import type { QuotaWindows } from '../../src/quota/log.ts';
import type { Quota, QuotaDecision, QuotaLimits } from '../../src/quota/quota.ts';
import { openFleetQuota } from '../../src/quota/redis-open.ts';
import { openRedis } from '../../src/redis/connection.ts';
import { SeededRandom } from './random.ts';
import { linkUp } from './redis-link.ts';

const MICROS_PER_SECOND = 1_000_000;
/** Early clients come this much before the last second begins, so that most of them are in time to be too early. */
const AHEAD_MS = 20;

export interface RetryTask {
  readonly url: string;
  readonly windows: QuotaWindows;
  /** So many quotas, all at once. */
  readonly quotas: number;
}

export interface RetryVerdict {
  /** Requests made as soon as the header had said. */
  readonly waited: number;
  readonly waitedAndRefused: number;
  /** Requests made a second or more before that. */
  readonly early: number;
  readonly earlyAndAdmitted: number;
  readonly wentAlone: number;
}

export async function followRetryAfter({ url, windows, quotas }: RetryTask): Promise<RetryVerdict> {
  const link = openRedis({ url, role: 'state' });
  await linkUp(link);
  let wentAlone = 0;
  const hooks = { onAlone: () => (wentAlone += 1) };
  const members = { count: () => 1 };
  const quota = openFleetQuota({ link, clock: systemClock, members, windows, hooks, answerWithinMs: 5000 });
  try {
    const clients = await Promise.all(
      Array.from({ length: quotas }, (_, index) => follow(quota, `retry-${index}`, new SeededRandom(index + 1))),
    );
    const count = (isCounted: (client: Followed) => boolean): number => clients.filter(isCounted).length;
    return {
      waited: clients.length,
      waitedAndRefused: count(({ later }) => !later.admitted),
      early: count(({ early }) => early !== null),
      earlyAndAdmitted: count(({ early }) => early?.admitted === true),
      wentAlone,
    };
  } finally {
    quota.close();
    await link.close();
  }
}

interface Followed {
  /** Null where there was no second to be early by, or this process was held up until it wasn't early any more. */
  readonly early: QuotaDecision | null;
  readonly later: QuotaDecision;
}

async function follow(quota: Quota, quotaId: string, random: SeededRandom): Promise<Followed> {
  const limits = { perMinute: random.integer(1, 3), perHour: random.integer(2, 5) };
  const { told, seconds, askedAtMs, answeredAtMs } = await exhaust(quota, { quotaId, limits, random });
  await until(askedAtMs + (seconds - 1) * 1000 - AHEAD_MS);
  const tried = seconds > 1 ? await quota.take(quotaId, limits) : null;
  const isEarly = tried !== null && tried.nowMicros <= told.nowMicros + (seconds - 1) * MICROS_PER_SECOND;
  await until(answeredAtMs + seconds * 1000);
  return { early: isEarly ? tried : null, later: await quota.take(quotaId, limits) };
}

interface Refused {
  readonly told: QuotaDecision;
  /** What `Retry-After` says. */
  readonly seconds: number;
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
}

/** Requests with pauses between them until one is refused. */
async function exhaust(
  quota: Quota,
  { quotaId, limits, random }: { quotaId: string; limits: QuotaLimits; random: SeededRandom },
): Promise<Refused> {
  for (;;) {
    await sleep(random.integer(0, 300));
    const askedAtMs = performance.now();
    const told = await quota.take(quotaId, limits);
    const answeredAtMs = performance.now();
    const header = rateLimitHeaders(told)['Retry-After'];
    if (header !== undefined) return { told, seconds: Number(header), askedAtMs, answeredAtMs };
  }
}

/** A timer may fire a little before its time. */
async function until(atMs: number): Promise<void> {
  for (;;) {
    const leftMs = atMs - performance.now();
    if (leftMs <= 0) return;
    await sleep(Math.ceil(leftMs));
  }
}
