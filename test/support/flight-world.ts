/**
 * Processes with a cache each, over one store and one shared cache that a test holds in its hands, with a time of its own:
 * nothing here waits, and no answer comes before the test gives it.
 */
import { setImmediate } from 'node:timers/promises';
import type { FetchOptions } from '../../src/upstream/store.ts';
import type { StoreError } from '../../src/upstream/store-error.ts';
import type { CacheListener } from '../../src/cache/events.ts';
import { Copies, type ReadThroughParts } from '../../src/cache/copies.ts';
import { type StoredEntry, workspaceIn } from '../../src/cache/entry.ts';
import { Flights } from '../../src/cache/flights.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { purgesAlone } from './purges.ts';
import { ReadThrough } from '../../src/cache/read-through.ts';
import { type Reader, workspaceSetOf } from '../../src/cache/reader.ts';
import { recordRequest } from '../../src/cache/request.ts';
import {
  type Completed,
  type Completion,
  type FlightFailure,
  type Following,
  type Lease,
  type LeaseAttempt,
  type LeaseRequest,
  type Shared,
  type SharedCache,
  UNSHARED,
} from '../../src/cache/shared-cache.ts';
import type { CacheClass, CacheTtl } from '../../src/cache/ttl-policy.ts';
import type { Clock } from '../../src/time/clock.ts';
import type { Timers } from '../../src/time/timers.ts';
import { anEvaluation } from './records.ts';

/** Time that stands still until a test moves it, timers included. */
export class FakeTime implements Clock, Timers {
  #nowMs = 1_768_478_400_000;
  readonly #waiting = new Set<{ readonly atMs: number; readonly run: () => void }>();

  nowMs(): number {
    return this.#nowMs;
  }

  nowMicros(): number {
    return this.#nowMs * 1000;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#waiting.add(timer);
    return () => void this.#waiting.delete(timer);
  }

  /** Runs each timer at its time, and lets all that follows from it happen. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await setImmediate();
    for (;;) {
      const [next] = [...this.#waiting].toSorted((one, other) => one.atMs - other.atMs);
      if (next === undefined || next.atMs > untilMs) break;
      this.#waiting.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
      await setImmediate();
    }
    this.#nowMs = untilMs;
    await setImmediate();
  }
}

export const LEASE_MS = 2000;
const FAILURE_MS = 1000;

/** A process's lease: it renews itself until it ends, or the process is paused or dead. */
interface Held {
  readonly owner: FakeSharedCache;
  lapsesAtMs: number;
}

/** What all processes share: the rules of the scripts in redis/leases.ts and redis/redis-shared-cache.ts, in plain code. */
export class FakeRedis {
  readonly time: FakeTime;
  readonly entries = new Map<string, StoredEntry>();
  readonly negatives = new Map<string, StoredEntry>();
  readonly leases = new Map<string, Held>();
  readonly failures = new Map<string, { readonly failure: FlightFailure; readonly untilMs: number }>();
  readonly processes: FakeSharedCache[] = [];

  constructor(time: FakeTime) {
    this.time = time;
  }

  /** What is kept for a reader, and when it was replaced by something that is not for it. */
  shared(key: string, reader: Pick<Reader, 'workspaceIds'>): Shared {
    const entry = this.entries.get(key) ?? null;
    const isOwn = entry !== null && reader.workspaceIds.includes(workspaceIn(entry) ?? '');
    return {
      entry: isOwn ? entry : null,
      replacedAtMs: entry === null || isOwn ? null : entry.entry.requestedAtMs,
      negative: this.negatives.get(`${key} ${workspaceSetOf(reader)}`) ?? null,
    };
  }

  publish(sender: FakeSharedCache, name: string, key: string, entry: StoredEntry | null): void {
    for (const process of this.processes) {
      const stored = { filledAtMs: entry?.entry.requestedAtMs ?? 0, workspaceId: entry && workspaceIn(entry) };
      if (process !== sender) process.memory.deleteOlder(key, stored);
      process.wake(name);
    }
  }
}

export class FakeSharedCache implements SharedCache {
  readonly memory: MemoryTier;
  /** Its commands reject while it is set. */
  failing: readonly string[] = [];
  /** While set, grants of leases are held back. */
  grants: { readonly grant: () => void }[] | null = null;
  /** While set, answers to questions for leases are held back on their way. */
  answers: { readonly arrive: () => void }[] | null = null;
  isPaused = false;
  readonly acquired: LeaseRequest[] = [];
  readonly #redis: FakeRedis;
  readonly #followers = new Map<string, Set<() => void>>();

  constructor(redis: FakeRedis, memory: MemoryTier) {
    this.#redis = redis;
    this.memory = memory;
    redis.processes.push(this);
  }

  isHeard(): boolean {
    return true;
  }

  wake(name: string): void {
    if (!this.isPaused) for (const wake of this.#followers.get(name) ?? []) wake();
  }

  async lookUp(key: string, reader: Pick<Reader, 'workspaceIds'>): Promise<Shared> {
    this.#failIf('lookUp');
    return this.#redis.shared(key, reader);
  }

  async backfill(): Promise<void> {
    this.#failIf('backfill');
  }

  async acquire(request: LeaseRequest): Promise<LeaseAttempt> {
    this.acquired.push(request);
    const { grants } = this;
    if (grants !== null) await new Promise<void>((grant) => grants.push({ grant }));
    this.#failIf('acquire');
    const attempt = this.#attempt(request);
    const { answers } = this;
    if (answers !== null) await new Promise<void>((arrive) => answers.push({ arrive }));
    return attempt;
  }

  #attempt(request: LeaseRequest): LeaseAttempt {
    const { key, audience, reader, newerThanMs } = request;
    const { time, leases, failures } = this.#redis;
    const name = `${key} ${audience}`;
    const seenMs = newerThanMs ?? -1;
    const newer = (stored: StoredEntry | null) =>
      stored !== null && stored.entry.requestedAtMs > seenMs ? stored : null;
    const shared = this.#redis.shared(key, reader);
    const found = { ...shared, entry: newer(shared.entry), negative: newer(shared.negative) };
    const times = [found.entry, found.negative].flatMap((stored) =>
      stored === null ? [] : [stored.entry.requestedAtMs],
    );
    if (times.length > 0) return { status: 'found', found, newestMs: Math.max(...times) };
    const failed = failures.get(name);
    if (failed !== undefined && failed.untilMs > time.nowMs()) return { status: 'failed', failure: failed.failure };
    const held = leases.get(name);
    const leftMs = (held?.lapsesAtMs ?? 0) - time.nowMs();
    if (leftMs > 0) return { status: 'taken', leaseLeftMs: leftMs };
    const own = { owner: this, lapsesAtMs: time.nowMs() + LEASE_MS };
    leases.set(name, own);
    this.#renewLater(name, own);
    return { status: 'acquired', lease: this.#lease(request, own) };
  }

  follow(key: string, audience: string): Following {
    const name = `${key} ${audience}`;
    let hasEnded = false;
    let resolve: (() => void) | null = null;
    const wake = (): void => {
      hasEnded = true;
      resolve?.();
    };
    const followers = this.#followers.get(name) ?? new Set();
    this.#followers.set(name, followers.add(wake));
    return {
      next: async (timeoutMs) => {
        if (!hasEnded) {
          await new Promise<void>((done) => {
            resolve = done;
            this.#redis.time.after(timeoutMs, done);
          });
        }
        hasEnded = false;
      },
      close: () => void followers.delete(wake),
    };
  }

  #renewLater(name: string, own: Held): void {
    this.#redis.time.after(LEASE_MS * 0.3, () => {
      if (this.#redis.leases.get(name) !== own || this.isPaused) return;
      own.lapsesAtMs = this.#redis.time.nowMs() + LEASE_MS;
      this.#renewLater(name, own);
    });
  }

  #lease({ key, audience, reader }: LeaseRequest, own: Held): Lease {
    const name = `${key} ${audience}`;
    const { time, leases, failures, entries, negatives } = this.#redis;
    const end = (): boolean => {
      const isHeld = leases.get(name) === own && own.lapsesAtMs > time.nowMs();
      if (isHeld) leases.delete(name);
      return isHeld;
    };
    return {
      complete: async ({ entry, negative }: Completed): Promise<Completion> => {
        this.#failIf('complete');
        if (!end()) return 'lost';
        const present = entries.get(key);
        const isOvertaken = entry !== null && (present?.entry.requestedAtMs ?? 0) > entry.entry.requestedAtMs;
        if (entry !== null && !isOvertaken) entries.set(key, entry);
        if (negative !== null) negatives.set(`${key} ${workspaceSetOf(reader)}`, negative);
        const isEnded =
          entry === null &&
          present !== undefined &&
          negative !== null &&
          reader.workspaceIds.includes(workspaceIn(present) ?? '') &&
          present.entry.requestedAtMs <= negative.entry.requestedAtMs;
        if (isEnded) entries.set(key, negative);
        this.#redis.publish(this, name, key, isOvertaken ? null : isEnded ? negative : entry);
        return isOvertaken ? 'overtaken' : 'stored';
      },
      fail: async (failure) => {
        this.#failIf('fail');
        if (!end()) return;
        failures.set(name, { failure, untilMs: time.nowMs() + FAILURE_MS });
        this.#redis.publish(this, name, key, null);
      },
      release: async () => {
        this.#failIf('release');
        if (end()) this.#redis.publish(this, name, key, null);
      },
    };
  }

  #failIf(operation: string): void {
    if (this.failing.includes(operation)) throw new Error(`${operation} failed`);
  }
}

/** A call that the store has got, until the test answers it. */
export interface StoreCall {
  readonly requestId: string;
  readonly ifNoneMatch: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** With the evaluation, as the record of that workspace. */
  found(workspaceId: string, title?: string): Promise<void>;
  /** With that JSON. */
  answer(value: unknown): Promise<void>;
  absent(): Promise<void>;
  fail(error: StoreError): Promise<void>;
}

export const MAX_WAIT_MS = 15_000;
export const REQUEST = recordRequest('evaluation', 'ev_1');
const DEFAULT_TTL: CacheTtl = { freshMs: 300_000, staleMs: 3_600_000, errorMs: 86_400_000 };
const NOT_FOUND_TTL: CacheTtl = { freshMs: 15_000, staleMs: 0, errorMs: 0 };

export class FlightWorld {
  readonly time = new FakeTime();
  readonly redis = new FakeRedis(this.time);
  readonly purges = purgesAlone(this.time);
  readonly calls: StoreCall[] = [];
  readonly ttl: Partial<Record<CacheClass, CacheTtl>> = {};

  /** A process of the gateway; `alone`: without Redis. */
  process({ alone = false } = {}) {
    const memory = new MemoryTier({ maxBytes: 10_000_000, clock: this.time });
    const shared = new FakeSharedCache(this.redis, memory);
    const seen: Record<string, unknown>[] = [];
    const note = (event: string) => (report: object) => void seen.push({ event, ...report });
    const events: CacheListener = {
      onStoreCall: note('call'),
      onLeaseWait: note('wait'),
      onRefreshFailed: note('refresh-failed'),
      onSharedCacheFailed: note('shared-failed'),
    };
    const parts: ReadThroughParts = {
      fetch: async (resource, params, options) => {
        const value = await this.#send(options);
        if (value === null) return { kind: 'absent', code: 'NOT_FOUND' };
        return { kind: 'found', record: await resource.parse(value, params, () => {}), etag: '"1"', bytes: 500 };
      },
      memory,
      sharedCache: alone ? UNSHARED : shared,
      ttl: { of: (name) => this.ttl[name] ?? (name === 'notFound' ? NOT_FOUND_TTL : DEFAULT_TTL) },
      purges: this.purges,
      maintenance: { current: () => null },
      clock: this.time,
      timers: this.time,
      events,
      maxWaitMs: MAX_WAIT_MS,
    };
    return { cache: new ReadThrough(parts), flights: new Flights(parts, new Copies(parts)), memory, shared, seen };
  }

  /** Lets everything happen that waits for nothing but itself. */
  async settle(): Promise<void> {
    for (let i = 0; i < 5; i += 1) await setImmediate();
  }

  /** How many calls the store has got so far. */
  async called(): Promise<number> {
    await this.settle();
    return this.calls.length;
  }

  /** The JSON of a record that is answered, or null for none. */
  async #send({ requestId, ifNoneMatch, signal }: FetchOptions): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const answer = async (value: unknown): Promise<void> => {
      resolve(value);
      await this.settle();
    };
    this.calls.push({
      requestId,
      ifNoneMatch,
      signal,
      found: (workspaceId, title = 'A title') => answer(anEvaluation({ _id: 'ev_1', workspaceId, title })),
      answer,
      absent: () => answer(null),
      fail: async (error) => {
        reject(error);
        await this.settle();
      },
    });
    return await promise;
  }
}

let readers = 0;

/** Somebody who may see these workspaces. */
export function aReader(...workspaceIds: string[]): Reader {
  readers += 1;
  return { requestId: `reader-${readers}`, workspaceIds };
}
