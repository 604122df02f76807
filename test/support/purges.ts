/** Purges and changes of a process without Redis. */
import { Changes, type ChangesOptions } from '../../src/cache/changes.ts';
import { type HardPurgeListener, PurgeLog } from '../../src/cache/purge-log.ts';
import { MemorySeenCalls } from '../../src/cache/seen-calls.ts';
import { MemoryJournal } from '../../src/journal/memory-journal.ts';
import type { Clock } from '../../src/time/clock.ts';

export function purgesAlone(
  clock: Pick<Clock, 'nowMicros'>,
  onHard: HardPurgeListener = () => undefined,
  journal = new MemoryJournal(),
): PurgeLog {
  return new PurgeLog({ journal, clock, onHard, isAlone: true });
}

export function changesAlone(parts: Pick<ChangesOptions, 'journal' | 'clock' | 'purges' | 'memory'>): Changes {
  return new Changes({ ...parts, seenCalls: new MemorySeenCalls(), onFailed });
}

function onFailed(operation: string, error: unknown): void {
  throw new Error(`${operation} failed`, { cause: error });
}
