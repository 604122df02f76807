/** Who changed what, when, from what, to what: in memory, or in the state Redis, where it outlives every process. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { auditKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { iso } from './api.ts';

/** How many changes are kept, the oldest go first; the log has them for good. */
const CAPACITY = 1000;

/** One change that was made. Never holds a token or a key's hash. */
export interface AuditEntry {
  /** ISO 8601 in UTC, with milliseconds. */
  readonly at: string;
  /** The name of the token that made the change; `anonymous` if the listener has no tokens. */
  readonly who: string;
  /** The kind of change: `key.create`, `key.revoke`, ... */
  readonly action: string;
  /** The subject of the change: the id of a key, for instance. */
  readonly target: string;
  /** The changed members as they were; null if there was nothing before. */
  readonly from: unknown;
  /** The changed members as they are now; null if nothing is left. */
  readonly to: unknown;
}

export type AuditedChange = Omit<AuditEntry, 'at'>;

export interface Audit {
  /** Keeps a change that has been made. Never rejects: the change stands, so its caller must not hear that it failed. */
  record(change: AuditedChange): Promise<void>;
  /** The changes kept, newest first. */
  entries(): Promise<readonly AuditEntry[]>;
}

export interface AuditOptions {
  readonly clock: Clock;
  /** Receives each entry as soon as it is made: a log, for example, that keeps them for good. Must not throw. */
  readonly sink: (entry: AuditEntry) => void;
}

export class MemoryAudit implements Audit {
  readonly #options: AuditOptions;
  readonly #oldestFirst: AuditEntry[] = [];

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  async record(change: AuditedChange): Promise<void> {
    const entry = { at: iso(this.#options.clock.nowMs()), ...change };
    this.#oldestFirst.push(entry);
    if (this.#oldestFirst.length > CAPACITY) this.#oldestFirst.shift();
    this.#options.sink(entry);
  }

  async entries(): Promise<readonly AuditEntry[]> {
    return this.#oldestFirst.toReversed();
  }
}

export interface RedisAuditOptions extends AuditOptions {
  readonly link: RedisLink;
}

/** As it is kept. By its id an entry that is there twice is known; entries of earlier releases have none. */
interface KeptEntry extends AuditEntry {
  readonly id?: string | undefined;
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

const entrySchema = z.object({
  id: z.string().optional(),
  at: z.string(),
  who: z.string(),
  action: z.string(),
  target: z.string(),
  from: z.unknown(),
  to: z.unknown(),
});

/** Keeps entries that cannot be written yet until Redis is back. */
export class RedisAudit implements Audit {
  readonly #options: RedisAuditOptions;
  /** Made here and not yet in Redis, oldest first. */
  #unwritten: KeptEntry[] = [];
  #writing: Promise<void> | null = null;
  #writingNext: Promise<void> | null = null;

  constructor(options: RedisAuditOptions) {
    this.#options = options;
    options.link.onUp(() => void this.#write());
  }

  async record(change: AuditedChange): Promise<void> {
    const { clock, sink } = this.#options;
    const entry: AuditEntry = { at: iso(clock.nowMs()), ...change };
    sink(entry);
    this.#unwritten = [...this.#unwritten, { id: randomUUID(), ...entry }].slice(-CAPACITY);
    await this.#write();
  }

  /** While Redis does not answer, only those that this process has still to write. */
  async entries(): Promise<readonly AuditEntry[]> {
    const { link } = this.#options;
    const pending = this.#unwritten.toReversed();
    try {
      const texts = await link.run((redis) => redis.lrange(auditKey(), 0, CAPACITY - 1));
      return shown([...pending, ...texts.flatMap(readEntry)]);
    } catch {
      return shown(pending);
    }
  }

  /**
   * Writes all that is unwritten when it is called. One at a time, so that a slow Redis gets no entry twice while its
   * reply is awaited. Never rejects: the change stands. An entry that fails is written with the next, or when Redis is back.
   */
  #write(): Promise<void> {
    if (this.#writing === null) {
      this.#writing = this.#writeNow().finally(() => {
        this.#writing = null;
      });
      return this.#writing;
    }
    // The write under way began without the entries that have come since.
    this.#writingNext ??= this.#writing.then(() => {
      this.#writingNext = null;
      return this.#write();
    });
    return this.#writingNext;
  }

  async #writeNow(): Promise<void> {
    const entries = this.#unwritten;
    if (entries.length === 0) return;
    const { link } = this.#options;
    try {
      const args = [CAPACITY, ...entries.map((entry) => JSON.stringify(entry))];
      await runScript(link, WRITE, { keys: [auditKey()], args });
      this.#unwritten = this.#unwritten.filter((entry) => !entries.includes(entry));
    } catch {
      // The link itself reports it, once.
    }
  }
}

/** Each entry once: one that still waits for its reply may be in Redis already. */
function shown(entries: readonly KeptEntry[]): readonly AuditEntry[] {
  const seen = new Set<string>();
  return entries.flatMap(({ id, ...entry }) => {
    if (id === undefined) return [entry];
    if (seen.has(id)) return [];
    seen.add(id);
    return [entry];
  });
}

function readEntry(text: string): KeptEntry[] {
  try {
    const { success, data } = entrySchema.safeParse(JSON.parse(text));
    return success ? [{ ...data, from: data.from ?? null, to: data.to ?? null }] : [];
  } catch {
    return [];
  }
}
