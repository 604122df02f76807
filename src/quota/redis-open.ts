/** Puts the quota of a gateway with Redis together. */
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/link.ts';
import type { Members } from '../redis/members.ts';
import { FallbackQuota, type SeenUse } from './fallback-quota.ts';
import { createResilientQuota, type ResilientQuotaOptions } from './fallback.ts';
import { QUOTA_WINDOWS, type QuotaWindows } from './log.ts';
import type { Quota } from './quota.ts';
import type { LogReply } from './redis-log.ts';
import { mergeIntoLog } from './redis-merge.ts';
import { createRedisQuota } from './redis-quota.ts';

export interface FleetQuota extends Quota {
  /** Whether Redis decides; false while this process goes on with its share. */
  isShared(): boolean;
  /** How many processes share the limits, as far as was last known. */
  processes(): number;
  close(): void;
}

export interface FleetQuotaOptions {
  readonly link: RedisLink;
  readonly clock: Clock;
  /** Who shares the limits. They stay their owner's to close. */
  readonly members: Pick<Members, 'count'>;
  readonly windows?: QuotaWindows;
  readonly hooks?: NonNullable<ResilientQuotaOptions['hooks']>;
  /** How long a request waits for Redis before this process decides alone. */
  readonly answerWithinMs?: number | undefined;
}

function seenUse(reply: LogReply): SeenUse {
  return {
    nowMicros: reply.nowMicros,
    minuteUsed: reply.minute.used,
    hourUsed: reply.hour.used,
    newestMicros: reply.newestMicros,
    admitted: reply.outcomes.reduce((sum, outcome) => sum + outcome.admitted, 0),
  };
}

/** Exact over all processes while Redis answers; a share in each of them while it doesn't. Never rejects. */
export function openFleetQuota(options: FleetQuotaOptions): FleetQuota {
  const { link, clock, members, windows = QUOTA_WINDOWS, hooks = {}, answerWithinMs } = options;
  const { client } = link;
  const fallback = new FallbackQuota({ clock, windows, processes: () => members.count() });
  const shared = createRedisQuota({
    client,
    clock,
    windows,
    answerWithinMs,
    onReply: (quotaId, reply, receivedMicros) => fallback.see(quotaId, seenUse(reply), receivedMicros),
  });
  const quota = createResilientQuota({
    shared,
    fallback,
    probe: () => client.ping(),
    merge: (unshared, mergeId) => mergeIntoLog(client, unshared, mergeId, windows),
    hooks,
  });
  return {
    take: (quotaId, limits) => quota.take(quotaId, limits),
    isShared: () => quota.isShared(),
    processes: () => members.count(),
    close: () => quota.close(),
  };
}
