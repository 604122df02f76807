/**
 * What follows hard purges in the background, in one process of all: the bytes of what they have ended are deleted from the
 * cache Redis, and purges of evaluations leave the log (C6: known keys are deleted, so that the log stays short).
 *
 * A process that ends in between is followed by another, which begins its pass anew; two at once do the same twice.
 */
import type { Clock } from '../../time/clock.ts';
import type { Timers } from '../../time/timers.ts';
import { SequenceMarks } from '../purge-log.ts';
import { keysOfEvaluation } from '../request.ts';
import type { RedisSharedCache } from './redis-shared-cache.ts';
import type { SharedPurgeLog } from './state-sync.ts';

export interface PurgeSweepOptions {
  readonly purges: SharedPurgeLog;
  readonly sharedCache: Pick<RedisSharedCache, 'measure' | 'delete' | 'countNames' | 'isUp'>;
  /** Whether this process is the one. */
  readonly isElected: () => boolean;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onFailed: (error: unknown) => void;
}

const EVERY_MS = 5000;
/** How often what was kept for too long is looked for. */
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
  /** The purge whose bytes are to be deleted, as of the last tick: its own request may be doing that still. */
  #due = 0;
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
    const { purges, sharedCache, isElected, onFailed } = this.#options;
    // In every process: the next one knows how old each purge is.
    const oldEnough = this.#marks.note(purges.epoch());
    if (purges.isKnown && sharedCache.isUp() && isElected()) {
      try {
        await this.#purgeSoftOnes();
        await this.#forget(oldEnough);
        await this.#sweep();
      } catch (error) {
        // What is left is tried again at the next tick.
        onFailed(error);
      }
    }
    this.#later();
  }

  async #purgeSoftOnes(): Promise<void> {
    const tags = this.#options.purges.tooManySoft();
    if (tags.length > 0) await this.#options.purges.purge(tags, 'hard');
  }

  /**
   * Deletes, once more, the copies of evaluations that were purged so long ago that no process writes an older copy any more.
   * A copy that was fetched since stays.
   */
  async #forget(upTo: number): Promise<void> {
    const { purges, sharedCache, clock } = this.#options;
    if (upTo <= purges.forgotten) return;
    const { history } = purges.epoch();
    const evaluations = purges.evaluationsUpTo(upTo);
    for (let i = 0; i < evaluations.length; i += BATCH) {
      await Promise.all(
        evaluations
          .slice(i, i + BATCH)
          .map(([id, sequence]) =>
            sharedCache.delete(
              keysOfEvaluation(id),
              ({ epoch }) => epoch.history !== history || epoch.sequence < sequence,
            ),
          ),
      );
    }
    const nowMs = clock.nowMs();
    const isToDrop = nowMs - this.#droppedAtMs >= DROP_EVERY_MS;
    if (isToDrop) this.#droppedAtMs = nowMs;
    if (purges.epoch().history === history) await purges.leave({ upTo, nowMs, isToDrop });
  }

  /** One pass over the cache Redis for all purges so far whose keys are not known. */
  async #sweep(): Promise<void> {
    const { purges, sharedCache, timers } = this.#options;
    const isDue = purges.lastBroad > purges.swept.sequence && purges.lastBroad === this.#due;
    this.#due = purges.lastBroad;
    if (!isDue) return;
    const of = await sharedCache.countNames();
    let [batchAtMs, notedAtMs] = [performance.now(), Number.NEGATIVE_INFINITY];
    const onBatch = async (passed: number): Promise<void> => {
      if (this.#isClosed) throw new Error('the process ends');
      if (performance.now() - notedAtMs >= NOTE_EVERY_MS) {
        notedAtMs = performance.now();
        await purges.noteSwept({ sequence: 0, entries: Math.min(passed, of), of });
      }
      const pauseMs = Math.min(MAX_PAUSE_MS, PAUSE_FACTOR * (performance.now() - batchAtMs));
      await new Promise<void>((resolve) => void timers.after(pauseMs, resolve));
      batchAtMs = performance.now();
    };
    await sharedCache.measure(() => false, { isDeleting: true, onBatch });
  }
}
