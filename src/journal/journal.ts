/**
 * Everything that all processes must know, in one order: purges, records that have moved or changed, times, maintenance,
 * changes of keys. A process that knows its position gets every event after it, in order, once.
 *
 * The journal is the news; the truth is beside it. With Redis the script that appends an event also writes what it leaves:
 * the last purges of each tag, the times, the maintenance, the key records. So a newcomer needs no history, and old events
 * may be cut off. Without Redis there is one process, which has all of it (memory-journal.ts).
 */

/** A position in the journal. Those of different histories can't be compared. */
export interface Position {
  /** A random word. Another one whenever Redis has lost events. */
  readonly history: string;
  /** The number of the last event; numbers only grow. */
  readonly sequence: number;
}

/**
 * The end of copies from before a purge or a change. `hard`: they are never served again. `soft`: purged ones are
 * served while one refresh runs, changed ones only if they cannot be renewed.
 */
export type PurgeMode = 'soft' | 'hard';

export interface EventsByKind {
  /** Tags are purged. */
  readonly purge: { readonly tags: readonly string[]; readonly mode: PurgeMode } & From03;
  readonly moved: Moved & Counted;
  /** All times of a class that operators have set are these now. */
  readonly times: { readonly class: string; readonly overrides: readonly TimeOverride[] };
  readonly maintenance: { readonly maintenance: Maintenance | null };
  /** The records of these keys have changed; null for more than an event can name. */
  readonly keys: { readonly hashes: readonly string[] | null } & From03;
  /** Records have changed in the store. One event per announcement, or per answer that has shown changes. */
  readonly changes: Changed;
  /**
   * Hard purges of evaluations, and changes, up to that event are forgotten: no copy from before is left anywhere, or it bears
   * the mark of the change.
   */
  readonly forgotten: { readonly upTo: number } & Counted;
  /** The cache Redis has gone back to an older state: copies there that were fetched before this event count as purged. */
  readonly restored: object;
  /** The bytes of the copies that were purged up to that event are deleted. */
  readonly swept: { readonly upTo: number };
}

/** The store has disowned a record for these workspaces: it has moved, or is gone. */
export interface Moved {
  readonly key: string;
  readonly workspaces: readonly string[];
  /** When the fetch began that has shown it, Unix milliseconds. Copies there from earlier fetches end; newer ones stay. */
  readonly requestedAtMs: number;
}

export interface Changed {
  readonly mode: PurgeMode;
  /** Whether the store has announced it; else an answer of the store has shown it. */
  readonly isAnnounced: boolean;
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly changes: readonly RecordChange[];
  /** The workspaces whose lists may show it. */
  readonly lists: readonly string[];
}

/** A record of one workspace has changed, or some of its parts have. */
export interface RecordChange {
  /** `evaluation:ID` or `scorecard:ID`. */
  readonly tag: string;
  /** In lower case. */
  readonly workspace: string;
  /** The kinds of resources that have changed: of an evaluation itself or parts, of a scorecard `rubric`. */
  readonly kinds: readonly string[];
  /** So said by the store, or nothing that is known here has ever shown the id in that workspace. */
  readonly isCreated: boolean;
  readonly isDeleted: boolean;
  /** The workspace that it has left; null if it has left none. */
  readonly previousWorkspace: string | null;
  /** By kind: the validators that the store has now, as far as it has named them. */
  readonly etags: Readonly<Record<string, string>>;
  /** The sighting in the answer; null for a change that was announced. */
  readonly shown: { readonly digest: string; readonly requestedAtMs: number } | null;
}

/** How often something was ended in the cache Redis by then, if that is not the state Redis (cache/redis/rollback-guard.ts). */
interface Counted {
  readonly endings?: readonly number[] | undefined;
}

/** The position in 0.3's log of an event that was taken over from there (bridge-0.3.ts). */
interface From03 {
  readonly from03?: string | undefined;
}

export interface TimeOverride {
  readonly name: string;
  readonly ms: number;
  /** Unix milliseconds; null for no end. */
  readonly untilMs: number | null;
}

/** Operators keep every call from the store. */
export interface Maintenance {
  /** Unix milliseconds. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Who began it, or moved its end last. */
  readonly by: string;
}

export type EventKind = keyof EventsByKind;
export type EventOf<K extends EventKind> = { readonly kind: K } & EventsByKind[K];
export type JournalEvent = { [K in EventKind]: EventOf<K> }[EventKind];

/** The last purges of a tag, by the numbers of their events; 0 for none. */
export interface LastPurge {
  readonly soft: number;
  readonly hard: number;
}

/** All that the events up to a position have left. */
export interface Snapshot {
  /**
   * Why the process could not go on from its own position:
   * - `joined`: it had none yet
   * - `trimmed`: the events that follow it are cut off
   * - `lost`: Redis has lost events, so a new history has begun
   */
  readonly because: 'joined' | 'trimmed' | 'lost';
  readonly position: Position;
  readonly purges: ReadonlyMap<string, LastPurge>;
  /** Changes that are not forgotten, in their order. */
  readonly changes: readonly { readonly sequence: number; readonly event: Changed }[];
  /** By workspace: the sequences of the last changes of what its lists show. */
  readonly lists: ReadonlyMap<string, LastPurge>;
  readonly forgotten: number;
  /** The number of the last event `restored`; 0 for none. */
  readonly restored: number;
  /** How often something was ended in the cache Redis. */
  readonly endings: readonly number[];
  readonly sweptUpTo: number;
  /** By class. A class without overrides may be left out. */
  readonly times: ReadonlyMap<string, readonly TimeOverride[]>;
  readonly maintenance: Maintenance | null;
}

/** Applied synchronously, in order, once in every process. */
export type Apply<K extends EventKind> = (event: EventOf<K>, position: Position) => void;

/** How long a proof that nothing was missed is trusted, of the journal and of what the cache Redis has kept. */
export const PROOF_HOLDS_MS = 900;

export interface Journal {
  /** The position of the last event that was applied here. */
  readonly position: Position;
  /** Whether it was ever read. Before that nothing that is shared can be judged. */
  readonly isJoined: boolean;
  /**
   * Whether it is proven that nothing was missed for the last `PROOF_HOLDS_MS`. Asked before each use of a copy, so a process
   * that was held up finds out that it was.
   */
  isProven(): boolean;
  /**
   * To be awaited before copies in memory are used (C8: while Redis answers, memory is used only with proof): looks at Redis
   * first if there is no proof. Null if they may be used at once: there is proof, or Redis does not answer, so nothing changes
   * there either. Never rejects.
   */
  prove(): Promise<void> | null;
  /**
   * Appends an event. Resolves with true once it is in the journal and applied here. `times` and `maintenance` replace what
   * this process knows: if that has changed meanwhile nothing is appended, and it resolves with false once the change is applied
   * here. Works on a full Redis (C6b: purge and revocation work there). Rejects with NotSentError if it was certainly not
   * appended; after any other rejection it may have been.
   */
  append(event: JournalEvent): Promise<boolean>;
  /** Returns a function that ends it. */
  on<K extends EventKind>(kind: K, apply: Apply<K>): () => void;
  /** Called with what replaces all that was applied before. Copies in memory from before can't be judged any more. */
  onSnapshot(listener: (snapshot: Snapshot) => void): () => void;
  /** Once it resolves, all is applied here that was appended before the call. Rejects if Redis does not answer. */
  catchUp(): Promise<void>;
}
