/** The life of a simulated fleet, as its clients and operators saw it: the rules are held against it. */
import { START_MS } from './schedule.ts';

/** A record as the store had it for some time; `workspace` is null while there was none. */
export interface RecordState {
  readonly id: string;
  readonly version: number;
  readonly workspace: string | null;
  readonly fromMs: number;
  /** Infinity for the present one. */
  untilMs: number;
}

/** The record, or the list, that a reader asked for. */
export type Target =
  | { readonly kind: 'evaluation' | 'transcript'; readonly id: string }
  | { readonly kind: 'list'; readonly id: null };

export interface Shown {
  readonly id: string;
  readonly version: number;
}

export type ReadResult =
  | { readonly kind: 'shown'; readonly shown: readonly Shown[]; readonly outcome: string }
  | { readonly kind: 'absent'; readonly outcome: string }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'limited' };

export interface ReadEvent {
  readonly process: string;
  readonly key: string;
  readonly target: Target;
  readonly startedMs: number;
  /** The workspaces that the key was made with. */
  readonly ownWorkspaces: readonly string[];
  /** Those that the answer was made for. */
  workspaces: readonly string[];
  /** The time of the event of the feed that it is read for; null for any other read. */
  readonly eventAtMs: number | null;
  /** When its quota let it in; null if it did not. */
  admittedMs: number | null;
  endedMs: number | null;
  result: ReadResult | null;
}

/** A change that an operator makes by a process: it is in force once it is acknowledged. */
export interface Change {
  readonly process: string;
  readonly what:
    | { readonly kind: 'purge'; readonly tag: string }
    | { readonly kind: 'revoke'; readonly key: string }
    | { readonly kind: 'workspaces'; readonly key: string; readonly lost: string }
    | { readonly kind: 'times'; readonly class: string; readonly freshMs: number }
    | { readonly kind: 'maintenance'; readonly untilMs: number };
  readonly startedMs: number;
  /** Null until it is acknowledged, or if it failed. */
  ackMs: number | null;
}

/** A call to the store, by the reader that caused it. */
export interface StoreCall {
  readonly process: string;
  readonly path: string;
  readonly workspaces: readonly string[];
  readonly startedMs: number;
  endedMs: number | null;
}

/** The store announces that a record has become that version. */
export interface AnnouncedVersion {
  readonly id: string;
  readonly version: number;
  readonly startedMs: number;
  /** Null until it is acknowledged, or if it failed. */
  ackMs: number | null;
}

/** A consumer that follows the feed of changes from its present end on. */
export interface Following {
  /** When it had its first cursor; null before. */
  begunMs: number | null;
  /** When it read last. */
  lastReadMs: number;
  readonly events: { readonly id: string; readonly kind: string; readonly atMs: number }[];
  /** When its cursor had expired; null if it never has. */
  expiredMs: number | null;
}

/** A Redis that was away is noticed to be back within a second, and what was missed is read then. */
export const RECOVERED_MS = 2500;

export interface Span {
  readonly fromMs: number;
  untilMs: number;
}

/** A Redis has lost what was written after the backup. */
export interface Loss {
  readonly host: string;
  readonly backupMs: number;
  readonly atMs: number;
}

export class History {
  readonly states = new Map<string, RecordState[]>();
  readonly reads: ReadEvent[] = [];
  readonly changes: Change[] = [];
  readonly calls: StoreCall[] = [];
  readonly announced: AnnouncedVersion[] = [];
  readonly followings: Following[] = [];
  readonly losses: Loss[] = [];
  /** By process: when it did not run. */
  readonly pauses = new Map<string, Span[]>();
  /** By process: when it was started. */
  readonly starts = new Map<string, number>();
  /** By process: when it was killed. */
  readonly kills = new Map<string, number>();
  /** When a Redis was out of reach or late: for all processes, or for one. */
  readonly troubles: (Span & { readonly process: string | null })[] = [];
  /** When the store failed or was late. */
  readonly storeTroubles: Span[] = [];
  /** The most by which two clocks of the fleet differed. */
  clockSpreadMs = 0;
  readonly #lines: string[] = [];

  /** Adds a line to the trace. */
  note(atMs: number, who: string, what: string): void {
    this.#lines.push(`${(atMs - START_MS).toFixed(1).padStart(9)}  ${who.padEnd(6)} ${what}`);
  }

  /** For a person: one line per event, in milliseconds from the start. */
  trace(): string {
    return this.#lines.join('\n');
  }

  stateOf({ id, version }: Shown): RecordState | undefined {
    return this.states.get(id)?.find((state) => state.version === version);
  }

  current(id: string): RecordState | undefined {
    return this.states.get(id)?.at(-1);
  }

  isPaused(process: string, fromMs: number, untilMs: number): boolean {
    return (this.pauses.get(process) ?? []).some((span) => meets(span, fromMs, untilMs));
  }

  /** Whether any process was paused or killed, or did not reach Redis. */
  hasStopped(fromMs: number, untilMs: number): boolean {
    if (this.troubles.some((span) => meets(span, fromMs, untilMs))) return true;
    const isKilled = [...this.kills.values()].some((atMs) => atMs >= fromMs && atMs <= untilMs);
    return isKilled || [...this.pauses.keys()].some((process) => this.isPaused(process, fromMs, untilMs));
  }

  /** Whether a Redis may not have answered that process in time, or not for long enough since. */
  isTroubled(process: string, fromMs: number, untilMs: number): boolean {
    return this.troubles.some(
      (trouble) =>
        (trouble.process === null || trouble.process === process) &&
        meets({ fromMs: trouble.fromMs, untilMs: trouble.untilMs + RECOVERED_MS }, fromMs, untilMs),
    );
  }
}

export function meets(span: Span, fromMs: number, untilMs: number): boolean {
  return span.fromMs <= untilMs && span.untilMs >= fromMs;
}
