/** Who changed what, when, from what, to what. */
import type { Clock } from '../clock.ts';

/** How many changes the audit of a gateway keeps; its log has them for good. */
export const AUDIT_CAPACITY = 1000;

/** One change that was made. Never holds a token or a key's hash. */
export interface AuditEntry {
  /** ISO 8601 in UTC, with milliseconds. */
  readonly at: string;
  /** The name of the token that made the change; `anonymous` where the listener has no tokens. */
  readonly who: string;
  /** What was done: `key.create`, `key.revoke`, ... */
  readonly action: string;
  /** What it was done to: the id of a key, for instance. */
  readonly target: string;
  /** What changed, as it was; null where there was nothing before. */
  readonly from: unknown;
  /** What changed, as it is now; null where there is nothing any more. */
  readonly to: unknown;
}

export type AuditedChange = Omit<AuditEntry, 'at'>;

export interface Audit {
  /** Keeps a change that has been made. Never rejects: the change stands, so its caller must not be told that it failed. */
  record(change: AuditedChange): Promise<void>;
  /** The changes kept, newest first. */
  entries(): Promise<readonly AuditEntry[]>;
}

export interface AuditOptions {
  readonly clock: Clock;
  /** How many entries are kept; the oldest go first. An integer of at least 1. */
  readonly capacity: number;
  /** Is handed each entry as well: a log, say, that keeps them for good. Must not throw. */
  readonly sink: (entry: AuditEntry) => void;
}

/** An audit in this process's memory. */
export function createAudit({ clock, capacity, sink }: AuditOptions): Audit {
  if (!Number.isSafeInteger(capacity) || capacity < 1) {
    throw new RangeError(`An audit's capacity is an integer of at least 1, not ${capacity}`);
  }
  const oldestFirst: AuditEntry[] = [];
  return {
    record: async (change) => {
      const entry: AuditEntry = { at: new Date(clock.nowMs()).toISOString(), ...change };
      oldestFirst.push(entry);
      if (oldestFirst.length > capacity) oldestFirst.shift();
      sink(entry);
    },
    entries: async () => oldestFirst.toReversed(),
  };
}
