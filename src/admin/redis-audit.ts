/** The audit of a fleet: a list in the state Redis, which outlives every process; what can't be written yet is kept here. */
import { z } from 'zod';
import type { Audit, AuditedChange, AuditEntry } from './audit.ts';
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/link.ts';
import { auditKey } from '../redis/keys.ts';

export interface RedisAuditOptions {
  readonly link: RedisLink;
  readonly clock: Clock;
  /** How many entries are kept; the oldest go first. */
  readonly capacity: number;
  /** Is handed each entry as well, as soon as it is made. Must not throw. */
  readonly sink: (entry: AuditEntry) => void;
}

const entrySchema = z.object({
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
  #unwritten: AuditEntry[] = [];

  constructor(options: RedisAuditOptions) {
    this.#options = options;
    options.link.onUp(() => void this.#write());
  }

  async record(change: AuditedChange): Promise<void> {
    const { clock, capacity, sink } = this.#options;
    const entry: AuditEntry = { at: new Date(clock.nowMs()).toISOString(), ...change };
    sink(entry);
    this.#unwritten = [...this.#unwritten, entry].slice(-capacity);
    await this.#write();
  }

  /** Where Redis can't be asked, those that this process has still to write. */
  async entries(): Promise<readonly AuditEntry[]> {
    const pending = this.#unwritten.toReversed();
    try {
      const texts = await this.#options.link.client.lrange(auditKey(), 0, this.#options.capacity - 1);
      return [...pending, ...texts.flatMap(readEntry)];
    } catch {
      return pending;
    }
  }

  /** Never rejects: the change stands. What fails is written when Redis is back; it may then stand there twice. */
  async #write(): Promise<void> {
    const entries = this.#unwritten;
    if (entries.length === 0) return;
    try {
      const texts = entries.map((entry) => JSON.stringify(entry));
      await this.#options.link.client.lpush(auditKey(), ...texts);
      this.#unwritten = this.#unwritten.filter((entry) => !entries.includes(entry));
      await this.#options.link.client.ltrim(auditKey(), 0, this.#options.capacity - 1);
    } catch {
      // Told by the link itself, once.
    }
  }
}

function readEntry(text: string): AuditEntry[] {
  try {
    const { success, data } = entrySchema.safeParse(JSON.parse(text));
    return success ? [{ ...data, from: data.from ?? null, to: data.to ?? null }] : [];
  } catch {
    return [];
  }
}
