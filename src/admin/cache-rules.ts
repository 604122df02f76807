/** What the bodies of /api/cache may hold, and what becomes of them. Pure. */
import { z } from 'zod';
import type { PurgeRequest } from '../cache/purge.ts';
import { parseTag, type Tag } from '../cache/tags.ts';
import { CACHE_CLASSES, type CacheTimes } from '../cache/times.ts';
import { parseDuration } from '../duration.ts';
import { type BodyRules, faulty, mustBe } from './faults.ts';

/** What the configuration allows too: a time that may be written there may be set as well. */
export const LONGEST_TIME_MS = 365 * 86_400_000;
/** Far more than anyone lists by hand; beyond it `all` or a class does the same for less. */
const MOST_TAGS = 1000;

/** How a tag is written, for messages and help texts. */
export const TAG_FORM = `all, class:NAME (one of ${CACHE_CLASSES.join(', ')}), workspace:UUID, evaluation:ID or scorecard:ID (an ID is 1 to 64 characters of A-Z, a-z, 0-9, _ and -)`;

const tag = z.string().transform((text, context): Tag => {
  const parsed = parseTag(text);
  if (parsed !== null) return parsed;
  context.addIssue({ code: 'custom' });
  return z.NEVER;
});

/** Of `POST /api/cache/purge`. Who doesn't say how wants what is purged to be gone: `hard`. */
export const PURGE_RULES: BodyRules<PurgeRequest> = {
  schema: z
    .strictObject({
      tags: z.array(tag).min(1).max(MOST_TAGS),
      mode: z.enum(['soft', 'hard']).default('hard'),
      dryRun: z.boolean().default(false),
    })
    .transform(({ tags, mode, dryRun }) => ({ tags: [...new Set(tags)], mode, isDryRun: dryRun })),
  allowed: {
    tags: `an array of 1 to ${MOST_TAGS} tags`,
    'tags[]': TAG_FORM,
    mode: 'hard (the default: what is purged is gone) or soft (it is stale, and served while it is refreshed)',
    dryRun: 'true or false (the default)',
  },
};

const time = z
  .string()
  .transform((text) => parseDuration(text) ?? Number.NaN)
  .refine((ms) => ms >= 0 && ms <= LONGEST_TIME_MS)
  .optional();
const ALLOWED_TIME = 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 2h or 7d';

/** Of `PUT /api/cache/ttl/{class}`. */
const TIMES_RULES: BodyRules<Partial<CacheTimes>> = {
  schema: z.strictObject({ fresh: time, stale: time, error: time }).transform(({ fresh, stale, error }) => ({
    ...(fresh === undefined ? {} : { freshMs: fresh }),
    ...(stale === undefined ? {} : { staleMs: stale }),
    ...(error === undefined ? {} : { errorMs: error }),
  })),
  allowed: { fresh: ALLOWED_TIME, stale: ALLOWED_TIME, error: ALLOWED_TIME },
};

/** The times that a body sets, at least one. Throws AdminError 400 with every fault. */
export function timesOf(body: unknown): Partial<CacheTimes> {
  const times = mustBe(TIMES_RULES, body);
  if (Object.keys(times).length > 0) return times;
  throw faulty([`the body: sets no time; allowed: at least one of fresh, stale and error, each ${ALLOWED_TIME}`]);
}
