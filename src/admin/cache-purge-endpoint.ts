/** POST /api/cache/purge: purging by tag, or only counting what would be purged. */
import { z } from 'zod';
import type { PurgeRequest, PurgeResult } from '../cache/purge.ts';
import { parseTag, type Tag } from '../cache/tags.ts';
import { CACHE_CLASSES } from '../cache/ttl-policy.ts';
import { attempt } from './attempt.ts';
import type { Audit } from './audit.ts';
import { BODY_LIMIT_BYTES, readJson } from './body.ts';
import { callerOf, type EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { type BodyRules, mustBe } from './faults.ts';

export interface PurgeEndpointOptions {
  readonly purge: (request: PurgeRequest) => Promise<PurgeResult>;
  readonly audit: Audit;
}

/** Far more than anyone lists by hand; beyond it `all` or a class does the same for less. */
const MOST_TAGS = 1000;
/** A purge may name a thousand tags; the audit is bounded. */
const MOST_AUDITED_TAGS = 100;

/** How a tag is written, for messages and help texts. */
export const TAG_FORM = `all, class:NAME (one of ${CACHE_CLASSES.join(', ')}), workspace:UUID, evaluation:ID or scorecard:ID (an ID is 1 to 64 characters of A-Z, a-z, 0-9, _ and -)`;

const tag = z.string().transform((text, context): Tag => {
  const parsed = parseTag(text);
  if (parsed !== null) return parsed;
  context.addIssue({ code: 'custom' });
  return z.NEVER;
});

const REQUEST: BodyRules<PurgeRequest> = {
  schema: z
    .strictObject({
      tags: z.array(tag).min(1).max(MOST_TAGS),
      mode: z.enum(['soft', 'hard']).default('hard'),
      exact: z.boolean().default(false),
      dryRun: z.boolean().default(false),
    })
    .transform(({ tags, mode, exact, dryRun }) => ({
      tags: [...new Set(tags)],
      mode,
      isExact: exact,
      isDryRun: dryRun,
    })),
  allowed: {
    tags: `an array of 1 to ${MOST_TAGS} tags`,
    'tags[]': TAG_FORM,
    mode: 'hard (the default: what is purged is gone) or soft (it is stale, and served while it is refreshed)',
    exact: 'true (only these tags) or false (the default: also the lists that may hold a purged evaluation)',
    dryRun: 'true or false (the default)',
  },
};

export function purgeEndpoint(options: PurgeEndpointOptions): Endpoint {
  return {
    method: 'POST',
    path: '/api/cache/purge',
    what: 'purge cached answers by tag, at once or softly; with dryRun it only counts what would be purged',
    handle: (ctx) => handlePurge(ctx, options),
  };
}

async function handlePurge(ctx: EndpointContext, { purge, audit }: PurgeEndpointOptions): Promise<void> {
  const request = mustBe(REQUEST, await readJson(ctx, BODY_LIMIT_BYTES));
  const { mode, isExact, isDryRun } = request;
  const about = { who: callerOf(ctx), action: 'cache.purge', target: 'cache' };
  const exactly = isExact ? { exact: true } : {};
  const asked = { mode, ...exactly, ...auditedTags(request.tags) };
  const { entries, bytes, isComplete, lists, tags } = await (isDryRun
    ? purge(request)
    : attempt(audit, { ...about, asked }, () => purge(request)));
  if (!isDryRun) {
    const counted = { entries, bytes, ...(isComplete ? {} : { complete: false }) };
    await audit.record({ ...about, from: null, to: { mode, ...exactly, ...counted, ...auditedTags(tags) } });
  }
  ctx.body = { entries, bytes, complete: isComplete, lists, tags, mode, exact: isExact, dryRun: isDryRun };
}

function auditedTags(tags: readonly Tag[]): { readonly tagCount: number; readonly tags: readonly Tag[] } {
  return { tagCount: tags.length, tags: tags.slice(0, MOST_AUDITED_TAGS) };
}
