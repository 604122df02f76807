/** The reader of a gateway without a cache: every read is a call to the store. */
import type { Clock } from '../clock.ts';
import type { EvaluationStore } from '../upstream/store.ts';
import { fetchEntry } from './fetch-entry.ts';
import { asStoreError } from './flight-failure.ts';
import { MemoryPurgeLog } from './purge-log.ts';
import { type Question, readerOf } from './question.ts';
import type { EvaluationReader, ReadContext } from './reader.ts';
import type { StoredEntry } from './stored.ts';
import { absence, foreignWorkspaceOfFailure, isVisible } from './visibility.ts';

export function createPassThrough(store: EvaluationStore, clock: Clock): EvaluationReader {
  const dependencies = { store, clock, purges: new MemoryPurgeLog() };
  const fetch = async <T>(question: Question<T>, context: ReadContext): Promise<StoredEntry<T>> => {
    const [filledAtMs, position] = [clock.nowMs(), dependencies.purges.position()];
    const none = (): StoredEntry<T> => absence(question, { filledAtMs, position, fetchedAtMs: clock.nowMs() });
    try {
      const task = { question, context, held: null, isWanted: context.isWaiting ?? always, isBackground: false };
      const { stored } = await fetchEntry(task, dependencies);
      return isVisible(question, stored, context.workspaceIds) ? stored : none();
    } catch (error) {
      if (foreignWorkspaceOfFailure(error, context.workspaceIds) !== null) return none();
      throw asStoreError(error);
    }
  };
  return readerOf(async (question, context) => {
    const { entry } = await fetch(question, context);
    const ageMs = clock.nowMs() - entry.filledAtMs;
    return { entry, outcome: 'miss', tier: null, ttlMs: 0, ageMs, stored: false };
  });
}

function always(): boolean {
  return true;
}
