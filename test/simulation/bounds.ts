/** By when a rule must hold, and what it excepts: the bounds that docs/rules.md and docs/architecture.md state. */
import { type Change, type History, meets, type ReadEvent, RECOVERED_MS, type Target } from './history.ts';
import { START_MS } from './schedule.ts';
import { TIMES } from './times.ts';
import type { Life } from './world.ts';

/** Something that a rule forbids. */
export interface Violation {
  readonly rule: string;
  readonly atMs: number;
  readonly text: string;
}

/** A process that has lived through a loss notices it by then, once it reaches Redis again. */
const NOTICED_MS = 1500;
/** A process has joined the others by then. */
const STARTED_MS = 1000;

export class Bounds {
  /** Within so long a change is in force at every process. */
  static readonly ELSEWHERE_MS = 1000;
  /** A failure of the store is remembered for a second, by whoever asks then. */
  static readonly REMEMBERED_MS = 2500;
  readonly history: History;

  constructor({ history }: Life) {
    this.history = history;
  }

  static shown(atMs: number): string {
    return (atMs - START_MS).toFixed(1);
  }

  /** Whether a change that was acknowledged is in force by then at that process. Events at one moment have no order. */
  static isInForce({ ackMs, process }: Change, at: string, atMs: number): boolean {
    return ackMs !== null && atMs > ackMs + (process === at ? 0 : Bounds.ELSEWHERE_MS);
  }

  /** How much longer a copy may look young if clocks differ; a copy from the future is usable from when it was first seen. */
  get spreadMs(): number {
    return this.history.clockSpreadMs;
  }

  /** C1, C2: how old a copy may be that is served. */
  oldestMs(kind: Target['kind']): number {
    const { freshMs, staleMs, errorMs } = TIMES[kind];
    const set = this.history.changes.flatMap(({ what }) =>
      what.kind === 'times' && kind === 'evaluation' ? what.freshMs : 0,
    );
    const beyondMs = Math.max(staleMs, errorMs);
    const unknownMs = this.spreadMs > 2000 ? beyondMs : 0;
    return Math.max(freshMs, ...set) + beyondMs + this.spreadMs + unknownMs;
  }

  /** Whether the store has answered each call, also those whose failure may be remembered then. */
  isStoreWell(fromMs: number, untilMs: number): boolean {
    return !this.history.storeTroubles.some((span) => meets(span, fromMs - Bounds.REMEMBERED_MS, untilMs));
  }

  /** Whether Redis has answered that process all the time, and since long enough before. */
  isWell(process: string, fromMs: number, untilMs: number): boolean {
    const isHeldUp = this.history.isPaused(process, fromMs, untilMs);
    return !isHeldUp && !this.history.isTroubled(process, fromMs, untilMs);
  }

  isWellFor({ process, startedMs, endedMs }: ReadEvent): boolean {
    return this.isWell(process, startedMs, endedMs ?? Infinity);
  }

  /** The same, and the process runs, and has done so for long enough. */
  isSteady(process: string, fromMs: number, untilMs: number): boolean {
    const startedMs = this.history.starts.get(process) ?? 0;
    const killedMs = this.history.kills.get(process) ?? Infinity;
    const isPaused = this.history.isPaused(process, fromMs - RECOVERED_MS, untilMs);
    return this.isWell(process, fromMs, untilMs) && !isPaused && fromMs >= startedMs + STARTED_MS && untilMs < killedMs;
  }

  /** Whether a Redis has lost something that was written after that time. */
  isLost(sinceMs: number): boolean {
    return this.history.losses.some(({ atMs }) => atMs >= sinceMs);
  }

  /**
   * Whether that process must know a change by its time. A change that Redis has lost is known to those who have lived through
   * it, and becomes a new history, in which everything from before counts as purged, once one of them looks.
   */
  isKnown(change: Change, read: ReadEvent): boolean {
    const { losses, kills, troubles } = this.history;
    if (!this.isWellFor(read)) return false;
    return losses.every(({ atMs, backupMs }) => {
      const ackMs = change.ackMs ?? Infinity;
      if (backupMs >= ackMs || atMs > read.startedMs) return true;
      if (read.startedMs < atMs + NOTICED_MS || atMs < ackMs) return false;
      const isThere = (kills.get(change.process) ?? Infinity) > read.startedMs;
      const isCut = troubles.some((span) => span.process === change.process && meets(span, atMs, read.startedMs));
      return isThere && !isCut && !this.history.isPaused(change.process, atMs, read.startedMs);
    });
  }
}
