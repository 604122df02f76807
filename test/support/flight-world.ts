/**
 * Processes with a cache each, over one store and one shared cache that a test holds in its hands, with a time of its own:
 * nothing here waits, and no answer comes before the test gives it.
 */
import { setImmediate } from 'node:timers/promises';
import type { FetchOptions } from '../../src/upstream/store.ts';
import type { StoreError } from '../../src/upstream/store-error.ts';
import type { CacheListener } from '../../src/cache/events.ts';
import { addressText, ownersIn, workspaceSetOf, type WorkspaceSet } from '../../src/cache/address.ts';
import type { ReadThroughParts } from '../../src/cache/copies.ts';
import { isLater, type StoredEntry } from '../../src/cache/entry.ts';
import { Flights } from '../../src/cache/flights.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { ReadThrough } from '../../src/cache/read-through.ts';
import type { Reader } from '../../src/cache/reader.ts';
import { recordRequest } from '../../src/cache/request.ts';
import {
  type Backfilled,
  type Completion,
  type FlightFailure,
  type Following,
  type Lease,
  type Look,
  type Looked,
  type SharedCache,
  UNSHARED,
} from '../../src/cache/shared-cache.ts';
import { MemoryJournal } from '../../src/journal/memory-journal.ts';
import { changesAlone, purgesAlone } from './purges.ts';
import type { CacheClass, CacheTtl } from '../../src/cache/ttl-policy.ts';
import type { Clock } from '../../src/time/clock.ts';
import type { Timers } from '../../src/time/timers.ts';
import { anEvaluation } from './records.ts';

/** Time that stands still until a test moves it, timers included. */
export class FakeTime implements Clock, Timers {
  /** Never set back. */
  #uptimeMs = 0;
  #startedMs = 1_768_478_400_000;
  readonly #waiting = new Set<{ readonly atMs: number; readonly run: () => void }>();

  nowMs(): number {
    return this.#startedMs + this.#uptimeMs;
  }

  nowMicros(): number {
    return this.#uptimeMs * 1000;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#uptimeMs + delayMs, run };
    this.#waiting.add(timer);
    return () => void this.#waiting.delete(timer);
  }

  /** Runs each timer at its time, and lets all that follows from it happen. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#uptimeMs + ms;
    await setImmediate();
    for (;;) {
      const [next] = [...this.#waiting].toSorted((one, other) => one.atMs - other.atMs);
      if (next === undefined || next.atMs > untilMs) break;
      this.#waiting.delete(next);
      this.#uptimeMs = Math.max(this.#uptimeMs, next.atMs);
      next.run();
      await setImmediate();
    }
    this.#uptimeMs = untilMs;
    await setImmediate();
  }

  /** Sets the wall clock; timers go on as they are. */
  setBack(ms: number): void {
    this.#startedMs -= ms;
  }
}

export const LEASE_MS = 2000;
const FAILURE_MS = 1000;

/** A process's lease: it renews itself until it ends, or the process is paused or dead. */
interface Held {
  readonly owner: FakeSharedCache;
  lapsesAtMs: number;
}

/** The state that all processes share, with the rules of the scripts in redis/call-scripts.ts, in plain code. */
export class FakeRedis {
  readonly time: FakeTime;
  /** By address. */
  readonly copies = new Map<string, StoredEntry>();
  readonly negatives = new Map<string, StoredEntry>();
  /** By address: when the copies there ended. */
  readonly ended = new Map<string, number>();
  readonly leases = new Map<string, Held>();
  readonly failures = new Map<string, { readonly failure: FlightFailure; readonly untilMs: number }>();
  readonly processes: FakeSharedCache[] = [];

  constructor(time: FakeTime) {
    this.time = time;
  }

  /** The copy of the tests' record that is filed under that workspace. */
  copyOf(owner: string): StoredEntry | undefined {
    return this.copies.get(addressText({ key: REQUEST.key, owner }));
  }

  /** The last answer that there is for readers of that set. */
  newestFor({ kind, key, set }: Look): StoredEntry | null {
    const own = ownersIn(kind, set).map((owner) => this.copies.get(addressText({ key, owner })));
    return [...own, this.negatives.get(addressText({ key, owner: set.name }))].reduce<StoredEntry | null>(
      (newest, one) =>
        one === undefined || (newest?.entry.requestedAtMs ?? -1) >= one.entry.requestedAtMs ? newest : one,
      null,
    );
  }

  /** Returns the owners that had a copy. */
  endOthers({ kind, key, set }: Look, { owner, entry }: StoredEntry): readonly string[] {
    const isFound = entry.answer.kind === 'found';
    return ownersIn(kind, set).filter((each) => {
      const address = addressText({ key, owner: each });
      const present = this.copies.get(address);
      const isNewer = isLater(present?.entry.requestedAtMs ?? 0, entry.requestedAtMs, this.time.nowMs());
      if ((isFound && each === owner) || isNewer) return false;
      this.ended.set(address, Math.max(this.ended.get(address) ?? 0, entry.requestedAtMs));
      return this.copies.delete(address);
    });
  }

  publish(sender: FakeSharedCache, name: string, key: string, filed: StoredEntry | null): void {
    for (const process of this.processes) {
      if (process !== sender && filed !== null)
        process.memory.deleteOlder({ key, owner: filed.owner }, filed.entry.requestedAtMs);
      process.wake(name);
    }
  }
}

export class FakeSharedCache implements SharedCache {
  readonly memory: MemoryTier;
  /** Its commands reject while it is set. */
  failing: readonly string[] = [];
  /** While set, looks for leases are held back. */
  looks: { readonly go: () => void }[] | null = null;
  /** While set, answers to looks for leases are held back on their way. */
  answers: { readonly arrive: () => void }[] | null = null;
  isPaused = false;
  readonly asked: Look[] = [];
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

  async backfill(): Promise<readonly Backfilled[]> {
    this.#failIf('backfill');
    return [];
  }

  async look(look: Look): Promise<Looked> {
    this.asked.push(look);
    const { looks } = this;
    if (looks !== null) await new Promise<void>((go) => looks.push({ go }));
    this.#failIf('look');
    const looked = this.#looked(look);
    const { answers } = this;
    if (answers !== null) await new Promise<void>((arrive) => answers.push({ arrive }));
    return looked;
  }

  #looked(look: Look): Looked {
    const { key, set, seenAtMs, isLeaseWanted } = look;
    const { time, leases, failures } = this.#redis;
    const name = `${key} ${set.name}`;
    const newest = this.#redis.newestFor(look);
    if (newest !== null && newest.entry.requestedAtMs > (seenAtMs ?? -1)) {
      return { status: 'found', answer: newest, seenAtMs: newest.entry.requestedAtMs };
    }
    const failed = failures.get(name);
    if (failed !== undefined && failed.untilMs > time.nowMs()) return { status: 'failed', failure: failed.failure };
    if (!isLeaseWanted) return { status: 'nothing' };
    const held = leases.get(name);
    const leftMs = (held?.lapsesAtMs ?? 0) - time.nowMs();
    if (leftMs > 0) return { status: 'taken', leaseLeftMs: leftMs };
    const own = { owner: this, lapsesAtMs: time.nowMs() + LEASE_MS };
    leases.set(name, own);
    this.#renewLater(name, own);
    return { status: 'leased', lease: this.#lease(look, own) };
  }

  follow(key: string, { name: set }: WorkspaceSet): Following {
    const name = `${key} ${set}`;
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

  #lease(look: Look, own: Held): Lease {
    const { key, set } = look;
    const name = `${key} ${set.name}`;
    const { time, leases, failures, copies, negatives, ended } = this.#redis;
    const end = (): boolean => {
      const isHeld = leases.get(name) === own && own.lapsesAtMs > time.nowMs();
      if (isHeld) leases.delete(name);
      return isHeld;
    };
    return {
      lastSeen: null,
      complete: async (answer): Promise<Completion> => {
        this.#failIf('complete');
        if (!end()) return { status: 'lost', ended: [] };
        const { requestedAtMs } = answer.entry;
        const address = addressText({ key, owner: answer.owner });
        const isFound = answer.entry.answer.kind === 'found';
        const lastMs = Math.max(copies.get(address)?.entry.requestedAtMs ?? 0, ended.get(address) ?? 0);
        const isOvertaken = isFound && lastMs > requestedAtMs;
        if (!isOvertaken) (isFound ? copies : negatives).set(address, answer);
        const others = this.#redis.endOthers(look, answer);
        this.#redis.publish(this, name, key, isFound && !isOvertaken ? answer : null);
        return { status: isOvertaken ? 'overtaken' : 'stored', ended: others };
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
  readonly isUrgent: boolean;
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
  readonly journal = new MemoryJournal();
  readonly purges = purgesAlone(this.time, undefined, this.journal);
  readonly calls: StoreCall[] = [];
  journalFails = false;
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
      store: {
        fetch: async (resource, params, options) => {
          const value = await this.#send(options);
          if (value === null) return { kind: 'absent', code: 'NOT_FOUND' };
          return { kind: 'found', record: await resource.parse(value, params, () => {}), etag: '"1"', bytes: 500 };
        },
        hasRoom: () => true,
        maintenance: { current: () => null },
        maxWaitMs: MAX_WAIT_MS,
      },
      memory,
      sharedCache: alone ? UNSHARED : shared,
      endEverywhere: async ({ key, workspaces, requestedAtMs }) => {
        if (this.journalFails) throw new Error('the journal fails');
        for (const process of this.redis.processes) process.memory.end(key, workspaces, requestedAtMs);
      },
      ttl: { of: (name) => this.ttl[name] ?? (name === 'notFound' ? NOT_FOUND_TTL : DEFAULT_TTL) },
      purges: this.purges,
      changes: changesAlone({ journal: this.journal, clock: this.time, purges: this.purges, memory }),
      clock: this.time,
      timers: this.time,
      events,
    };
    return { cache: new ReadThrough(parts), flights: new Flights(parts), memory, shared, seen };
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
  async #send({ requestId, ifNoneMatch, signal, isUrgent = false }: FetchOptions): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const answer = async (value: unknown): Promise<void> => {
      resolve(value);
      await this.settle();
    };
    this.calls.push({
      requestId,
      ifNoneMatch,
      signal,
      isUrgent,
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

/** The task of a flight on behalf of such a reader, who has no copy. */
export function aTask(...workspaceIds: string[]) {
  const reader = aReader(...workspaceIds);
  const set = workspaceSetOf(reader);
  return { request: REQUEST, reader, set, previous: null, seenAtMs: null, isBackground: false };
}
