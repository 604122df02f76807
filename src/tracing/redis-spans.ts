/** Spans for what a request waits for at Redis. Many requests may go in one call: each has a span of its own wait. */
import { type Attributes, type Span, SpanKind } from '@opentelemetry/api';
import {
  ATTR_DB_OPERATION_BATCH_SIZE,
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_QUERY_SUMMARY,
  ATTR_DB_SYSTEM_NAME,
} from '@opentelemetry/semantic-conventions';
import type { Following, Lease, LeaseAttempt, SharedCache } from '../cache/shared-cache.ts';
import type { KeyLookup } from '../keys/registry.ts';
import type { FleetLimiter } from '../quota/limiter.ts';
import { EVALGATE } from './names.ts';
import type { Spans } from './spans.ts';

interface RedisCall {
  readonly redis: 'state' | 'cache';
  /** The command, and what of evalgate's it is for. */
  readonly command: string;
  readonly target: string;
  readonly attributes?: Attributes;
}

const QUOTA: RedisCall = { redis: 'state', command: 'EVALSHA', target: 'quota' };
const KEY: RedisCall = { redis: 'state', command: 'HGET', target: 'key' };
const GET: RedisCall = { redis: 'cache', command: 'HMGET', target: 'entry' };
const PUT: RedisCall = { redis: 'cache', command: 'EVALSHA', target: 'entry' };
const LEASE: RedisCall = { redis: 'cache', command: 'EVALSHA', target: 'lease' };

export class RedisSpans {
  readonly #spans: Spans;
  /** What waits for another process looks several times a second: those looks have no spans. */
  readonly #waiting = new WeakSet<Span>();

  constructor(spans: Spans) {
    this.#spans = spans;
  }

  quota(quota: FleetLimiter): FleetLimiter {
    // Redis may have been out of reach: the answer is this process's own then.
    const isShared = (span: Span): void => void span.setAttribute(EVALGATE.isQuotaShared, quota.isShared());
    return {
      consume: (quotaId, limits) => {
        const consume = () => quota.consume(quotaId, limits);
        return quota.asksRedis(quotaId, limits) ? this.#ask(QUOTA, consume, isShared) : consume();
      },
      usage: (quotaId, limits) => {
        const usage = () => quota.usage(quotaId, limits);
        return quota.asksRedis(quotaId, limits) ? this.#ask(QUOTA, usage, isShared) : usage();
      },
      isShared: () => quota.isShared(),
      asksRedis: (quotaId, limits) => quota.asksRedis(quotaId, limits),
      close: () => quota.close(),
    };
  }

  keys(keys: KeyLookup): KeyLookup {
    return {
      find: (hash) => this.#ask(KEY, () => keys.find(hash)),
      peek: (hash) => keys.peek(hash),
      isIssued: (hash) => keys.isIssued?.(hash) ?? false,
      touch: (key) => keys.touch(key),
    };
  }

  sharedCache(cache: SharedCache): SharedCache {
    return {
      lookUp: (key, reader) => this.#ask(GET, () => cache.lookUp(key, reader)),
      backfill: (entries) =>
        this.#ask({ ...PUT, attributes: { [ATTR_DB_OPERATION_BATCH_SIZE]: entries.length } }, () =>
          cache.backfill(entries),
        ),
      setNegative: (key, workspaceSet, negative) => cache.setNegative(key, workspaceSet, negative),
      acquire: async (request) => this.#withLease(await this.#ask(LEASE, () => cache.acquire(request))),
      follow: (key) => this.#follow(() => cache.follow(key)),
      onStored: (listener) => cache.onStored(listener),
    };
  }

  #withLease(attempt: LeaseAttempt): LeaseAttempt {
    if (attempt.status !== 'acquired') return attempt;
    const { lease } = attempt;
    const traced: Lease = {
      // It stores the entry.
      complete: (completed) => this.#ask(PUT, () => lease.complete(completed)),
      fail: (failure) => lease.fail(failure),
      release: () => lease.release(),
    };
    return { ...attempt, lease: traced };
  }

  #follow(follow: () => Following): Following {
    const parent = this.#spans.recorded();
    const following = follow();
    if (parent === null) return following;
    const span = this.#spans.child(parent, 'wait for another process', { kind: SpanKind.INTERNAL });
    this.#waiting.add(parent);
    return {
      next: async (timeoutMs) => {
        const end = await following.next(timeoutMs);
        if (end !== null) span.setAttribute(EVALGATE.waitEnd, end.kind);
        return end;
      },
      close: () => {
        this.#waiting.delete(parent);
        this.#spans.end(span);
        following.close();
      },
    };
  }

  #ask<R>(call: RedisCall, run: () => Promise<R>, note: (span: Span) => void = nothing): Promise<R> {
    const parent = this.#spans.recorded();
    if (parent === null || this.#waiting.has(parent)) return run();
    return this.#spans.during(this.#begin(parent, call), async (span) => {
      const value = await run();
      note(span);
      return value;
    });
  }

  #begin(parent: Span, { redis, command, target, attributes = {} }: RedisCall): Span {
    const summary = `${command} ${target}`;
    return this.#spans.child(parent, summary, {
      kind: SpanKind.CLIENT,
      attributes: {
        [ATTR_DB_SYSTEM_NAME]: 'redis',
        [ATTR_DB_OPERATION_NAME]: command,
        [ATTR_DB_QUERY_SUMMARY]: summary,
        [EVALGATE.redis]: redis,
        ...attributes,
      },
    });
  }
}

function nothing(): void {}
