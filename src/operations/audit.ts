/** Who changed what, when, from what, to what: in memory, or in the state Redis, where it outlives every process. */
import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Clock } from '../time/clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { auditKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { type auditEntrySchema, type KeptEntry, keptEntrySchema } from './answers.ts';
import { iso } from './api.ts';

/** How many changes are kept, the oldest go first; the log has them for good. */
const CAPACITY = 1000;

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
 * ARGV: how many are kept, then each entry, oldest first. One whose answer was lost is sent again, as the same text: it
 * takes its own place, not that of another entry. LREM, a first write that needs no memory, makes a full Redis run all of it.
 */
const WRITE = defineScript(
  'writeAudit',
  `
for i = 2, #ARGV do
  redis.call('LREM', KEYS[1], 0, ARGV[i])
  redis.call('LPUSH', KEYS[1], ARGV[i])
end
redis.call('LTRIM', KEYS[1], 0, ARGV[1] - 1)
return 1
`,
);

/** ARGV: the newest entry and their number as they were read, then what takes the place of all, newest first. */
const REPLACE = defineScript(
  'replaceAudit',
  `
if (redis.call('LINDEX', KEYS[1], 0) or '') ~= ARGV[1] or redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[2]) then return 0 end
redis.call('DEL', KEYS[1])
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
return 1
`,
);
/** Attempts at a change that other processes keep overtaking. */
const MAX_ATTEMPTS = 10;

export class Audit {
  readonly #options: AuditOptions;
  /** Made here and not yet in Redis, oldest first. */
  #unwritten: readonly KeptEntry[] = [];
  #writing: Promise<void> = Promise.resolve();

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
    this.#unwritten = [...this.#unwritten, { id: randomUUID(), ...entry }].slice(-CAPACITY);
    await this.#write();
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
    return [...byIdentity([...this.#unwritten.toReversed(), ...texts.flatMap(readEntry)]).values()];
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
      const kept = [...all.values()].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, CAPACITY);
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
      const args = [texts[0] ?? '', texts.length, ...kept.map((entry) => JSON.stringify(entry))];
      if ((await runScript(link, REPLACE, { keys: [auditKey()], args })) === 1) return counts;
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
      const args = [CAPACITY, ...entries.map((entry) => JSON.stringify(entry))];
      await runScript(link, WRITE, { keys: [auditKey()], args });
      this.#unwritten = this.#unwritten.filter((entry) => !entries.includes(entry));
    } catch {
      // The link itself reports it, once.
    }
  }
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
