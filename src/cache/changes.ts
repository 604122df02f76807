/** Changes of records in the store: each is an event of the journal, by which every process renews what is from before it. */
import type { Changed, Journal, RecordChange } from '../journal/journal.ts';
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

  /** Resolves once the changes are in the journal and in force here. Rejects as `Journal.append` does. */
  async announce(mode: Changed['mode'], changes: readonly AnnouncedChange[]): Promise<void> {
    const { journal, clock } = this.#options;
    const announced = changes.map((change) => ({ ...change, shown: null }));
    await journal.append({ kind: 'changes', mode, isAnnounced: true, atMs: clock.nowMs(), changes: announced });
  }
}
