/**
 * The changes of records that the journal has brought (C11: a part is never older than the change that its reader has seen).
 * A change is a soft purge of some copies of one workspace: of the kinds that have changed, under that workspace. A copy from
 * before it is renewed before it is served, and after a `hard` one never served again. No I/O.
 *
 * Some minutes later a change is forgotten: by then the copies from before it, in memory and in Redis, bear the mark themselves.
 */
import type { Changed, LastPurge, Position, PurgeMode, RecordChange, Snapshot } from '../journal/journal.ts';
import { RECORD_KINDS } from '../upstream/resources.ts';
import { type CacheRequest, recordRequest } from './request.ts';

/** The changes of one kind of a record of one workspace. Sequences are 0, and times null, for what has not been. */
export interface Mark {
  /** The sequence of the last change that is soft. */
  readonly soft: number;
  readonly hard: number;
  /** The last one that the store has announced. */
  readonly announced: number;
  /** When the newest answer was requested that has shown a change of an evaluation, Unix milliseconds. */
  readonly shownAtMs: number | null;
  /** The journal did not take a change that was found here, Unix milliseconds. */
  readonly foundHereAtMs: number | null;
  /** The digest that the last answer has shown; null if the last change was announced. */
  readonly digest: string | null;
  /** The answer that the store has announced; null if it said nothing of it, once it came, or was asked for often enough. */
  readonly awaited: Awaited | null;
  /** How many answers were another one. */
  readonly others: number;
}

/** The answer of the store from now on: a record with that validator, or none, since it is deleted or has moved. */
type Awaited = { readonly etag: string } | 'absent';

/** One mark, with what it is about. */
export interface MarkOf {
  readonly tag: string;
  readonly workspace: string;
  readonly kind: string;
  readonly mark: Mark;
}

/** The part of a copy that decides whether it is from before a change. */
export interface Dated {
  readonly position: Position;
  readonly requestedAtMs: number;
}

/** Who has said that a record has changed: the store, or an answer that shows it. */
export type ChangeOrigin = 'announced' | 'shown';

/** The part of a copy, or of a negative entry, that changes go by. */
export interface DatedCopy {
  readonly kind: string;
  readonly owner: string;
  readonly tags: readonly string[];
  readonly position: Position;
  readonly receivedAtMs: number;
  readonly entry: {
    readonly requestedAtMs: number;
    readonly answer: { readonly kind: 'found'; readonly etag: string | null } | { readonly kind: 'absent' };
  };
  readonly changed?: ChangeOrigin;
}

const NO_MARK: Mark = {
  soft: 0,
  hard: 0,
  announced: 0,
  shownAtMs: null,
  foundHereAtMs: null,
  digest: null,
  awaited: null,
  others: 0,
};
/** A list is renewed because of changes at most once in so long. */
export const LIST_EVERY_MS = 1000;
/** When another answer than the announced one is asked for again: a replica of the store lags. */
const RETRY_AFTER_MS = [1000, 3000, 10_000] as const;
const LISTS_OF = 'lists-of:';

/** How a copy of that kind is from before the changes of a mark; null if it is not. */
export function isBefore({ mark, kind }: Pick<MarkOf, 'mark' | 'kind'>, copy: Dated): PurgeMode | null {
  const { sequence } = copy.position;
  if (sequence < mark.hard) return 'hard';
  if (mark.foundHereAtMs !== null && copy.requestedAtMs < mark.foundHereAtMs) return 'soft';
  // The answer that has shown a change of the evaluation is itself from before the event.
  const last = kind === 'evaluation' ? mark.announced : mark.soft;
  if (sequence < last) return 'soft';
  return mark.shownAtMs !== null && copy.requestedAtMs < mark.shownAtMs ? 'soft' : null;
}

/** The request of what a mark is about; null for a kind that this release does not know. */
export function requestOf({ tag, kind }: Pick<MarkOf, 'tag' | 'kind'>): CacheRequest<unknown> | null {
  const known = RECORD_KINDS.find((one) => one === kind);
  return known === undefined ? null : recordRequest(known, tag.slice(tag.indexOf(':') + 1));
}

/** The key of the copies that a mark is about; null for a kind that this release does not know. */
export function keyOf(mark: Pick<MarkOf, 'tag' | 'kind'>): string | null {
  return requestOf(mark)?.key ?? null;
}

/** Whether the last change that a mark stands for was announced. */
export function originOf({ soft, hard, announced }: Mark): ChangeOrigin {
  return announced > 0 && announced >= Math.max(soft, hard) ? 'announced' : 'shown';
}

export class ChangeTable {
  /** By tag, then by workspace and kind. */
  readonly #marks = new Map<string, Map<string, MarkOf>>();
  /** By `lists-of:` tag: the last changes of what the lists of a workspace show. */
  readonly #lists = new Map<string, LastPurge>();
  /** The last change of all: no copy from after it is looked up. */
  #last = 0;
  /** How many marks wait for an answer. */
  #awaited = 0;

  apply(event: Changed, sequence: number): void {
    for (const change of event.changes) {
      const workspaces = [change.workspace, ...(change.previousWorkspace === null ? [] : [change.previousWorkspace])];
      for (const workspace of workspaces) this.#markAll(change, workspace, event, sequence);
    }
    for (const workspace of event.lists) {
      const known = this.#lists.get(LISTS_OF + workspace) ?? { soft: 0, hard: 0 };
      this.#lists.set(LISTS_OF + workspace, { ...known, [event.mode]: sequence });
    }
    this.#last = Math.max(this.#last, sequence);
  }

  /** A change that the journal did not take is in force in this process alone, by its clock. */
  applyHere({ changes }: Pick<Changed, 'changes'>, sequence: number, nowMs: number): void {
    for (const { tag, workspace, kinds, shown } of changes) {
      for (const kind of kinds) {
        const how = kind === 'evaluation' ? { shownAtMs: shown?.requestedAtMs ?? nowMs } : { foundHereAtMs: nowMs };
        this.#set({ tag, workspace, kind }, { ...how, soft: sequence });
      }
    }
    this.#last = Number.POSITIVE_INFINITY;
  }

  /** Begins anew with what all events have left. */
  restart({ changes, lists }: Pick<Snapshot, 'changes' | 'lists'>): void {
    this.#marks.clear();
    this.#lists.clear();
    this.#last = 0;
    this.#awaited = 0;
    for (const { sequence, event } of changes) this.apply(event, sequence);
    for (const [workspace, last] of lists) {
      this.#lists.set(LISTS_OF + workspace, last);
      this.#last = Math.max(this.#last, last.soft, last.hard);
    }
  }

  /**
   * How the copy is from before a change of what it shows. `workspaceIds`: those of the readers of a negative entry; without them
   * it counts as that of its owner alone.
   */
  of(copy: DatedCopy, nowMs: number, workspaceIds: readonly string[] = [copy.owner]): PurgeMode | null {
    const { kind, owner, tags, position, entry, changed } = copy;
    const known = changed === undefined ? null : 'soft';
    if (position.sequence >= this.#last && this.#awaited === 0) return known;
    if (kind === 'list') return this.#ofList(copy, nowMs);
    const workspaces = entry.answer.kind === 'found' ? [owner] : workspaceIds;
    const dated = { position, requestedAtMs: entry.requestedAtMs };
    let worst: PurgeMode | null = known;
    for (const tag of tags) {
      const marks = this.#marks.get(tag);
      if (marks === undefined) continue;
      for (const workspace of workspaces) {
        const one = marks.get(nameOf(workspace, kind));
        if (one === undefined) continue;
        const isLagging = nowMs - copy.receivedAtMs >= (lagOf(one.mark, copy) ?? Number.POSITIVE_INFINITY);
        const mode = isBefore(one, dated) ?? (isLagging ? 'soft' : null);
        if (mode === 'hard') return mode;
        worst = mode ?? worst;
      }
    }
    return worst;
  }

  /** In how long a copy counts as changed that is another answer than was announced; null if it does not. */
  lagOf(copy: DatedCopy, nowMs: number): number | null {
    if (this.#awaited === 0) return null;
    const lags = copy.tags.flatMap((tag) => lagOf(this.#markOf(tag, copy.owner, copy.kind), copy) ?? []);
    return lags.length === 0 ? null : Math.max(0, Math.min(...lags) - (nowMs - copy.receivedAtMs));
  }

  #ofList({ tags, position, entry }: DatedCopy, nowMs: number): PurgeMode | null {
    let worst: PurgeMode | null = null;
    for (const tag of tags) {
      const last = this.#lists.get(tag);
      if (last === undefined) continue;
      if (position.sequence < last.hard) return 'hard';
      if (position.sequence < last.soft && nowMs - entry.requestedAtMs >= LIST_EVERY_MS) worst = 'soft';
    }
    return worst;
  }

  /** Whether the copy is from before a change that the store has announced. */
  isAnnouncedSince({ kind, owner, tags, position: { sequence }, changed }: DatedCopy): boolean {
    if (changed === 'announced') return true;
    if (sequence >= this.#last) return false;
    if (kind === 'list') {
      return tags.some((tag) => {
        const last = this.#lists.get(tag);
        return last !== undefined && sequence < Math.max(last.soft, last.hard);
      });
    }
    return tags.some((tag) => sequence < this.#markOf(tag, owner, kind).announced);
  }

  /** The last announced change of that kind of a record; 0 for none that is remembered. */
  lastAnnounced(tag: string, workspace: string, kind: string): number {
    return this.#markOf(tag, workspace, kind).announced;
  }

  /**
   * Notes an answer: another one than was announced is asked for again, a few times. That a record is not there says nothing of
   * the next answer: another replica may lag.
   */
  noteAnswer({ kind, owner, tags, entry, position }: DatedCopy): void {
    if (this.#awaited === 0 || entry.answer.kind === 'absent') return;
    for (const tag of tags) {
      const { awaited, announced, others } = this.#markOf(tag, owner, kind);
      if (awaited === null || position.sequence < announced) continue;
      const isOver = isAnswer(awaited, entry.answer.etag) || others >= RETRY_AFTER_MS.length;
      this.#set({ tag, workspace: owner, kind }, isOver ? { awaited: null } : { others: others + 1 });
    }
  }

  /** The marks of changes up to that sequence. */
  upTo(sequence: number): readonly MarkOf[] {
    const all = [...this.#marks.values()].flatMap((marks) => [...marks.values()]);
    return all.filter(({ mark }) => lastOf(mark) <= sequence);
  }

  /** Whether there is a mark of a change up to that sequence. */
  isAnyToForget(sequence: number): boolean {
    for (const marks of this.#marks.values()) {
      for (const { mark } of marks.values()) if (lastOf(mark) <= sequence) return true;
    }
    return false;
  }

  /** Forgets them: all copies from before bear the mark. */
  forget(sequence: number): void {
    let isFoundHere = false;
    let last = 0;
    for (const [tag, marks] of this.#marks) {
      for (const [name, { mark }] of marks) {
        if (lastOf(mark) <= sequence) {
          marks.delete(name);
          if (mark.awaited !== null) this.#awaited -= 1;
        } else {
          isFoundHere ||= mark.foundHereAtMs !== null;
          last = Math.max(last, lastOf(mark));
        }
      }
      if (marks.size === 0) this.#marks.delete(tag);
    }
    // From `applyHere` on every copy is looked up, until no such mark is left.
    if (this.#last !== Number.POSITIVE_INFINITY || isFoundHere) return;
    for (const { soft, hard } of this.#lists.values()) last = Math.max(last, soft, hard);
    this.#last = last;
  }

  #markAll(change: RecordChange, workspace: string, { mode, isAnnounced }: Changed, sequence: number): void {
    const { tag, kinds, shown } = change;
    for (const kind of kinds) {
      if (!isAnnounced && shown !== null) {
        const { digest } = this.#markOf(tag, workspace, kind);
        // Two processes have found the same change.
        if (digest !== shown.digest) this.#set({ tag, workspace, kind }, { soft: sequence, digest: shown.digest });
        if (kind === 'evaluation') this.#set({ tag, workspace, kind }, { shownAtMs: shown.requestedAtMs });
        continue;
      }
      const awaited = awaitedOf(change, workspace, kind);
      const how = { [mode]: sequence, announced: sequence, digest: null, awaited, others: 0 };
      this.#set({ tag, workspace, kind }, how);
    }
  }

  #markOf(tag: string, workspace: string, kind: string): Mark {
    return this.#marks.get(tag)?.get(nameOf(workspace, kind))?.mark ?? NO_MARK;
  }

  #set({ tag, workspace, kind }: Omit<MarkOf, 'mark'>, change: Partial<Mark>): void {
    const marks = this.#marks.get(tag) ?? new Map<string, MarkOf>();
    if (marks.size === 0) this.#marks.set(tag, marks);
    const name = nameOf(workspace, kind);
    const known = marks.get(name)?.mark ?? NO_MARK;
    const mark = { ...known, ...change };
    this.#awaited += Number(mark.awaited !== null) - Number(known.awaited !== null);
    marks.set(name, { tag, workspace, kind, mark });
  }
}

function nameOf(workspace: string, kind: string): string {
  return `${workspace} ${kind}`;
}

function lastOf({ soft, hard, announced }: Mark): number {
  return Math.max(soft, hard, announced);
}

/** The answer that an announcement foretells to the readers of one of its workspaces. */
function awaitedOf(change: RecordChange, workspace: string, kind: string): Awaited | null {
  if (change.isDeleted || workspace !== change.workspace) return 'absent';
  const etag = change.etags[kind];
  return etag === undefined ? null : { etag };
}

/** Whether a record is the awaited answer. */
function isAnswer(awaited: Awaited, etag: string | null): boolean {
  return awaited !== 'absent' && awaited.etag === etag;
}

/**
 * How long after it was received the copy is asked for again, because the store has announced another answer; null if it has not,
 * or that is over.
 */
function lagOf({ awaited, announced, others }: Mark, { entry, position }: DatedCopy): number | null {
  const { answer } = entry;
  if (awaited === null || position.sequence < announced || answer.kind === 'absent') return null;
  // An item of a list has no validator.
  if (isAnswer(awaited, answer.etag) || (awaited !== 'absent' && answer.etag === null)) return null;
  return RETRY_AFTER_MS[Math.max(0, others - 1)] ?? null;
}
