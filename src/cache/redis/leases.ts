/**
 * Leases in the cache Redis, each beside the entry that it is about, in the same slot. A lease is a random token under a
 * name that expires; every script first checks that the token is still there, so a process that was paused past its lease
 * can neither store nor end anything.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import { defineScript, type RedisScript, runScript, runScriptForBytes } from '../../redis/script.ts';
import type { Timers } from '../../timers.ts';
import { redisSpan } from '../../tracing/spans.ts';
import { isStoreErrorKind, type StoreErrorKind } from '../../upstream/store.ts';
import type { Tag } from '../purge-log.ts';
import type { Reader } from '../reader.ts';
import type {
  Completed,
  Completion,
  FlightEnd,
  FlightFailure,
  Following,
  Lease,
  LeaseAttempt,
  LeaseRequest,
} from '../shared-cache.ts';
import type { TtlPolicy } from '../ttl-policy.ts';
import type { RedisBudget } from './budget.ts';
import { type BrokenEntryError, decodeEntry, encodeEntry, ENTRY_LUA } from './entry-format.ts';
import { workspaceSetOf } from '../visibility.ts';

/** The names of everything that belongs to one key, for one set of workspaces. All are in one slot. */
export interface KeyNames {
  readonly entry: string;
  readonly negative: string;
  /** Held by the process that asks the store. */
  readonly lease: string;
  /** How the last call failed. */
  readonly failure: string;
}

export interface LeasesOptions {
  /** To the cache Redis. */
  readonly link: RedisLink;
  readonly channel: FlightChannel;
  readonly namesOf: (key: string, workspaceSet: string) => KeyNames;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  readonly timers: Timers;
  /** How long a lease holds without being renewed. */
  readonly leaseMs: number;
  readonly onBroken: (error: BrokenEntryError) => void;
  readonly budget: Pick<RedisBudget, 'isOver'>;
}

/** For so long after a failure nobody of the same workspaces asks again. */
const REMEMBER_FAILURE_MS = 1000;
/** Renewals are so far apart, as a part of the lease, that one that is lost is no lost lease. */
const RENEW_AFTER = 0.3;

/**
 * KEYS: lease, failure, entry, negative entry. ARGV: token, how long it holds, when the process's copy was requested, then the
 * tags of the reader's workspaces. Returns the failure, or how long another's lease still holds, or what is there: the
 * entry only if it is newer than that copy, and a record only if it is of one of the workspaces.
 */
const ACQUIRE = defineScript(
  'acquireLease',
  `${ENTRY_LUA}
local failure = redis.call('GET', KEYS[2])
if failure then return failure end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return math.max(1, redis.call('PTTL', KEYS[1])) end
local entry, present = {false, false}, read(KEYS[3])
if present and isVisible(present, 4) and (ARGV[3] == '' or present.filledAtMs > tonumber(ARGV[3])) then
  entry = redis.call('HMGET', KEYS[3], 'meta', 'body')
end
return {entry[1], entry[2], negativeOf(KEYS[4])}
`,
);

/** KEYS: lease. ARGV: token, how long it holds from now. */
const RENEW = defineScript(
  'renewLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`,
);

/**
 * KEYS: lease, entry, negative entry. ARGV: token, channel, message, then meta, body and how long it is kept, of the entry
 * and of the negative entry; an empty meta for none. An entry that a page has backfilled meanwhile stays if its fetch
 * began later than this one and knew of as many purges. ARGV[10]: empty, or the message instead if an entry was to be
 * stored and there is none to replace; then it is not stored (2).
 */
const COMPLETE = defineScript(
  'completeLease',
  `${ENTRY_LUA}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
local present = ARGV[4] ~= '' and read(KEYS[2])
local isLeftOut = ARGV[4] ~= '' and ARGV[10] ~= '' and not present
redis.call('PUBLISH', ARGV[2], isLeftOut and ARGV[10] or ARGV[3])
if ARGV[4] ~= '' and not isLeftOut then
  local new = cjson.decode(ARGV[4])
  local isOvertaken = present and present.filledAtMs > new.filledAtMs
    and present.position.history == new.position.history and present.position.sequence >= new.position.sequence
  if isOvertaken then return 0 end
  write(KEYS[2], ARGV[4], ARGV[5], ARGV[6])
end
if ARGV[7] ~= '' then write(KEYS[3], ARGV[7], ARGV[8], ARGV[9]) end
return isLeftOut and 2 or 1
`,
);

/** KEYS: lease, failure. ARGV: token, channel, message, failure, how long it is remembered. */
const FAIL = defineScript(
  'failLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
`,
);

/** KEYS: lease. ARGV: token, channel, message. */
const RELEASE = defineScript(
  'releaseLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
`,
);

/** The tags of the copies that the reader may see, negative entries apart. */
export function workspaceTagsOf({ workspaceIds }: Pick<Reader, 'workspaceIds'>): readonly Tag[] {
  return workspaceIds.map((id): Tag => `workspace:${id}`);
}

export class Leases {
  readonly #options: LeasesOptions;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Rejects if Redis can't be asked. */
  async acquire({ key, workspaceIds, newerThanMs }: LeaseRequest): Promise<LeaseAttempt> {
    const { link, leaseMs, namesOf, channel, onBroken } = this.#options;
    const workspaceSet = workspaceSetOf({ workspaceIds });
    const names = namesOf(key, workspaceSet);
    const token = randomUUID();
    const call = {
      keys: [names.lease, names.failure, names.entry, names.negative],
      args: [token, leaseMs, newerThanMs ?? '', ...workspaceTagsOf({ workspaceIds })],
    };
    const reply = await redisSpan('cache', 'EVALSHA lease', runScriptForBytes(link, ACQUIRE, call));
    if (Array.isArray(reply)) {
      const [meta, body, negative] = reply.map((field: unknown) => field);
      const lease = new RedisLease({ ...this.#options, key, workspaceSet, names, token });
      const found = {
        entry: await decodeEntry(key, [meta, body], onBroken),
        foreign: null,
        negative: await decodeEntry(key, [negative], onBroken),
      };
      return { status: 'acquired', lease, found };
    }
    const failure = Buffer.isBuffer(reply) ? readFailure(reply.toString()) : null;
    if (failure !== null) return { status: 'failed', failure };
    if (typeof reply === 'number') channel.expectLapse(key, reply);
    return { status: 'taken' };
  }

  async setFailure(key: string, workspaceSet: string, failure: FlightFailure): Promise<void> {
    const { link, namesOf } = this.#options;
    const name = namesOf(key, workspaceSet).failure;
    await link.run((client) => client.set(name, writeFailure(failure), 'PX', REMEMBER_FAILURE_MS));
  }
}

interface LeaseParts extends LeasesOptions {
  readonly key: string;
  readonly workspaceSet: string;
  readonly names: KeyNames;
  readonly token: string;
}

/** One that this process has. It is renewed until it ends. */
class RedisLease implements Lease {
  readonly #parts: LeaseParts;
  #cancelRenewal: () => void = () => {};
  #hasEnded = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#renewLater();
  }

  async complete({ entry, negative }: Completed): Promise<Completion> {
    const { key, names, ttl, channel, budget } = this.#parts;
    const released = channel.message({ end: 'released', key });
    const message =
      entry === null ? released : channel.message({ end: 'stored', key, filledAtMs: entry.entry.requestedAtMs });
    // If it is not stored, the others must not drop their copies for it.
    const isNewLeftOut = budget.isOver && entry?.entry.answer.kind === 'found';
    const args = [
      message,
      ...(entry === null ? NO_ENTRY : await encodeEntry(key, entry, ttl)),
      ...(negative === null ? NO_ENTRY : await encodeEntry(key, negative, ttl)),
      isNewLeftOut ? released : '',
    ];
    const stored = this.#end(COMPLETE, [names.entry, names.negative], args);
    const reply = await redisSpan('cache', 'EVALSHA entry', stored);
    if (reply === 2) return 'unshared';
    return reply === 1 ? 'stored' : 'lost';
  }

  async fail(failure: FlightFailure, tookMs: number): Promise<void> {
    const { key, workspaceSet, names, channel } = this.#parts;
    const message = channel.message({ end: 'failed', key, failure, workspaceSet, tookMs });
    await this.#end(FAIL, [names.failure], [message, writeFailure(failure), REMEMBER_FAILURE_MS]);
  }

  async release(): Promise<void> {
    const { key, channel } = this.#parts;
    await this.#end(RELEASE, [], [channel.message({ end: 'released', key })]);
  }

  #end(script: RedisScript, keys: readonly string[], args: readonly (string | number | Buffer)[]): Promise<unknown> {
    this.#hasEnded = true;
    this.#cancelRenewal();
    const { link, names, token, channel } = this.#parts;
    return runScript(link, script, { keys: [names.lease, ...keys], args: [token, channel.name, ...args] });
  }

  #renewLater(): void {
    const { timers, leaseMs } = this.#parts;
    this.#cancelRenewal = timers.after(leaseMs * RENEW_AFTER, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { link, names, token, leaseMs } = this.#parts;
    const call = { keys: [names.lease], args: [token, leaseMs] };
    // If Redis can't be asked, the next renewal may still come in time.
    const isHeld = await runScript(link, RENEW, call).then(
      (reply) => reply === 1,
      () => true,
    );
    if (isHeld && !this.#hasEnded) this.#renewLater();
  }
}

const NO_ENTRY = ['', '', 0] as const;

const failureSchema = z.object({
  kind: z.custom<StoreErrorKind>(isStoreErrorKind),
  message: z.string(),
  retryAfterMs: z.number().nullable(),
  status: z.int().nullable(),
  workspaceId: z.string().nullable().default(null),
});

/** JSON, because keys and failures hold any text. `sender` is the process. */
const messageSchema = z.discriminatedUnion('end', [
  z.object({ end: z.literal('stored'), sender: z.string(), key: z.string(), filledAtMs: z.int() }),
  z.object({
    end: z.literal('failed'),
    sender: z.string(),
    key: z.string(),
    failure: failureSchema,
    workspaceSet: z.string().nullable().default(null),
    tookMs: z.number().default(0),
  }),
  // The entry is as it was: nothing was to be fetched any more, or the answer is a negative entry.
  z.object({ end: z.literal('released'), sender: z.string(), key: z.string() }),
]);
type FlightMessage = z.output<typeof messageSchema>;
type Unsent<M> = M extends FlightMessage ? Omit<M, 'sender'> : never;

function writeFailure({ kind, message, retryAfterMs, status, workspaceId }: FlightFailure): string {
  return JSON.stringify({ kind, message, retryAfterMs, status, workspaceId });
}

/** Null for what is no failure. */
function readFailure(text: string): FlightFailure | null {
  return read(failureSchema, text);
}

function read<S extends z.ZodType>(schema: S, text: string): z.output<S> | null {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** The waiters for a key's call in this process. */
class Followers {
  readonly listeners = new Set<(end: FlightEnd) => void>();
  /** How long the lease held when it was last asked for; null once that was waited for. */
  leaseLeftMs: number | null = null;
}

type StoredListener = (key: string, requestedAtMs: number) => void;

interface FlightChannelOptions {
  /** To the cache Redis. */
  readonly link: Pick<RedisLink, 'subscriber' | 'db'>;
  readonly names: CacheNames;
  readonly timers: Timers;
  /** This process, as the sender of its own messages. */
  readonly self: string;
}

/** So that a lease that was not renewed has lapsed when it is looked at. */
const LAPSE_MARGIN_MS = 5;

/**
 * The one channel on which processes report how their calls to the store ended. Every process receives all messages,
 * because each may hold an older copy of the entry; so waiting for a call needs no subscription of its own.
 */
export class FlightChannel {
  /** The channel's name. */
  readonly name: string;
  readonly #timers: Timers;
  readonly #self: string;
  readonly #followers = new Map<string, Followers>();
  readonly #storedListeners = new Set<StoredListener>();
  readonly #unlisten: () => void;

  constructor({ link, names, timers, self }: FlightChannelOptions) {
    this.name = names.flightsChannel(link.db);
    this.#timers = timers;
    this.#self = self;
    const ownStored = `{"end":"stored","sender":${JSON.stringify(self)},`;
    this.#unlisten = link.subscriber.listen(this.name, (text) => {
      // Most are about an entry that this process has just stored itself.
      if (this.#followers.size === 0 && text.startsWith(ownStored)) return;
      // Another release may send other messages.
      const message = read(messageSchema, text);
      if (message !== null) this.#receive(message);
    });
  }

  /** A message of this process; scripts publish it. */
  message({ end, ...rest }: Unsent<FlightMessage>): string {
    return JSON.stringify({ end, sender: this.#self, ...rest });
  }

  /** Hears of every end from now on. While the subscription is lost there are none, and waiters look by themselves. */
  follow(key: string): Following {
    const ends: FlightEnd[] = [];
    let wake: (() => void) | null = null;
    const listener = (end: FlightEnd): void => {
      ends.push(end);
      wake?.();
    };
    const followers = this.#followers.get(key) ?? new Followers();
    this.#followers.set(key, followers);
    followers.listeners.add(listener);
    return {
      next: async (timeoutMs) => {
        if (ends.length === 0) {
          const { promise, resolve } = Promise.withResolvers<void>();
          wake = resolve;
          const cancel = this.#timers.after(Math.min(timeoutMs, takeLeaseLeftMs(followers)), resolve);
          await promise;
          cancel();
          wake = null;
        }
        return ends.shift() ?? null;
      },
      close: () => {
        followers.listeners.delete(listener);
        const isLast = followers.listeners.size === 0 && this.#followers.get(key) === followers;
        if (isLast) this.#followers.delete(key);
      },
    };
  }

  /** The key's lease lapses after that time unless it is renewed: its followers look then, if not before. */
  expectLapse(key: string, leaseLeftMs: number): void {
    const followers = this.#followers.get(key);
    if (followers !== undefined) followers.leaseLeftMs = leaseLeftMs;
  }

  /** Calls back for every entry that another process stored. Returns a function that ends this. */
  onStored(listener: StoredListener): () => void {
    this.#storedListeners.add(listener);
    return () => this.#storedListeners.delete(listener);
  }

  close(): void {
    this.#unlisten();
    this.#storedListeners.clear();
  }

  #receive(message: FlightMessage): void {
    // Before those who wait look: they would take an older copy for the news otherwise.
    if (message.end === 'stored' && message.sender !== this.#self) {
      for (const listener of this.#storedListeners) listener(message.key, message.filledAtMs);
    }
    const end: FlightEnd = message.end === 'failed' ? { ...message, kind: 'failed' } : { kind: 'stored' };
    for (const listener of this.#followers.get(message.key)?.listeners ?? []) listener(end);
  }
}

function takeLeaseLeftMs(followers: Followers): number {
  const { leaseLeftMs } = followers;
  followers.leaseLeftMs = null;
  return leaseLeftMs === null ? Number.POSITIVE_INFINITY : leaseLeftMs + LAPSE_MARGIN_MS;
}
