/**
 * Of which workspace the store's record of an id is, where it was asked for on behalf of others: to all who don't ask for
 * that workspace the id is absent, as one that nothing has would be. Kept apart from the answers, so that a probe can't
 * replace the owner's copy; bounded in bytes, the least recently used goes first.
 */
import { LRUCache } from 'lru-cache';
import type { Usage } from './ports.ts';
import type { StoredEntry } from './stored.ts';

export interface Verdict {
  /** The record's. */
  readonly workspaceId: string;
  /** What the others are served: an absence. */
  readonly absence: StoredEntry;
}

/** What one takes beside its key: objects, tags, its place in the order. */
const OVERHEAD_BYTES = 768;

export class Verdicts {
  readonly #verdicts: LRUCache<string, Verdict>;

  constructor(maxBytes: number) {
    this.#verdicts = new LRUCache({
      // lru-cache takes a maximum of 0 for none at all.
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: (_verdict, key) => OVERHEAD_BYTES + 2 * key.length,
    });
  }

  /** Undefined also where one of the workspaces is the record's. `peek` leaves the order of use as it is. */
  absenceTo(workspaceIds: readonly string[], key: string, how: 'get' | 'peek' = 'get'): StoredEntry | undefined {
    const verdict = this.#verdicts[how](key);
    return verdict === undefined || workspaceIds.includes(verdict.workspaceId) ? undefined : verdict.absence;
  }

  /** False where it doesn't fit. */
  set(key: string, verdict: Verdict): boolean {
    this.#verdicts.set(key, verdict);
    return this.#verdicts.has(key);
  }

  /** The store has answered anew: unless that is a record of the same workspace, the verdict is outdated. */
  compare(key: string, { tags }: Pick<StoredEntry, 'tags'>): void {
    const verdict = this.#verdicts.peek(key);
    if (verdict !== undefined && !tags.includes(`workspace:${verdict.workspaceId}`)) this.#verdicts.delete(key);
  }

  clear(): void {
    this.#verdicts.clear();
  }

  usage(): Usage {
    return { entries: this.#verdicts.size, bytes: this.#verdicts.calculatedSize };
  }
}
