/** Changes of records in the store: each is an event of the journal, by which every process renews what is from before it. */
import type { Changed, EventOf, Journal, RecordChange } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';

/** What the store says of a change. */
export type AnnouncedChange = Omit<RecordChange, 'shown'>;

export interface ChangesOptions {
  readonly journal: Pick<Journal, 'append'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export class Changes {
  readonly #options: ChangesOptions;

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  /**
   * Makes the event of announced changes, and resolves with what `append` makes of it: it appends the event to the journal, and
   * perhaps more in the same step. Rejects as that does.
   */
  async announce<T>(
    mode: Changed['mode'],
    changes: readonly AnnouncedChange[],
    append: (event: EventOf<'changes'>) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#options;
    const announced = changes.map((change) => ({ ...change, shown: null }));
    return append({ kind: 'changes', mode, isAnnounced: true, atMs: clock.nowMs(), changes: announced });
  }
}
