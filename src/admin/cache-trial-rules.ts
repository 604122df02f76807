/** What the body of POST /api/cache/trials may hold, and what becomes of it. Pure. */
import { z } from 'zod';
import { CACHE_CLASSES } from '../cache/times.ts';
import type { TrialPlan } from '../cache/trial/trial.ts';
import { parseDuration } from '../duration.ts';
import { LONGEST_TIME_MS } from './cache-rules.ts';
import { type BodyRules, mustBe } from './faults.ts';

export const SHORTEST_TRIAL_MS = 60_000;
export const LONGEST_TRIAL_MS = 7 * 86_400_000;
export const LARGEST_SHARE = 0.5;
/** Below that, chance alone would end trials that do no harm. */
export const LEAST_STORE_LOAD = 1.1;
export const MOST_STORE_LOAD = 100;
export const LEAST_ERRORS = 0.01;

function durationBetween(leastMs: number, mostMs: number) {
  return z
    .string()
    .transform((text) => parseDuration(text) ?? Number.NaN)
    .refine((ms) => ms >= leastMs && ms <= mostMs);
}

const RULES: BodyRules<TrialPlan> = {
  schema: z
    .strictObject({
      class: z.enum(CACHE_CLASSES),
      fresh: durationBetween(0, LONGEST_TIME_MS),
      share: z.number().gt(0).max(LARGEST_SHARE),
      for: durationBetween(SHORTEST_TRIAL_MS, LONGEST_TRIAL_MS),
      maxStoreLoad: z.number().min(LEAST_STORE_LOAD).max(MOST_STORE_LOAD).default(1.5),
      maxErrors: z.number().min(LEAST_ERRORS).max(1).default(0.05),
    })
    .transform(({ class: cacheClass, fresh, share, for: forMs, maxStoreLoad, maxErrors }) => ({
      class: cacheClass,
      freshMs: fresh,
      share,
      forMs,
      limits: { maxStoreLoad, maxErrors },
    })),
  allowed: {
    class: `one of ${CACHE_CLASSES.join(', ')}`,
    fresh: 'the time to try, a duration from 0s to 365d, such as 250ms, 30s, 5m or 2h',
    share: `a number above 0 and up to ${LARGEST_SHARE}, such as 0.1 for a tenth of the keys of the class`,
    for: 'a duration from 1m to 7d, such as 30m, 1h or 1d',
    maxStoreLoad: `a number from ${LEAST_STORE_LOAD} to ${MOST_STORE_LOAD}: how many times as often as the other keys those of the trial may ask the store (1.5 where it is left out)`,
    maxErrors: `a number from ${LEAST_ERRORS} to 1: by how much more the share of calls that fail may be (0.05 where it is left out)`,
  },
};

/** What the body asks for. Throws AdminError 400 with every fault. */
export function planOf(body: unknown): TrialPlan {
  return mustBe(RULES, body);
}
