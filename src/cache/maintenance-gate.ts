/** Keeps everything from the store while it is under maintenance. Nothing in front of it has to know. */
import type { Clock } from '../clock.ts';
import type { ApiKeySource } from '../upstream/http-store.ts';
import type { EvaluationStore } from '../upstream/store.ts';
import { type MaintenanceWatch, pausedError } from './maintenance.ts';

/** Runs a call, unless it must not be sent: then it rejects at once with a StoreError of kind `paused`. */
export type Gate = <T>(call: () => Promise<T>) => Promise<T>;

export function maintenanceGate(maintenance: MaintenanceWatch, clock: Clock): Gate {
  return async (call) => {
    const current = maintenance.current();
    if (current !== null) throw pausedError(current, clock);
    return await call();
  };
}

/** The store behind the gate. It goes innermost, so that nothing that waits further out for its turn slips through. */
export function gatedStore(store: EvaluationStore & ApiKeySource, gate: Gate): EvaluationStore & ApiKeySource {
  return {
    list: (query, options) => gate(() => store.list(query, options)),
    evaluation: (id, options) => gate(() => store.evaluation(id, options)),
    transcript: (id, options) => gate(() => store.transcript(id, options)),
    scorecard: (id, options) => gate(() => store.scorecard(id, options)),
    dealInsights: (id, options) => gate(() => store.dealInsights(id, options)),
    rubric: (id, options) => gate(() => store.rubric(id, options)),
    apiKey: (hash, options) => gate(() => store.apiKey(hash, options)),
  };
}
