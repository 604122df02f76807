/** The reader of a gateway without a cache: every read is a call to the store. */
import type { Clock } from '../clock.ts';
import type { EvaluationStore } from '../upstream/store.ts';
import { fetchEntry } from './fetch-entry.ts';
import { asStoreError } from './flight-failure.ts';
import { MemoryPurgeLog } from './purge-log.ts';
import { readerOf } from './question.ts';
import type { EvaluationReader } from './reader.ts';

export function createPassThrough(store: EvaluationStore, clock: Clock): EvaluationReader {
  const dependencies = { store, clock, purges: new MemoryPurgeLog() };
  return readerOf(async (question, context) => {
    const task = { question, context, held: null };
    const { stored } = await fetchEntry(task, new AbortController().signal, dependencies).catch((error: unknown) => {
      throw asStoreError(error);
    });
    const ageMs = clock.nowMs() - stored.entry.filledAtMs;
    return { entry: stored.entry, outcome: 'miss', tier: null, ttlMs: 0, ageMs, stored: false };
  });
}
