/** The audit of a fleet: a list in the state Redis, which outlives every process; what can't be written yet is kept here. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Audit, AuditedChange, AuditEntry } from './audit.ts';
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { auditKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';

export interface RedisAuditOptions {
  readonly link: RedisLink;
  readonly clock: Clock;
  /** How many entries are kept; the oldest go first. */
  readonly capacity: number;
  /** Is handed each entry as well, as soon as it is made. Must not throw. */
  readonly sink: (entry: AuditEntry) => void;
}

/** As it is kept. The id tells one that stands there twice; entries of earlier releases have none. */
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

export function createRedisAudit(options: RedisAuditOptions): Audit {
  return new RedisAudit(options);
}

class RedisAudit implements Audit {
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
    const { clock, capacity, sink } = this.#options;
    const entry: AuditEntry = { at: new Date(clock.nowMs()).toISOString(), ...change };
    sink(entry);
    this.#unwritten = [...this.#unwritten, { id: randomUUID(), ...entry }].slice(-capacity);
    await this.#write();
  }

  /** Where Redis can't be asked, those that this process has still to write. */
  async entries(): Promise<readonly AuditEntry[]> {
    const { link, capacity } = this.#options;
    const pending = this.#unwritten.toReversed();
    try {
      const texts = await link.run((redis) => redis.lrange(auditKey(), 0, capacity - 1));
      return shown([...pending, ...texts.flatMap(readEntry)]);
    } catch {
      return shown(pending);
    }
  }

  /**
   * Writes all that is unwritten when it is called. One at a time, so that a Redis that is slow gets no entry twice while
   * the answer is awaited. Never rejects: the change stands. What fails is written with the next, or when Redis is back.
   */
  #write(): Promise<void> {
    if (this.#writing === null) {
      this.#writing = this.#writeNow().finally(() => {
        this.#writing = null;
      });
      return this.#writing;
    }
    // The one under way has begun without what has come since.
    this.#writingNext ??= this.#writing.then(() => {
      this.#writingNext = null;
      return this.#write();
    });
    return this.#writingNext;
  }

  async #writeNow(): Promise<void> {
    const entries = this.#unwritten;
    if (entries.length === 0) return;
    const { link, capacity } = this.#options;
    try {
      const args = [capacity, ...entries.map((entry) => JSON.stringify(entry))];
      await runScript(link, WRITE, { keys: [auditKey()], args });
      this.#unwritten = this.#unwritten.filter((entry) => !entries.includes(entry));
    } catch {
      // Told by the link itself, once.
    }
  }
}

/** Each entry once: what still waits for its answer may stand in Redis already. */
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
