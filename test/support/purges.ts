/** The purges of a process without Redis. */
import { type HardPurgeListener, PurgeLog } from '../../src/cache/purge-log.ts';
import { MemoryJournal } from '../../src/journal/memory-journal.ts';
import type { Clock } from '../../src/time/clock.ts';

export function purgesAlone(clock: Pick<Clock, 'nowMicros'>, onHard: HardPurgeListener = () => undefined): PurgeLog {
  return new PurgeLog({ journal: new MemoryJournal(), clock, onHard, isAlone: true });
}
