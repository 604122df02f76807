/**
 * Purges as a log of tags (C6: in force everywhere within a second). Each purge is one more entry, whose sequence number is an
 * epoch. A copy remembers the epoch that was read before its fetch began, and counts as purged once one of its tags was purged
 * in a later one. So no list of keys is kept or searched, and a fetch that began before a purge cannot bring the old record
 * back. One number serves all tags of a copy, also those that only the answer shows (the workspace of an evaluation).
 *
 * A purged copy may be served for up to 250 ms after a lost message, for up to 1 s on a silent subscription, and for up to its
 * error time by a process that Redis is out of reach of; otherwise never. How the log can fail, and what bounds it:
 * - Forgotten tags: only the last `MAX_TAGS` tags are remembered here, and as many purges in Redis (state-scripts.ts). Copies
 *   from before a forgotten purge all count as purged: too much is fetched again, never too little.
 * - Lost history: Redis was emptied, restored from an old copy, or lost its last writes in a failover. The process that
 *   notices it at its next look begins a log with another history word, and copies of another history count as purged.
 * - A lost message: each process looks at the log every 250 ms (connectivity.ts), and at once if a message shows a gap.
 * - A subscription that delivers nothing although Redis answers: its heartbeat notices, and memory is dropped within a second.
 * - A process that Redis alone cannot reach: it serves copies from memory that others have purged, for at most the error time
 *   of their class (C8: without Redis memory stays usable). Once it reaches Redis it reads the log before it trusts a copy.
 */
import { ID_PATTERN, UUID_PATTERN } from '../domain/records.ts';
import type { RecordTag } from '../upstream/resources.ts';
import { CACHE_CLASSES, type CacheClass } from './ttl-policy.ts';

/** The tags that copies are purged by: those of their record, of their class, and one that all of them have. */
export type Tag = 'all' | `class:${CacheClass}` | RecordTag;

/** A tag as an operator writes it; null for anything else. */
export function parseTag(text: string): Tag | null {
  if (text === 'all') return text;
  const colon = text.indexOf(':');
  const name = text.slice(0, colon);
  const value = text.slice(colon + 1);
  if (name === 'class') {
    const cacheClass = CACHE_CLASSES.find((candidate) => candidate === value);
    return cacheClass === undefined ? null : `class:${cacheClass}`;
  }
  if (name === 'workspace') return UUID_PATTERN.test(value) ? `workspace:${value.toLowerCase()}` : null;
  if (name === 'evaluation' || name === 'scorecard') return ID_PATTERN.test(value) ? `${name}:${value}` : null;
  return null;
}

/** A place in the log. Those of different histories can't be compared. */
export interface PurgeEpoch {
  /** Another one whenever the log had to begin anew. */
  readonly history: string;
  readonly sequence: number;
}

/** The part of a copy that purges go by. */
export interface Tagged {
  readonly tags: readonly Tag[];
  /** Where the log stood before the fetch of the copy began. */
  readonly epoch: PurgeEpoch;
}

/** `hard`: a purged copy is gone. `soft`: it is stale, and served while it is refreshed. */
export type PurgeMode = 'soft' | 'hard';

export interface PurgeLog {
  /** The end of the log as this process knows it. Read before a fetch begins. */
  epoch(): PurgeEpoch;
  /** The log as it stands now; later purges do not change it. */
  snapshot(): Pick<PurgeLog, 'since'>;
  /** How a copy of that epoch with these tags was purged since, `hard` before `soft`; null if it was not. */
  since(epoch: PurgeEpoch, tags: readonly Tag[]): PurgeMode | null;
  /** Purges the tags; once it resolves, that is in force here and published to all others. */
  purge(tags: readonly Tag[], mode: PurgeMode): Promise<void>;
}

/** Whether the copy was purged so that it is never served again. */
export function isPurged(purges: Pick<PurgeLog, 'since'>, { epoch, tags }: Tagged): boolean {
  return purges.since(epoch, tags) === 'hard';
}

interface LastPurges {
  readonly soft: number;
  readonly hard: number;
}

/** Tags that are remembered. A copy from before the purge of a forgotten one counts as purged. */
const MAX_TAGS = 10_000;

/** The last purges of each tag, applied in order of sequence: the memory of every implementation of PurgeLog. */
export class PurgeTable {
  #history: string;
  readonly #maxTags: number;
  /** In order of the last purge. */
  readonly #purges = new Map<Tag, LastPurges>();
  #sequence: number;
  /** Copies from before this count as purged, because nobody knows any more whether they were. */
  #floor: number;

  /** `sequence`: the end of a log whose past is not known. */
  constructor(history: string, sequence = 0, maxTags = MAX_TAGS) {
    this.#history = history;
    this.#maxTags = maxTags;
    this.#sequence = sequence;
    this.#floor = sequence;
  }

  epoch(): PurgeEpoch {
    return { history: this.#history, sequence: this.#sequence };
  }

  snapshot(): PurgeTable {
    const copy = new PurgeTable(this.#history, this.#floor, this.#maxTags);
    copy.#sequence = this.#sequence;
    for (const [tag, last] of this.#purges) copy.#purges.set(tag, last);
    return copy;
  }

  /** Begins anew, at the end of a log whose past is not known. */
  restart(history: string, sequence: number): void {
    this.#history = history;
    this.#purges.clear();
    this.#sequence = sequence;
    this.#floor = sequence;
  }

  apply(tags: readonly Tag[], mode: PurgeMode, sequence: number): void {
    for (const tag of tags) {
      const last = this.#purges.get(tag) ?? { soft: 0, hard: 0 };
      this.#purges.delete(tag);
      this.#purges.set(tag, { ...last, [mode]: sequence });
    }
    this.#sequence = sequence;
    this.#forgetOldest();
  }

  /** Compares a copy's epoch with its tags' last purges, when the copy is read or about to be kept. */
  since(epoch: PurgeEpoch, tags: readonly Tag[]): PurgeMode | null {
    if (epoch.history !== this.#history || epoch.sequence < this.#floor) return 'hard';
    if (epoch.sequence >= this.#sequence) return null;
    let worst: PurgeMode | null = null;
    for (const tag of tags) {
      const last = this.#purges.get(tag);
      if (last === undefined) continue;
      if (last.hard > epoch.sequence) return 'hard';
      if (last.soft > epoch.sequence) worst = 'soft';
    }
    return worst;
  }

  #forgetOldest(): void {
    for (const [tag, last] of this.#purges) {
      if (this.#purges.size <= this.#maxTags) return;
      this.#purges.delete(tag);
      this.#floor = Math.max(last.soft, last.hard);
    }
  }
}

/** For a gateway without Redis. */
export class MemoryPurgeLog extends PurgeTable implements PurgeLog {
  constructor(maxTags?: number) {
    super('memory', 0, maxTags);
  }

  purge(tags: readonly Tag[], mode: PurgeMode): Promise<void> {
    this.apply(tags, mode, this.epoch().sequence + 1);
    return Promise.resolve();
  }
}
