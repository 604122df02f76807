/**
 * Whether Redis has lost what the gateways record there in order: purges, times and maintenance that operators set, changes of keys.
 * Nothing shows later what was lost, so it is reported for an hour, by each process that knew more than Redis holds: long enough
 * to be seen, and nobody has to end it.
 */
import type { Logger } from '../log/logger.ts';
import type { Clock } from '../time/clock.ts';
import { degraded, type DependencyState, type Health } from './health.ts';
import { Trouble } from './trouble.ts';

const REPORTED_MS = 60 * 60 * 1000;
const LOST =
  'Redis has lost what the gateways keep there: it was emptied, or an old copy was restored. Keys, limits and TTLs are what it holds now; every cached answer counts as purged. Restore its data, or bring the keys back with `evalgate state import`.';

export interface HistoryLossOptions {
  readonly health: Health;
  readonly logger: Logger;
  readonly clock: Clock;
}

export class HistoryLoss {
  readonly #options: HistoryLossOptions;
  readonly #last: Trouble<null>;

  constructor(options: HistoryLossOptions) {
    this.#options = options;
    this.#last = new Trouble(options.clock, REPORTED_MS);
  }

  note(): void {
    this.#last.note(null);
    // It is over at once: what Redis holds counts from then on.
    this.#last.noteOk();
    this.#options.logger.error(LOST);
    this.#options.health.update('history');
  }

  state(): DependencyState {
    const last = this.#last.current();
    if (last === null) return { status: 'ok', detail: 'purges and settings are as they were recorded' };
    const [from, until] = [last.atMs, last.atMs + REPORTED_MS].map((ms) => new Date(ms).toISOString().slice(11, 16));
    return degraded(
      'Redis lost what operators had set, or a part of it',
      `Redis lost purges and settings at ${from}: times and maintenance are what it holds now, and every cached answer counts as purged; look at them (\`evalgate cache ttl\`, \`evalgate cache maintenance\`), or import a backup: \`evalgate state import FILE\`; reported until ${until}`,
      { sinceMs: last.atMs, deadlineMs: last.atMs + REPORTED_MS },
    );
  }
}
