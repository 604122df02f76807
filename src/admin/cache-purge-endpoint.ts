/** POST /api/cache/purge: purging by tag, or only telling what would be purged. */
import type { PurgeRequest, PurgeResult } from '../cache/purge.ts';
import type { Tag } from '../cache/tags.ts';
import { attempt } from './attempt.ts';
import type { Audit } from './audit.ts';
import { BODY_LIMIT_BYTES, readJson } from './body.ts';
import { PURGE_RULES } from './cache-rules.ts';
import { callerOf, type EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { mustBe } from './faults.ts';

export interface PurgeEndpointOptions {
  readonly purge: (request: PurgeRequest) => Promise<PurgeResult>;
  readonly audit: Audit;
}

/** A purge may name a thousand tags; the audit is bounded. */
const MOST_AUDITED_TAGS = 100;

export function purgeEndpoint(options: PurgeEndpointOptions): Endpoint {
  return {
    method: 'POST',
    path: '/api/cache/purge',
    what: 'purge cached answers by tag, at once or softly; with dryRun it only tells what would be purged',
    handle: (ctx) => handlePurge(ctx, options),
  };
}

async function handlePurge(ctx: EndpointContext, { purge, audit }: PurgeEndpointOptions): Promise<void> {
  const request = mustBe(PURGE_RULES, await readJson(ctx, BODY_LIMIT_BYTES));
  const { mode, isDryRun } = request;
  const about = { who: callerOf(ctx), action: 'cache.purge', target: 'cache' };
  const asked = { mode, ...auditedTags(request.tags) };
  const { entries, bytes, tags } = await (isDryRun
    ? purge(request)
    : attempt(audit, { ...about, asked }, () => purge(request)));
  if (!isDryRun) {
    await audit.record({ ...about, from: null, to: { mode, entries, bytes, ...auditedTags(tags) } });
  }
  ctx.body = { entries, bytes, tags, mode, dryRun: isDryRun };
}

function auditedTags(tags: readonly Tag[]): { readonly tagCount: number; readonly tags: readonly Tag[] } {
  return { tagCount: tags.length, tags: tags.slice(0, MOST_AUDITED_TAGS) };
}
