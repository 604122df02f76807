/** Reads replayed through the real read-through cache, in front of a store that only counts. */
import type { CacheHooks } from '../../src/cache/hooks.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { MemoryPurgeLog } from '../../src/cache/purge-log.ts';
import { createReadThrough } from '../../src/cache/read-through.ts';
import { AdjustableTimes, type CacheTimes } from '../../src/cache/times.ts';
import type { EvaluationStore, FetchOptions, StoreAnswer } from '../../src/upstream/store.ts';
import { settle } from './manual-timers.ts';
import type { ManualClock } from './manual-clock.ts';
import type { ReadTrace } from './read-traces.ts';
import { aScoredCard, aTranscript, anEvaluation, dealInsights, WORKSPACE_A } from './records.ts';

/** Questions that are asked by id alone. */
export type ReplayClass = 'evaluation' | 'transcript' | 'scorecard' | 'dealInsights';

export interface Replay {
  readonly trace: ReadTrace;
  readonly class: ReplayClass;
  readonly times: CacheTimes;
  /** Stands at the beginning; moves along. */
  readonly clock: ManualClock;
  readonly hooks?: CacheHooks;
}

/** More than any trace fills. */
const MAX_BYTES = 2 ** 34;
const CONTEXT = { requestId: 'replay', workspaceIds: [WORKSPACE_A] };

/** How many calls to the store the reads have cost. */
export async function replay({ trace, class: cacheClass, times, clock, hooks = {} }: Replay): Promise<number> {
  const store = new Counter();
  const inForce = new AdjustableTimes();
  inForce.set(cacheClass, times);
  const reader = createReadThrough({
    store,
    clock,
    hooks,
    times: inForce,
    memory: new MemoryTier({ maxBytes: MAX_BYTES }),
    purges: new MemoryPurgeLog(),
    timers: { after: () => () => {} },
  });
  const startMs = clock.nowMs();
  for (const [index, atMs] of trace.atMs.entries()) {
    clock.advance(startMs + atMs - clock.nowMs());
    const { outcome } = await reader[cacheClass](`ev_${trace.keys[index]}`, CONTEXT);
    // The refresh goes on behind.
    if (outcome === 'stale-while-revalidate') await settle();
  }
  return store.calls;
}

const EVALUATION = anEvaluation();
const TRANSCRIPT = aTranscript();
const SCORED_CARD = aScoredCard();
const DEAL_INSIGHTS = dealInsights();

/** Has a record of every id, which never changes. */
class Counter implements EvaluationStore {
  calls = 0;

  list(): never {
    throw new Error('lists are not replayed');
  }

  rubric(): never {
    throw new Error('rubrics are not replayed');
  }

  evaluation(id: string, options: FetchOptions) {
    return this.#answer({ ...EVALUATION, _id: id }, options);
  }

  transcript(id: string, options: FetchOptions) {
    return this.#answer({ ...TRANSCRIPT, evaluationId: id }, options);
  }

  scorecard(id: string, options: FetchOptions) {
    return this.#answer({ ...SCORED_CARD, evaluationId: id }, options);
  }

  dealInsights(id: string, options: FetchOptions) {
    return this.#answer({ ...DEAL_INSIGHTS, evaluationId: id }, options);
  }

  async #answer<T>(record: T, { ifNoneMatch }: FetchOptions): Promise<StoreAnswer<T>> {
    this.calls += 1;
    return ifNoneMatch === undefined ? { kind: 'found', record, etag: '"1"', bytes: 100 } : { kind: 'not-modified' };
  }
}
