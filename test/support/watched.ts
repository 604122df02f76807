/** A what-if model with a clock and times of its own, for tests to feed. */
import { hash32 } from '../../src/cache/hash.ts';
import { TtlPolicy, CACHE_CLASSES, type CacheClass } from '../../src/cache/ttl-policy.ts';
import { adviceOf, type ClassAdvice } from '../../src/cache/what-if/advice.ts';
import { WhatIfModel } from '../../src/cache/what-if/model.ts';
import type { PointSnapshot, WhatIfSnapshot } from '../../src/cache/what-if/snapshot.ts';
import { ManualClock } from './manual-clock.ts';
import type { ReadTrace } from './read-traces.ts';

export const OUTDATED_LIMITS = {
  list: 0.02,
  evaluation: 0.02,
  transcript: 0.02,
  scorecard: 0.02,
  rubric: 0.02,
  dealInsights: 0.02,
  notFound: 0.02,
};

export class Watched {
  readonly clock = new ManualClock();
  readonly times = new TtlPolicy(this.clock);
  readonly model = new WhatIfModel({ clock: this.clock, times: this.times });
  readonly startMs = this.clock.nowMs();

  /** Moves the clock to that long after the beginning, and reads. */
  readAt(afterMs: number, key: string, cacheClass: CacheClass = 'evaluation'): void {
    this.clock.advance(this.startMs + afterMs - this.clock.nowMs());
    this.model.read(cacheClass, hash32(key), this.clock.nowMs());
  }

  feed({ keys, atMs }: ReadTrace, cacheClass: CacheClass = 'evaluation'): void {
    for (const [index, afterMs] of atMs.entries()) this.readAt(afterMs, `ev_${keys[index]}`, cacheClass);
  }

  point(freshMs: number, cacheClass: CacheClass = 'evaluation'): PointSnapshot {
    const found = this.model
      .snapshot()
      .classes.find((each) => each.class === cacheClass)
      ?.points.find((each) => each.freshMs === freshMs);
    if (found === undefined) throw new Error(`there is no point of ${freshMs} ms`);
    return found;
  }

  advice(cacheClass: CacheClass = 'evaluation'): ClassAdvice {
    return adviceFor([this.model.snapshot()], this, cacheClass);
  }
}

export function adviceFor(
  snapshots: readonly WhatIfSnapshot[],
  { times, clock }: Pick<Watched, 'times' | 'clock'>,
  cacheClass: CacheClass = 'evaluation',
): ClassAdvice {
  const all = adviceOf(snapshots, { times, outdatedLimits: OUTDATED_LIMITS, nowMs: clock.nowMs() });
  const found = all[CACHE_CLASSES.indexOf(cacheClass)];
  if (found === undefined) throw new Error(`there is no advice on ${cacheClass}`);
  return found;
}

/** The calls to the store that a cache with that time would make, every key followed; freshness is jittered. */
export function callsOf({ keys, atMs }: ReadTrace, freshMs: number): number {
  const fills = new Map<number, number>();
  let calls = 0;
  for (const [index, nowMs] of atMs.entries()) {
    const key = keys[index] ?? 0;
    const filledAtMs = fills.get(key);
    if (filledAtMs !== undefined && isFresh(nowMs - filledAtMs, freshMs, [key, filledAtMs])) continue;
    fills.set(key, nowMs);
    calls += 1;
  }
  return calls;
}

function isFresh(ageMs: number, freshMs: number, [key, filledAtMs]: readonly [number, number]): boolean {
  if (ageMs < freshMs * 0.9) return true;
  return ageMs < freshMs && ageMs < freshMs * (1 - (0.1 * hash32(`${key}@${filledAtMs}`)) / 2 ** 32);
}
