/**
 * Who changed what, when, from what, to what: in memory, or in the state Redis, where it outlives every process. The oldest go
 * first, but of each kind by itself: so nobody who may purge or change times can push out who got which key, or who was
 * refused. The log has all for good.
 */
import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { z } from 'zod';
import type { Clock } from '../time/clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { auditKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { type auditEntrySchema, type KeptEntry, keptEntrySchema } from './answers.ts';
import { iso } from './api.ts';

/** How many entries of each kind are kept. */
const CAPACITY = { keys: 10_000, refusals: 1000, rest: 1000 };
/** Redis is rid of the others only once there are more than so many in all: until then they are left out when it is read. */
const MAX_LISTED = CAPACITY.keys + CAPACITY.refusals + 2 * CAPACITY.rest;

/** `keys`: who may do what from then on. `refusals`: what somebody tried and may not do. */
function kindOf({ action }: Pick<AuditEntry, 'action'>): keyof typeof CAPACITY {
  if (action.startsWith('access.')) return 'refusals';
  return /^(?:key|secret|state)\./.test(action) ? 'keys' : 'rest';
}

export type AuditEntry = z.output<typeof auditEntrySchema>;
export type AuditedChange = Omit<AuditEntry, 'at'>;

export interface AuditOptions {
  readonly clock: Clock;
  /** Receives each entry as soon as it is made: a log, for example, that keeps them for good. Must not throw. */
  readonly sink: (entry: AuditEntry) => void;
  /** To the state Redis; null for a gateway without, which keeps them in memory. */
  readonly link: RedisLink | null;
}

/**
 * ARGV: each entry, oldest first. One whose answer was lost is sent again, as the same text: it takes its own place, not that of
 * another entry. LREM, a first write that needs no memory, makes a full Redis run all of it. Returns how many there are.
 */
const WRITE = defineScript(
  'writeAudit',
  `
for i = 1, #ARGV do
  redis.call('LREM', KEYS[1], 0, ARGV[i])
  redis.call('LPUSH', KEYS[1], ARGV[i])
end
return redis.call('LLEN', KEYS[1])
`,
);

/**
 * ARGV: the newest entry and their number as they were read, then what takes the place of all, newest first. The old ones go
 * last: if Redis refuses a command half-way, none is lost. The first LTRIM removes nothing; it makes a full Redis run all of it.
 */
const REPLACE = defineScript(
  'replaceAudit',
  `
if (redis.call('LINDEX', KEYS[1], 0) or '') ~= ARGV[1] or redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[2]) then return 0 end
redis.call('LTRIM', KEYS[1], 0, -1)
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
return 1
`,
);
const HOUR_MS = 3_600_000;
/** Attempts at a change that other processes keep overtaking. */
const MAX_ATTEMPTS = 10;

export class Audit {
  readonly #options: AuditOptions;
  /** Made here and not yet in Redis, oldest first. */
  #unwritten: readonly KeptEntry[] = [];
  #writing: Promise<void> = Promise.resolve();
  readonly #recordedAtMs = new LRUCache<string, number>(atMost(CAPACITY.keys));

  constructor(options: AuditOptions) {
    this.#options = options;
    options.link?.onUp(() => void this.#write());
  }

  /**
   * Keeps a change that has been made. Never rejects: the change stands, so its caller must not hear that it failed. An
   * entry that cannot be written is written with the next one, or when Redis is back.
   */
  async record(change: AuditedChange): Promise<void> {
    const { clock, sink } = this.#options;
    const entry: AuditEntry = { at: iso(clock.nowMs()), ...change };
    sink(entry);
    this.#unwritten = bounded([{ id: randomUUID(), ...entry }, ...this.#unwritten.toReversed()]).toReversed();
    await this.#write();
  }

  /** The same for what may come again and again: once an hour for the same who, action and target in this process. */
  async recordHourly(change: AuditedChange): Promise<void> {
    const { who, action, target } = change;
    const identity = JSON.stringify([who, action, target]);
    const nowMs = this.#options.clock.nowMs();
    if (nowMs - (this.#recordedAtMs.get(identity) ?? Number.NEGATIVE_INFINITY) < HOUR_MS) return;
    this.#recordedAtMs.set(identity, nowMs);
    await this.record(change);
  }

  /** The changes kept, newest first; while Redis does not answer, only those that this process has still to write. */
  async entries(): Promise<readonly AuditEntry[]> {
    const kept = await this.kept().catch(() => this.#unwritten.toReversed());
    return kept.map((one) => {
      const { id: _, ...entry } = one;
      return entry;
    });
  }

  /** The same with their ids, each once: one that still waits for its reply may be in Redis already. Rejects without Redis. */
  async kept(): Promise<readonly KeptEntry[]> {
    const texts = await this.#texts();
    return bounded([...byIdentity([...this.#unwritten.toReversed(), ...texts.flatMap(readEntry)]).values()]);
  }

  /**
   * Adds entries of an export, oldest first, among those that are kept: each once and by its time. The log has had them. The
   * oldest are left out if there is no room. `isDryRun`: only counts. Rejects if Redis does not answer.
   */
  async restore(entries: readonly KeptEntry[], isDryRun: boolean) {
    const { link } = this.#options;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const texts = await this.#texts();
      const present = byIdentity(link === null ? this.#unwritten.toReversed() : texts.flatMap(readEntry));
      const added = [...byIdentity(entries.toReversed())].filter(([identity]) => !present.has(identity));
      const all = new Map([...present, ...added]);
      const kept = bounded([...all.values()].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at)));
      const isKept = new Set(kept);
      const counts = {
        added: added.filter(([, entry]) => isKept.has(entry)).length,
        unchanged: entries.length - added.length,
        leftOut: added.filter(([, entry]) => !isKept.has(entry)).length,
      };
      if (isDryRun || counts.added === 0) return counts;
      if (link === null) {
        this.#unwritten = kept.toReversed();
        return counts;
      }
      if (await replace(link, texts, kept)) return counts;
    }
    throw new Error('other processes changed the audit again and again');
  }

  async #texts(): Promise<readonly string[]> {
    return (await this.#options.link?.run((redis) => redis.lrange(auditKey(), 0, -1))) ?? [];
  }

  /** Writes once at a time, so that a slow Redis gets no entry twice while its reply is awaited. Never rejects. */
  #write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeNow());
    return this.#writing;
  }

  async #writeNow(): Promise<void> {
    const { link } = this.#options;
    const entries = this.#unwritten;
    if (link === null || entries.length === 0) return;
    try {
      const args = entries.map((entry) => JSON.stringify(entry));
      const listed = await runScript(link, WRITE, { keys: [auditKey()], args });
      // If another process is quicker, it is done with the next entry.
      if (Number(listed) > MAX_LISTED) {
        const texts = await this.#texts();
        await replace(link, texts, bounded(texts.flatMap(readEntry)));
      }
      this.#unwritten = this.#unwritten.filter((entry) => !entries.includes(entry));
    } catch {
      // The link itself reports it, once.
    }
  }
}

/** Puts the entries, newest first, in the place of those that were read; false if those have changed since. */
async function replace(link: RedisLink, read: readonly string[], entries: readonly KeptEntry[]): Promise<boolean> {
  const args = [read[0] ?? '', read.length, ...entries.map((entry) => JSON.stringify(entry))];
  return (await runScript(link, REPLACE, { keys: [auditKey()], args })) === 1;
}

/** The entries that are kept: as many of each kind as there may be, newest first. */
function bounded(entries: readonly KeptEntry[]): readonly KeptEntry[] {
  const left = { ...CAPACITY };
  return entries.filter((entry) => {
    left[kindOf(entry)] -= 1;
    return left[kindOf(entry)] >= 0;
  });
}

/** Each entry once, in their order. One without an id is known by its text. */
function byIdentity(entries: readonly KeptEntry[]): ReadonlyMap<string, KeptEntry> {
  return new Map(entries.map((entry) => [entry.id ?? JSON.stringify(entry), entry]));
}

function readEntry(text: string): KeptEntry[] {
  try {
    return [keptEntrySchema.parse(JSON.parse(text))];
  } catch {
    return [];
  }
}
