/** Consumers and operators of one gateway: what src/http and src/admin do with the rooms, without the protocol. */
import { cacheRequest, type CacheRequest } from '../../src/cache/request.ts';
import { RedisWait } from '../../src/redis/request-wait.ts';
import { StoreError } from '../../src/upstream/store-error.ts';
import { RESOURCES } from '../../src/upstream/resources.ts';
import type { AuthResult } from '../../src/keys/authenticate.ts';
import type { SimulatedGateway } from './gateway.ts';
import type { ReadEvent, ReadResult, Target } from './history.ts';
import { shownIn } from './store.ts';

const LIMITS = { perMinute: 120, perHour: 3000 };
const REDIS_TIMEOUT_MS = 250;
const PAGE_SIZE = 50;

export interface Consumer {
  readonly token: string;
  readonly requestId: string;
  /** The present true time. */
  readonly nowMs: () => number;
}

/** Reads as a request does: the key, the quota, the cache, and the key that is in force then (K10). */
export async function read(gateway: SimulatedGateway, consumer: Consumer, event: ReadEvent): Promise<void> {
  try {
    event.result = await answer(gateway, consumer, event);
  } catch (error) {
    event.result = { kind: 'failed', reason: error instanceof StoreError ? error.kind : String(error) };
  }
  event.endedMs = consumer.nowMs();
}

async function answer(gateway: SimulatedGateway, consumer: Consumer, event: ReadEvent): Promise<ReadResult> {
  const { keys, quota } = gateway;
  const { authenticator } = keys;
  const redisWait = new RedisWait(REDIS_TIMEOUT_MS);
  const found = await redisWait.timed(
    authenticator.authenticate({ authorization: `Bearer ${consumer.token}`, address }),
  );
  if (found.kind !== 'active') return refusal(found);
  let { key } = found;
  const limits = { ...LIMITS, perMinute: key.limits.perMinute ?? LIMITS.perMinute };
  const { admitted } = await redisWait.timed(quota.limiter.consume(key.quotaId, limits));
  if (!admitted) return { kind: 'limited' };
  event.admittedMs = consumer.nowMs();
  for (;;) {
    const { workspaceIds } = key;
    const reader = { requestId: consumer.requestId, keyId: key.keyId, workspaceIds, redisWait };
    const outcome = await settled(gateway.cache.reads.read(requestOf(event.target, workspaceIds), reader));
    const renewed = await redisWait.timed(authenticator.renew(key, address));
    if (renewed.kind !== 'active') return refusal(renewed);
    key = renewed.key;
    event.workspaces = workspaceIds;
    if (!workspaceIds.every((id) => key.workspaceIds.includes(id))) continue;
    if ('error' in outcome) throw outcome.error;
    const { entry, outcome: how } = outcome.value;
    if (entry.answer.kind === 'absent') return { kind: 'absent', outcome: how };
    const { record } = entry.answer;
    const shown = isPage(record) ? record.items.map(shownIn) : [shownIn(record)];
    return { kind: 'shown', shown, outcome: how };
  }
}

function address(): string {
  return '192.0.2.1';
}

function refusal(result: AuthResult): ReadResult {
  return { kind: 'refused', reason: result.kind === 'unauthenticated' ? result.reason : result.kind };
}

async function settled<T>(promise: Promise<T>): Promise<{ readonly value: T } | { readonly error: unknown }> {
  try {
    return { value: await promise };
  } catch (error) {
    return { error };
  }
}

function requestOf(target: Target, workspaceIds: readonly string[]): CacheRequest<unknown> {
  if (target.kind === 'evaluation') return cacheRequest(RESOURCES.evaluation, { id: target.id });
  if (target.kind === 'transcript') return cacheRequest(RESOURCES.transcript, { id: target.id });
  const ids = workspaceIds.toSorted();
  return cacheRequest(RESOURCES.list, {
    workspaceIds: ids,
    search: null,
    scorecardId: null,
    offset: 0,
    limit: PAGE_SIZE,
  });
}

function isPage(record: unknown): record is { readonly items: readonly unknown[] } {
  return typeof record === 'object' && record !== null && 'items' in record && Array.isArray(record.items);
}
