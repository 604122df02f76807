/**
 * Which tags were purged when, as a log that every purge lengthens by one. An entry remembers how long the log was
 * before the fetch that filled it began; it is not there once one of its tags was purged later than that. No list of
 * keys is kept or searched, and a fill that began before a purge can't survive it. One number serves all of an entry's
 * tags, those too that only the answer tells (the workspace of an evaluation).
 */
import type { Tag } from './tags.ts';

/** Where a purge log stood. Positions in different histories can't be compared. */
export interface PurgeEpoch {
  /** Another one whenever the log had to begin anew. */
  readonly history: string;
  readonly sequence: number;
}

/** `hard`: what was purged is not there any more. `soft`: it is stale, and served while it is refreshed. */
export type PurgeMode = 'soft' | 'hard';

export interface PurgeLog {
  /** Where the log stands. Read before a fetch begins; never ahead of what this process knows. */
  position(): PurgeEpoch;
  /** The log as it stands now; later purges do not change it. */
  snapshot(): Pick<PurgeLog, 'since'>;
  /** The worst that has befallen an entry with these tags since that position; null for nothing. */
  since(position: PurgeEpoch, tags: readonly Tag[]): PurgeMode | null;
  /** Purges the tags; once it resolves, this process knows it and all others are told. */
  purge(tags: readonly Tag[], mode: PurgeMode): Promise<void>;
}

interface LastPurges {
  readonly soft: number;
  readonly hard: number;
}

/** Tags remembered; the oldest beyond it are forgotten, and with them everything that was filled before. */
const MAX_TAGS = 10_000;

/** What every implementation of PurgeLog keeps of the log: the last purges of each tag. Applied in order of sequence. */
export class PurgeTable {
  readonly history: string;
  readonly #maxTags: number;
  /** In order of the last purge. */
  readonly #purges = new Map<Tag, LastPurges>();
  #sequence: number;
  /** What was filled before this counts as purged, because what happened to it is not known any more. */
  #floor: number;

  /** `sequence`: where the log stands if its past is not known. */
  constructor(history: string, sequence = 0, maxTags = MAX_TAGS) {
    this.history = history;
    this.#maxTags = maxTags;
    this.#sequence = sequence;
    this.#floor = sequence;
  }

  get position(): PurgeEpoch {
    return { history: this.history, sequence: this.#sequence };
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

  since(position: PurgeEpoch, tags: readonly Tag[]): PurgeMode | null {
    if (position.history !== this.history || position.sequence < this.#floor) return 'hard';
    if (position.sequence >= this.#sequence) return null;
    let worst: PurgeMode | null = null;
    for (const tag of tags) {
      const last = this.#purges.get(tag);
      if (last === undefined) continue;
      if (last.hard > position.sequence) return 'hard';
      if (last.soft > position.sequence) worst = 'soft';
    }
    return worst;
  }

  copy(): PurgeTable {
    const copy = new PurgeTable(this.history, this.#floor, this.#maxTags);
    copy.#sequence = this.#sequence;
    for (const [tag, last] of this.#purges) copy.#purges.set(tag, last);
    return copy;
  }

  #forgetOldest(): void {
    for (const [tag, last] of this.#purges) {
      if (this.#purges.size <= this.#maxTags) return;
      this.#purges.delete(tag);
      this.#floor = Math.max(last.soft, last.hard);
    }
  }
}

/** The log of a gateway that is alone. */
export class MemoryPurgeLog implements PurgeLog {
  readonly #table: PurgeTable;

  constructor(maxTags = MAX_TAGS) {
    this.#table = new PurgeTable('memory', 0, maxTags);
  }

  position(): PurgeEpoch {
    return this.#table.position;
  }

  since(position: PurgeEpoch, tags: readonly Tag[]): PurgeMode | null {
    return this.#table.since(position, tags);
  }

  snapshot(): Pick<PurgeLog, 'since'> {
    return this.#table.copy();
  }

  purge(tags: readonly Tag[], mode: PurgeMode): Promise<void> {
    this.#table.apply(tags, mode, this.#table.position.sequence + 1);
    return Promise.resolve();
  }
}
