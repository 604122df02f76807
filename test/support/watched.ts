/** The what-if of one process with a clock and TTLs of its own, for tests to feed. */
import type { ReadReport } from '../../src/cache/events.ts';
import { hash32 } from '../../src/cache/request.ts';
import { TtlPolicy, CACHE_CLASSES, type CacheClass } from '../../src/cache/ttl-policy.ts';
import { adviceOf, type ClassAdvice } from '../../src/operations/advice.ts';
import type { WhatIfReport } from '../../src/cache/what-if/tally.ts';
import { WhatIf } from '../../src/cache/what-if/what-if.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ManualClock } from './manual-clock.ts';
import type { ReadTrace } from './read-traces.ts';

export const outdatedLimitOf = (): number => 0.02;

export class Watched {
  readonly clock: ManualClock;
  readonly ttl: TtlPolicy;
  readonly whatIf: WhatIf;
  readonly startMs: number;

  constructor(clock = new ManualClock(), ttl?: TtlPolicy) {
    this.clock = clock;
    this.ttl = ttl ?? new TtlPolicy(clock, loadConfig({ env: {} }).config.cache.classes);
    this.whatIf = new WhatIf({ clock, ttl: this.ttl });
    this.startMs = clock.nowMs();
  }

  read(key: string, cacheClass: CacheClass = 'evaluation'): void {
    this.whatIf.hooks.onRead?.(readOf(key, cacheClass));
  }

  /** Moves the clock to that long after the beginning, and reads. */
  readAt(afterMs: number, key: string, cacheClass: CacheClass = 'evaluation'): void {
    this.clock.advance(this.startMs + afterMs - this.clock.nowMs());
    this.read(key, cacheClass);
  }

  feed({ keys, atMs }: ReadTrace, cacheClass: CacheClass = 'evaluation'): void {
    for (const [index, afterMs] of atMs.entries()) this.readAt(afterMs, `ev_${keys[index]}`, cacheClass);
  }

  /** A read of a list that holds these evaluations. */
  readList(key: string, items: readonly string[]): void {
    this.whatIf.hooks.onRead?.({ ...readOf(key, 'list'), items: items.map(hash32) });
  }

  refreshed(cacheClass: CacheClass, changed: boolean, sinceMs: number, key = 'any'): void {
    this.whatIf.hooks.onRefresh?.({
      class: cacheClass,
      copyHash: hash32(key),
      changed: changed ? 1 : 0,
      sinceMs,
      createdAtMs: null,
      isAnnounced: false,
    });
  }

  /** The counts of one TTL's simulation. */
  point(freshMs: number, cacheClass: CacheClass = 'evaluation') {
    const counts = this.whatIf.report().classes.find((each) => each.class === cacheClass)?.counts;
    const point = counts?.points.find((each) => each.freshMs === freshMs);
    if (counts === undefined || counts === null || point === undefined)
      throw new Error(`there is no point of ${freshMs} ms`);
    const { startedMs, sinceMs, exactReads, otherReads, sampledWeight, repeatReads } = counts;
    const [exactCalls, sampledCalls, repeatCalls] = point.calls;
    const share = repeatReads === 0 ? 1 : repeatCalls / repeatReads;
    const calls = exactCalls + sampledCalls + share * (otherReads - sampledWeight);
    return { reads: exactReads + otherReads, calls, startedMs, sinceMs, ages: point.ages };
  }

  advice(cacheClass: CacheClass = 'evaluation'): ClassAdvice {
    return adviceFor([this.whatIf.report()], this, cacheClass);
  }
}

export function adviceFor(
  reports: readonly WhatIfReport[],
  { ttl, clock }: Pick<Watched, 'ttl' | 'clock'>,
  cacheClass: CacheClass = 'evaluation',
): ClassAdvice {
  const { classes } = adviceOf(reports, { ttl, outdatedLimitOf, nowMs: clock.nowMs() });
  const found = classes[CACHE_CLASSES.indexOf(cacheClass)];
  if (found === undefined) throw new Error(`there is no advice on ${cacheClass}`);
  return found;
}

export function readOf(key: string, cacheClass: CacheClass): ReadReport {
  const answer = { outcome: 'hit', tier: 'memory', missReason: null, failure: null, ageMs: 0, durationMs: 0 } as const;
  const keyHash = hash32(key);
  return { class: cacheClass, key, keyHash, copyHash: keyHash, items: [], ...answer };
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
