/**
 * Purges as a log of tags (C6: in force everywhere within a second). Each purge is one more entry, whose sequence number is an
 * epoch. A copy remembers the epoch that was read before its fetch began, and counts as purged once one of its tags was purged
 * in a later one. So no list of keys is kept or searched, and a fetch that began before a purge cannot bring the old record
 * back. One number serves all tags of a copy, also those that only the answer shows (the workspace of an evaluation).
 *
 * A hard purge also deletes: from memory as soon as a process knows of it, from Redis in the background (redis/purge-sweep.ts).
 * A hard purge of an evaluation is forgotten once that is done for certain, `LATE_MS` later: its id is all that such a log
 * grows by. The tags of lists, workspaces and classes stay, as does every soft purge, for as long as a copy may live.
 *
 * A purged copy may be served for up to 250 ms after a lost message, for up to 1 s on a silent subscription, and for up to its
 * error time by a process that cannot reach Redis; otherwise never. How the log can fail, and what bounds it:
 * - A copy from before a forgotten purge, held by somebody who was stopped meanwhile: what was fetched before is not
 *   kept (`mayBeKept`), what was read before is read again, and a process that missed what is forgotten drops its memory.
 * - Lost entries: 0.2 keeps 10,000 and cuts off the rest. Copies from before all count as purged: too much is fetched again,
 *   never too little.
 * - Lost history: Redis was emptied, restored from an old copy, or lost its last writes in a failover. The process that
 *   notices it at its next look begins a log with another history word, and copies of another history count as purged.
 * - A lost message: each process looks at the log every 250 ms (connectivity.ts), and at once if a message shows a gap.
 * - A subscription that delivers nothing although Redis answers: its heartbeat notices, and memory is dropped within a second.
 * - A process that Redis alone cannot reach: it serves copies from memory that others have purged, for at most the error time
 *   of their class (C8: without Redis memory stays usable). Once it reaches Redis it reads the log before it trusts a copy.
 */
import { ID_PATTERN, UUID_PATTERN } from '../domain/records.ts';
import type { Clock } from '../time/clock.ts';
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

/** How far the bytes of purged copies are deleted from the shared cache, and how far the pass has come that is under way. */
export interface Swept {
  /** What was purged up to this place in the log is deleted. */
  readonly sequence: number;
  /** Names that the pass has looked at, of how many; 0 if none is under way. */
  readonly entries: number;
  readonly of: number;
}

export interface PurgeLog {
  /** The end of the log as this process knows it. Read before a fetch begins. */
  epoch(): PurgeEpoch;
  /** The log as it stands now; later purges do not change it. */
  snapshot(): Pick<PurgeLog, 'since'>;
  /** How a copy of that epoch with these tags was purged since, `hard` before `soft`; null if it was not. */
  since(epoch: PurgeEpoch, tags: readonly Tag[]): PurgeMode | null;
  /**
   * Hard purges of evaluations up to this sequence are forgotten: all copies from before were deleted. A copy that was read
   * from the shared cache before that, or fetched in an earlier epoch and not kept yet, must not come back.
   */
  readonly forgotten: number;
  readonly swept: Swept;
  /** The tags of the last purge of that tag, if it is remembered: its copies, which told the workspace, are deleted. */
  alongside(tag: Tag): readonly Tag[];
  /** Purges the tags; once it resolves, that is in force here and published to all others. */
  purge(tags: readonly Tag[], mode: PurgeMode): Promise<void>;
}

/** Whether an answer of the store may be kept whose fetch is just over. */
export function mayBeKept(purges: Pick<PurgeLog, 'since' | 'forgotten'>, fetched: Tagged): boolean {
  return fetched.epoch.sequence >= purges.forgotten && !isPurged(purges, fetched);
}

/** Notified of hard purges, and with `all` if purges were missed that nobody can name any more: memory drops the copies. */
export type HardPurgeListener = (purges: Pick<PurgeLog, 'since'>, tags: readonly Tag[]) => void;

/** Whether the copy was purged so that it is never served again. */
export function isPurged(purges: Pick<PurgeLog, 'since'>, { epoch, tags }: Tagged): boolean {
  return purges.since(epoch, tags) === 'hard';
}

export interface LastPurges {
  readonly soft: number;
  readonly hard: number;
  /** The other tags of the last one. */
  readonly alongside?: readonly Tag[];
}

/**
 * Later than this after its fetch began nothing is kept or written: a call to the store takes 300 s at most, and a lease is
 * lost 2 s after its process was stopped.
 */
export const LATE_MS = 360_000;

/** Evaluations that were purged softly and not hard since. Beyond it the oldest are purged hard, and can be forgotten. */
const MAX_SOFT = 10_000;
const EVALUATION = 'evaluation:';

/** The last purges of each tag, applied in order of sequence: the memory of every implementation of PurgeLog. */
export class PurgeTable {
  readonly #onHard: HardPurgeListener;
  #history: string;
  /** In order of the last purge. */
  readonly #purges = new Map<Tag, LastPurges>();
  /** Evaluations whose last purge was soft, in the order of that. */
  readonly #soft = new Set<Tag>();
  #sequence: number;
  /** That of the last hard purge of more than single evaluations. */
  #lastBroad = 0;
  /** Copies from before this count as purged, because nobody knows any more whether they were. */
  #floor: number;
  #forgotten = 0;

  /** `sequence`: the end of a log whose past is not known. */
  constructor(history: string, onHard: HardPurgeListener = () => undefined, sequence = 0) {
    this.#history = history;
    this.#onHard = onHard;
    this.#sequence = sequence;
    this.#floor = sequence;
  }

  /** Where the last hard purge is that does not name all keys of the copies that it ends. */
  get lastBroad(): number {
    return this.#lastBroad;
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  epoch(): PurgeEpoch {
    return { history: this.#history, sequence: this.#sequence };
  }

  snapshot(): PurgeTable {
    const copy = new PurgeTable(this.#history, undefined, this.#floor);
    copy.#sequence = this.#sequence;
    copy.#forgotten = this.#forgotten;
    for (const [tag, last] of this.#purges) copy.#purges.set(tag, last);
    return copy;
  }

  /** Begins anew, at that place in a log of which only `kept` is known. Copies from before `floor` count as purged. */
  restart(history: string, sequence: number, floor: number, kept: ReadonlyMap<Tag, LastPurges>): void {
    this.#history = history;
    this.#purges.clear();
    this.#soft.clear();
    for (const [tag, last] of kept) {
      this.#purges.set(tag, last);
      if (tag.startsWith(EVALUATION)) this.#soft.add(tag);
    }
    this.#sequence = sequence;
    this.#lastBroad = Math.max(0, ...[...kept.values()].map(({ hard }) => hard));
    this.#floor = floor;
    this.#forgotten = 0;
    this.#onHard(ANYTHING_PURGED, ['all']);
  }

  apply(tags: readonly Tag[], mode: PurgeMode, sequence: number): void {
    for (const tag of tags) {
      const last = this.#purges.get(tag) ?? { soft: 0, hard: 0 };
      this.#purges.delete(tag);
      this.#purges.set(tag, { ...last, [mode]: sequence, alongside: tags });
      this.#soft.delete(tag);
      if (mode === 'soft' && tag.startsWith(EVALUATION)) this.#soft.add(tag);
    }
    this.#sequence = sequence;
    if (mode === 'soft') return;
    if (!tags.every((tag) => tag.startsWith(EVALUATION))) this.#lastBroad = sequence;
    this.#onHard(this, tags);
  }

  /** Compares a copy's epoch with its tags' last purges, when the copy is read or about to be kept. */
  since(epoch: PurgeEpoch, tags: readonly Tag[]): PurgeMode | null {
    if (epoch.history !== this.#history || epoch.sequence < this.#floor) return 'hard';
    if (epoch.sequence >= this.#sequence) return null;
    // A forgotten purge can no longer be told from none, so an older negative entry counts as purged.
    if (epoch.sequence < this.#forgotten && tags.includes('class:notFound')) return 'hard';
    let worst: PurgeMode | null = null;
    for (const tag of tags) {
      const last = this.#purges.get(tag);
      if (last === undefined) continue;
      if (last.hard > epoch.sequence) return 'hard';
      if (last.soft > epoch.sequence) worst = 'soft';
    }
    return worst;
  }

  alongside(tag: Tag): readonly Tag[] {
    return this.#purges.get(tag)?.alongside ?? [];
  }

  /** The evaluations whose last hard purge is up to that sequence, with its own. */
  evaluationsUpTo(sequence: number): readonly (readonly [id: string, sequence: number])[] {
    const found: [string, number][] = [];
    for (const [tag, { hard }] of this.#purges) {
      if (tag.startsWith(EVALUATION) && hard > 0 && hard <= sequence) found.push([tag.slice(EVALUATION.length), hard]);
    }
    return found;
  }

  /** The evaluations that were purged softly longest ago, if there are too many to remember. */
  tooManySoft(): readonly Tag[] {
    const excess = this.#soft.size - MAX_SOFT;
    return excess <= 0 ? [] : [...this.#soft].slice(0, excess);
  }

  /** Forgets them: no copy from before is left anywhere. */
  forget(sequence: number): void {
    if (sequence <= this.#forgotten) return;
    for (const [tag, { soft, hard }] of this.#purges) {
      if (Math.max(soft, hard) > sequence) break;
      if (!tag.startsWith(EVALUATION)) continue;
      if (soft === 0) this.#purges.delete(tag);
      else this.#purges.set(tag, { soft, hard: 0 });
    }
    this.#forgotten = sequence;
  }
}

const ANYTHING_PURGED: Pick<PurgeLog, 'since'> = { since: () => 'hard' };

/** Where a sequence stood some time ago, to within a second. */
export class SequenceMarks {
  readonly #clock: Pick<Clock, 'nowMicros'>;
  #history = '';
  #marks: readonly { readonly sequence: number; readonly atMs: number }[] = [];

  constructor(clock: Pick<Clock, 'nowMicros'>) {
    this.#clock = clock;
  }

  /** Notes where it stands; returns where it stood `LATE_MS` ago, or 0 if that was before the first note. */
  note({ history, sequence }: PurgeEpoch): number {
    const nowMs = this.#clock.nowMicros() / 1000;
    if (history !== this.#history) [this.#history, this.#marks] = [history, []];
    const last = this.#marks.at(-1);
    if (last === undefined || nowMs - last.atMs >= 1000) this.#marks = [...this.#marks, { sequence, atMs: nowMs }];
    const old = this.#marks.findLastIndex(({ atMs }) => nowMs - atMs > LATE_MS);
    if (old < 0) return 0;
    this.#marks = this.#marks.slice(old);
    return this.#marks[0]?.sequence ?? 0;
  }
}

/** For a gateway without Redis: a hard purge has deleted all copies when it returns, and only calls under way need it. */
export class MemoryPurgeLog extends PurgeTable implements PurgeLog {
  readonly #marks: SequenceMarks;

  constructor(clock: Pick<Clock, 'nowMicros'>, onHard?: HardPurgeListener) {
    super('memory', onHard);
    this.#marks = new SequenceMarks(clock);
  }

  get swept(): Swept {
    return { sequence: this.epoch().sequence, entries: 0, of: 0 };
  }

  async purge(tags: readonly Tag[], mode: PurgeMode): Promise<void> {
    // Before it is added: the purges up to the one before were there by then.
    this.forget(this.#marks.note(this.epoch()));
    this.apply(tags, mode, this.epoch().sequence + 1);
    const tooMany = this.tooManySoft();
    if (tooMany.length > 0) await this.purge(tooMany, 'hard');
  }
}
