/** What the what-if models say of a time that may be none of their candidates. Pure. */
import type { CacheClass } from '../times.ts';
import { pointInForce } from '../what-if/in-force.ts';
import { mergeClass } from '../what-if/merge.ts';
import type { WhatIfSnapshot } from '../what-if/snapshot.ts';
import type { Predicted } from './trial.ts';

/** Fewer tell nothing. */
const LEAST_READS = 1000;

/** Each snapshot is another process's. Null until they have seen enough reads, for as long as the time lasts. */
export function predictedAt(
  snapshots: readonly WhatIfSnapshot[],
  cacheClass: CacheClass,
  freshMs: number,
): Predicted | null {
  const { reads, points } = mergeClass(snapshots, cacheClass);
  const point = reads < LEAST_READS ? null : pointInForce(points, freshMs);
  if (point === null || point.watchedMs < freshMs) return null;
  const { hitRatio } = point;
  return { hitRatio, storeCallsPerRead: 1 - hitRatio };
}
