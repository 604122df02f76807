/**
 * Purges by tag (C6: in force everywhere within a second). Each purge is an event of the journal. A copy remembers the position
 * in the journal that was read before its fetch began, and counts as purged once one of its tags was purged at a later one. So
 * no list of keys is kept or searched, and a fetch that began before a purge cannot bring the old record back.
 * One number serves all tags of a copy, also those that only the answer shows (the workspace of an evaluation).
 *
 * A hard purge also deletes: from memory as soon as a process knows of it, from Redis in the background (redis/purge-sweep.ts).
 * A hard purge of an evaluation is forgotten once that is done for certain, `LATE_MS` later: its id is all that the last purges
 * grow by. The tags of lists, workspaces and classes stay, as does every soft purge, for as long as a copy may live.
 *
 * How long a purged copy may still be served, and when events are lost, is the journal's (journal/redis-journal.ts); copies of
 * another history count as purged. Beyond that:
 * - A copy from before a forgotten purge, held by somebody who was stopped meanwhile: what was fetched before is not
 *   kept (`mayBeKept`), what was read before is read again, and a process that missed what is forgotten drops its memory.
 * - A process that Redis alone cannot reach serves copies from memory that others have purged, for at most the error time of
 *   their class (C8: without Redis memory stays usable). Once it reaches Redis it reads the journal before it trusts a copy.
 */
import { z } from 'zod';
import { ID_PATTERN, UUID_PATTERN } from '../domain/vocabulary.ts';
import type { Journal, LastPurge, Position, PurgeMode, Snapshot } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import type { RecordTag } from '../upstream/resources.ts';
import { ChangeTable, type DatedCopy, type MarkOf } from './change-table.ts';
import { CACHE_CLASSES, type CacheClass } from './ttl-policy.ts';

/** The tags that copies are purged by: those of their record, of their class, and one that all of them have. */
export type Tag = 'all' | `class:${CacheClass}` | RecordTag;

const TAG_NAMES = ['workspace:', 'evaluation:', 'scorecard:', 'lists-of:'] as const;
const CLASS_TAGS: ReadonlySet<string> = new Set(CACHE_CLASSES.map((name) => `class:${name}`));

/** A tag of a stored entry, or of a purge. */
export const tagSchema = z.custom<Tag>(
  (value) =>
    typeof value === 'string' &&
    (value === 'all' || CLASS_TAGS.has(value) || TAG_NAMES.some((name) => value.startsWith(name))),
  'expected a tag',
);

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

/** The part of a copy that purges go by. */
export interface Tagged {
  readonly tags: readonly Tag[];
  /** How far the journal was known before the fetch of the copy began. */
  readonly position: Position;
}

/** Whether an answer of the store may be kept whose fetch is just over. */
export function mayBeKept(purges: Pick<PurgeLog, 'since' | 'forgotten'>, fetched: Tagged): boolean {
  return fetched.position.sequence >= purges.forgotten && !isPurged(purges, fetched);
}

/** Notified of hard purges, and with `all` if purges were missed that nobody can name any more: memory drops the copies. */
export type HardPurgeListener = (purges: Pick<PurgeLog, 'since'>, tags: readonly Tag[]) => void;

/** Whether the copy was purged so that it is never served again. */
export function isPurged(purges: Pick<PurgeLog, 'since'>, { position, tags }: Tagged): boolean {
  return purges.since(position, tags) === 'hard';
}

interface LastPurges extends LastPurge {
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

/** The last purges of each tag, applied in the order of their events. */
export class PurgeTable {
  readonly #onHard: HardPurgeListener;
  #history: string;
  /** In order of the last purge. */
  readonly #purges = new Map<Tag, LastPurges>();
  /** Evaluations whose last purge was soft, in the order of that. */
  readonly #soft = new Set<Tag>();
  /** The number of the last purge. */
  #sequence: number;
  /** The number of the last hard purge of more than single evaluations. */
  #lastBroad = 0;
  #forgotten = 0;

  constructor({ history, sequence }: Position, onHard: HardPurgeListener = () => undefined) {
    this.#history = history;
    this.#sequence = sequence;
    this.#onHard = onHard;
  }

  /** The number of the last purge. */
  get last(): number {
    return this.#sequence;
  }

  /** Where the last hard purge is that does not name all keys of the copies that it ends. */
  get lastBroad(): number {
    return this.#lastBroad;
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  /** The purges up to now; later ones do not change it. */
  snapshot(): PurgeTable {
    const copy = new PurgeTable({ history: this.#history, sequence: this.#sequence });
    copy.#forgotten = this.#forgotten;
    for (const [tag, last] of this.#purges) copy.#purges.set(tag, last);
    return copy;
  }

  /** Begins anew with these last purges, which are all that copies of that history can have missed. */
  restart({ position, purges, forgotten }: Pick<Snapshot, 'position' | 'purges' | 'forgotten'>): void {
    this.#history = position.history;
    this.#purges.clear();
    this.#soft.clear();
    const inOrder = [...purges].toSorted(([, one], [, other]) => lastOf(one) - lastOf(other));
    for (const [text, last] of inOrder) {
      const tag = readTag(text);
      // Another release knows tags that this one doesn't: anything may have been purged.
      const known = tag === null ? this.#withAll(last) : last;
      this.#purges.set(tag ?? 'all', known);
      if (tag?.startsWith(EVALUATION) === true && last.soft > last.hard) this.#soft.add(tag);
    }
    this.#sequence = Math.max(forgotten, ...inOrder.slice(-1).map(([, last]) => lastOf(last)));
    const broad = [...this.#purges].filter(([tag]) => !tag.startsWith(EVALUATION));
    this.#lastBroad = broad.reduce((most, [, { hard }]) => Math.max(most, hard), 0);
    this.#forgotten = forgotten;
    this.#onHard(ANYTHING_PURGED, ['all']);
  }

  #withAll({ soft, hard }: LastPurge): LastPurge {
    const known = this.#purges.get('all')?.hard ?? 0;
    return { soft: 0, hard: Math.max(soft, hard, known) };
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

  /** Compares a copy's position with its tags' last purges, when the copy is read or about to be kept. */
  since(position: Position, tags: readonly Tag[]): PurgeMode | null {
    if (position.history !== this.#history) return 'hard';
    if (position.sequence >= this.#sequence) return null;
    // A forgotten purge can no longer be told from none, so an older negative entry counts as purged.
    if (position.sequence < this.#forgotten && tags.includes('class:notFound')) return 'hard';
    let worst: PurgeMode | null = null;
    for (const tag of tags) {
      const last = this.#purges.get(tag);
      if (last === undefined) continue;
      if (last.hard > position.sequence) return 'hard';
      if (last.soft > position.sequence) worst = 'soft';
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

  /** Whether some hard purge of an evaluation up to that sequence is still remembered. */
  isAnyToForget(sequence: number): boolean {
    for (const [tag, last] of this.#purges) {
      if (lastOf(last) > sequence) return false;
      if (tag.startsWith(EVALUATION) && last.hard > 0) return true;
    }
    return false;
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

/** The position in no journal: every copy that has it counts as purged. */
const NO_POSITION: Position = { history: '', sequence: 0 };

const ANYTHING_PURGED: Pick<PurgeLog, 'since'> = { since: () => 'hard' };

function lastOf({ soft, hard }: LastPurge): number {
  return Math.max(soft, hard);
}

function readTag(text: string): Tag | null {
  return tagSchema.safeParse(text).data ?? null;
}

/** Where a sequence stood some time ago, to within a second. */
export class SequenceMarks {
  readonly #clock: Pick<Clock, 'nowMicros'>;
  #history = '';
  #marks: readonly { readonly sequence: number; readonly atMs: number }[] = [];

  constructor(clock: Pick<Clock, 'nowMicros'>) {
    this.#clock = clock;
  }

  /** Notes where it stands; returns where it stood `LATE_MS` ago, or 0 if that was before the first note. */
  note({ history, sequence }: Position): number {
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

export interface PurgeLogOptions {
  readonly journal: Journal;
  readonly clock: Pick<Clock, 'nowMicros'>;
  readonly onHard?: HardPurgeListener;
  /** Called before changes are forgotten: the copies in memory are to bear their marks. */
  readonly onForgetting?: (marks: readonly MarkOf[]) => void;
  /** Whether no other process and no shared cache holds copies: then a hard purge has deleted all when it returns. */
  readonly isAlone?: boolean;
}

/** The purges that the journal has brought to this process. */
export class PurgeLog {
  readonly #journal: Journal;
  readonly #table: PurgeTable;
  readonly changeTable = new ChangeTable();
  readonly #marks: SequenceMarks | null;
  #sweptUpTo = 0;
  /** The event by which the shared cache has gone back to an older state; 0 for none. */
  #restored = 0;

  constructor({ journal, clock, onHard, onForgetting, isAlone = false }: PurgeLogOptions) {
    this.#journal = journal;
    this.#table = new PurgeTable(journal.position, onHard);
    this.#marks = isAlone ? new SequenceMarks(clock) : null;
    journal.on('purge', ({ tags, mode }, { sequence }) => {
      const known = tags.map(readTag).filter((tag) => tag !== null);
      // Another release may purge tags that this one doesn't know.
      if (known.length === tags.length) this.#table.apply(known, mode, sequence);
      else this.#table.apply(['all'], 'hard', sequence);
    });
    journal.on('changes', (event, { sequence }) => this.changeTable.apply(event, sequence));
    journal.on('forgotten', ({ upTo }) => {
      onForgetting?.(this.changeTable.upTo(upTo));
      this.changeTable.forget(upTo);
      this.#table.forget(upTo);
    });
    journal.on('swept', ({ upTo }) => {
      this.#sweptUpTo = Math.max(upTo, this.#sweptUpTo);
    });
    journal.on('restored', (_event, { sequence }) => {
      this.#restored = sequence;
    });
    journal.onSnapshot((snapshot) => {
      this.#restored = snapshot.restored;
      this.#sweptUpTo = snapshot.sweptUpTo;
      this.#table.restart(snapshot);
      this.changeTable.restart(snapshot);
    });
  }

  /** Whether the journal was ever read. Before that no shared copy can be judged and none added. */
  get isKnown(): boolean {
    return this.#journal.isJoined;
  }

  /** As `Journal.prove`. */
  prove(): Promise<void> | null {
    return this.#journal.prove();
  }

  /** How far purges are known here. Read before a fetch begins. */
  get position(): Position {
    return this.#journal.position;
  }

  /**
   * Hard purges of evaluations up to this sequence are forgotten: all copies from before were deleted. A copy that was read
   * from the shared cache before that, or fetched from an earlier position and not kept yet, must not come back.
   */
  get forgotten(): number {
    return this.#table.forgotten;
  }

  /** How far the bytes of purged copies are deleted from the shared cache. */
  get sweptUpTo(): number {
    return this.#marks === null ? this.#sweptUpTo : this.last;
  }

  /** The number of the last purge. */
  get last(): number {
    return this.#table.last;
  }

  /** For what follows purges in the background. */
  get table(): PurgeTable {
    return this.#table;
  }

  /** How far bytes have to be deleted from the shared cache: up to the last event by which copies ended that nobody can name. */
  get lastBroad(): number {
    return Math.max(this.#table.lastBroad, this.#restored);
  }

  /** A copy from the shared cache as it is to be judged: if that has gone back since, it is of no history, and so purged. */
  fromShared<C extends Tagged>(copy: C): C {
    return copy.position.sequence < this.#restored ? { ...copy, position: NO_POSITION } : copy;
  }

  /** The purges as they are now; later ones do not change it. */
  snapshot(): Pick<PurgeLog, 'since'> {
    return this.#table.snapshot();
  }

  /** How a copy of that position with these tags was purged since, `hard` before `soft`; null if it was not. */
  since(position: Position, tags: readonly Tag[]): PurgeMode | null {
    return this.#table.since(position, tags);
  }

  /** The tags of the last purge of that tag, if it is remembered: its copies, which showed the workspace, are deleted. */
  alongside(tag: Tag): readonly Tag[] {
    return this.#table.alongside(tag);
  }

  /**
   * Purges the tags; once it resolves, that is in force here and on its way to all others. Rejects as `Journal.append` does.
   */
  async purge(tags: readonly Tag[], mode: PurgeMode): Promise<void> {
    await this.forgetOld();
    await this.#journal.append({ kind: 'purge', tags, mode });
    const tooMany = this.#marks === null ? [] : this.#table.tooManySoft();
    if (tooMany.length > 0) await this.purge(tooMany, 'hard');
  }

  /** How the copy is from before a change of what it shows (`ChangeTable.of`); null if it is not. */
  changeOf(copy: DatedCopy, nowMs: number, workspaceIds?: readonly string[]): PurgeMode | null {
    return this.changeTable.of(copy, nowMs, workspaceIds);
  }

  /** Whether the copy is from before a change that the store has announced. */
  isAnnouncedSince(copy: DatedCopy): boolean {
    return this.changeTable.isAnnouncedSince(copy);
  }

  /**
   * To be called before a purge or changes are appended: forgets what nobody can hold a copy from before of. Without Redis only;
   * with it, one process of all does so (redis/purge-sweep.ts).
   */
  async forgetOld(): Promise<void> {
    // Before anything is added: what is up to the last event was there by then.
    const old = this.#marks?.note(this.position) ?? 0;
    if (this.#table.isAnyToForget(old) || this.changeTable.isAnyToForget(old)) await this.forget(old);
  }

  /** Forgets hard purges of evaluations, and changes, up to that one, in every process. `endings`: the counts of the cache Redis. */
  async forget(upTo: number, endings: readonly number[] = []): Promise<void> {
    await this.#journal.append({ kind: 'forgotten', upTo, endings });
  }

  async noteSwept(upTo: number): Promise<void> {
    await this.#journal.append({ kind: 'swept', upTo });
  }
}
