/**
 * The background work after hard purges, in one process of all: the bytes of the copies that they have ended are deleted from the
 * cache Redis, and purges of evaluations leave the log (C6: known keys are deleted, so that the log stays short).
 *
 * A process that ends in between is followed by another, which begins its pass anew; two at once do the same twice.
 */
import type { Clock } from '../../time/clock.ts';
import type { Timers } from '../../time/timers.ts';
import { type PurgeLog, type PurgeTable, SequenceMarks, type Tagged } from '../purge-log.ts';
import { isBefore, keyOf, type MarkOf, originOf } from '../change-table.ts';
import { keysOfEvaluation } from '../request.ts';
import { noteForgotten, type SeenCalls } from '../seen-calls.ts';
import type { RedisCopies } from './redis-copies.ts';

export interface PurgeSweepOptions {
  readonly purges: PurgeLog;
  readonly copies: Pick<RedisCopies, 'measure' | 'noteSweep' | 'delete' | 'mark' | 'countNames' | 'isUp' | 'addEnding'>;
  readonly seenCalls: Pick<SeenCalls, 'noteAnnounced'>;
  /** Whether this process is the one. */
  readonly isElected: () => boolean;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onFailed: (error: unknown) => void;
}

const EVERY_MS = 5000;
/** How often purges are dropped that no copy is old enough for. */
const DROP_EVERY_MS = 3_600_000;
/** Keys deleted at a time. */
const BATCH = 200;
/** A pass works for a fifth of the time, and so gives way to a Redis that is busy and answers late. */
const PAUSE_FACTOR = 4;
const MAX_PAUSE_MS = 1000;
/** How often the progress of a pass is noted. */
const NOTE_EVERY_MS = 500;

export class PurgeSweep {
  readonly #options: PurgeSweepOptions;
  readonly #marks: SequenceMarks;
  /** The last purge, and the last one whose keys are not known, as of the last tick: their own requests may be deleting still. */
  #due = { last: 0, broad: 0 };
  #droppedAtMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #cancelNext: () => void = () => undefined;

  constructor(options: PurgeSweepOptions) {
    this.#options = options;
    this.#marks = new SequenceMarks(options.clock);
    this.#later();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext();
  }

  #later(): void {
    if (!this.#isClosed) this.#cancelNext = this.#options.timers.after(EVERY_MS, () => void this.#tick());
  }

  async #tick(): Promise<void> {
    const { purges, copies, isElected, onFailed } = this.#options;
    // In every process: the next one knows how old each purge is.
    const oldEnough = this.#marks.note(purges.position);
    if (purges.isKnown && copies.isUp() && isElected()) {
      try {
        await this.#purgeSoftOnes();
        await this.#forget(oldEnough);
        await this.#sweep();
      } catch (error) {
        // The rest is tried again at the next tick.
        onFailed(error);
      }
    }
    this.#later();
  }

  async #purgeSoftOnes(): Promise<void> {
    const { purges } = this.#options;
    const tags = purges.table.tooManySoft();
    if (tags.length > 0) await purges.purge(tags, 'hard');
  }

  /**
   * Deletes, once more, the copies of evaluations that were purged so long ago that no process writes an older copy any more.
   * A copy that was fetched since stays.
   */
  async #forget(upTo: number): Promise<void> {
    const { purges, copies, clock } = this.#options;
    const nowMs = clock.nowMs();
    const evaluations = purges.table.evaluationsUpTo(upTo);
    const marks = purges.changeTable.upTo(upTo);
    const isToDrop = purges.last > 0 && upTo > 0 && nowMs - this.#droppedAtMs >= DROP_EVERY_MS;
    if (evaluations.length === 0 && marks.length === 0 && !isToDrop) return;
    const { history } = purges.position;
    await this.#delete(evaluations, history);
    for (let i = 0; i < marks.length; i += BATCH) {
      await Promise.all(marks.slice(i, i + BATCH).map((one) => this.#mark(one)));
    }
    if (isToDrop) this.#droppedAtMs = nowMs;
    // A deleted copy must not come back unnoticed once nobody remembers the purge.
    const endings = await copies.addEnding();
    if (purges.position.history === history) await purges.forget(upTo, endings);
  }

  /** Deletes the copies of evaluations that are from before their purge. */
  async #delete(evaluations: ReturnType<PurgeTable['evaluationsUpTo']>, history: string): Promise<void> {
    const { copies } = this.#options;
    for (let i = 0; i < evaluations.length; i += BATCH) {
      const deleting = evaluations.slice(i, i + BATCH).map(([id, purged]) => {
        const isOld = ({ position }: Tagged): boolean => position.history !== history || position.sequence < purged;
        return copies.delete(keysOfEvaluation(id), isOld);
      });
      await Promise.all(deleting);
    }
  }

  /** The copy from before a change bears its mark from now on, and what was last seen of a call the announced one. */
  async #mark(one: MarkOf): Promise<void> {
    const { copies, seenCalls } = this.#options;
    const key = keyOf(one);
    if (key === null) return;
    const address = { key, owner: one.workspace };
    await copies.mark(address, originOf(one.mark), (copy) => isBefore(one, copy));
    await noteForgotten(one, seenCalls);
  }

  /** Deletes what the requests of purges have not: they end, time out, or Redis does not answer them. */
  async #sweep(): Promise<void> {
    const { purges } = this.#options;
    const { last, lastBroad: broad } = purges;
    const due = this.#due;
    this.#due = { last, broad };
    // After a loss of the history, the last purge may have a lower number.
    if (broad <= purges.sweptUpTo) await this.#deleteNamed(Math.min(due.last, last));
    else if (broad === due.broad) await this.#pass();
  }

  /** For purges up to that one, all of whose keys are known. An evaluation that was purged once more since is among them. */
  async #deleteNamed(upTo: number): Promise<void> {
    const { purges } = this.#options;
    const evaluations = purges.table.evaluationsUpTo(purges.last).filter(([, purged]) => purged > purges.sweptUpTo);
    if (!evaluations.some(([, purged]) => purged <= upTo)) return;
    const { history } = purges.position;
    await this.#delete(evaluations, history);
    if (purges.position.history === history) await purges.noteSwept(upTo);
  }

  /** One pass over the cache Redis for all purges so far. */
  async #pass(): Promise<void> {
    const { copies, timers } = this.#options;
    const of = await copies.countNames();
    let [batchAtMs, notedAtMs] = [performance.now(), Number.NEGATIVE_INFINITY];
    const onBatch = async (passed: number): Promise<void> => {
      if (this.#isClosed) throw new Error('the process ends');
      if (performance.now() - notedAtMs >= NOTE_EVERY_MS) {
        notedAtMs = performance.now();
        copies.noteSweep({ passed: Math.min(passed, of), of }).catch(() => undefined);
      }
      const pauseMs = Math.min(MAX_PAUSE_MS, PAUSE_FACTOR * (performance.now() - batchAtMs));
      await new Promise<void>((resolve) => void timers.after(pauseMs, resolve));
      batchAtMs = performance.now();
    };
    await copies.measure(() => false, { isDeleting: true, onBatch });
  }
}
