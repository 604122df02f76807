/** Puts the quota of a gateway with Redis together. */
import type { Clock } from '../clock.ts';
import { quotaBucket, trialKeys } from '../redis/names.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Instances } from '../redis/instances.ts';
import { FallbackQuota, type SeenUse } from './fallback-quota.ts';
import { createResilientQuota, type ResilientQuota, type ResilientQuotaOptions } from './fallback.ts';
import { QUOTA_WINDOWS, type QuotaWindows } from './log.ts';
import type { Quota } from './quota.ts';
import { admittedOf, type LogReply } from './redis-log.ts';
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
  readonly members: Pick<Instances, 'count'>;
  readonly windows?: QuotaWindows;
  readonly hooks?: NonNullable<ResilientQuotaOptions['hooks']>;
  /** How long a request waits for Redis before this process decides alone. */
  readonly answerWithinMs?: number | undefined;
}

/** So that all buckets together keep about as many as one quota for all would. */
const MOST_LOGS_OF_A_BUCKET = 2000;

function seenUse(reply: LogReply): SeenUse {
  return {
    nowMicros: reply.nowMicros,
    minuteUsed: reply.minute.used,
    hourUsed: reply.hour.used,
    newestMicros: reply.newestMicros,
    admitted: admittedOf(reply),
  };
}

/**
 * On a Cluster the quotas of a bucket are out of reach where its node is, and no others: else the processes would count
 * the same request in different places.
 */
interface Part {
  readonly quota: ResilientQuota;
  readonly fallback: FallbackQuota;
}

/** Exact over all processes while Redis answers; a share in each of them while it doesn't. Never rejects. */
export function openFleetQuota(options: FleetQuotaOptions): FleetQuota {
  const { link, clock, members, windows = QUOTA_WINDOWS, hooks = {}, answerWithinMs } = options;
  const { client } = link;
  const shared = createRedisQuota({
    redis: link,
    clock,
    windows,
    answerWithinMs,
    onReply: (quotaId, reply, receivedMicros) => partOf(quotaId).fallback.see(quotaId, seenUse(reply), receivedMicros),
  });
  const common = { clock, windows, processes: () => members.count() };
  const joint = jointHooks(hooks);
  const merge: ResilientQuotaOptions['merge'] = (unshared, mergeId) => mergeIntoLog(link, unshared, mergeId, windows);
  const open = (probe: () => Promise<unknown>, fallback: FallbackQuota): Part => ({
    fallback,
    quota: createResilientQuota({ shared, fallback, probe, merge, hooks: joint }),
  });
  const parts =
    link.kind === 'cluster'
      ? trialKeys('probe').map((name) =>
          open(() => client.exists(name), new FallbackQuota({ ...common, mostLogs: MOST_LOGS_OF_A_BUCKET })),
        )
      : [];
  // Where it is no Cluster all quotas are in one part.
  const whole = open(() => link.ping(), new FallbackQuota(common));
  const partOf = (quotaId: string): Part => (parts.length === 0 ? whole : (parts[quotaBucket(quotaId)] ?? whole));
  const all = [whole, ...parts];
  return {
    take: (quotaId, limits) => partOf(quotaId).quota.take(quotaId, limits),
    peek: (quotaId, limits) => partOf(quotaId).quota.peek(quotaId, limits),
    isShared: () => all.every(({ quota }) => quota.isShared()),
    processes: () => members.count(),
    close: () => all.forEach(({ quota }) => quota.close()),
  };
}

/** Tells of the first part that goes on alone, and when none does any more. */
function jointHooks({ onAlone, onShared }: NonNullable<ResilientQuotaOptions['hooks']>) {
  let alone = 0;
  return {
    onAlone: (reason: unknown): void => {
      alone += 1;
      if (alone === 1) onAlone?.(reason);
    },
    onShared: (): void => {
      alone -= 1;
      if (alone === 0) onShared?.();
    },
  };
}
