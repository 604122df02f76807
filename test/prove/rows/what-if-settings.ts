/** The traces that the what-if model is judged by. */
import { hash32 } from '../../../src/cache/hash.ts';
import { singleKey } from '../../../src/cache/cache-key.ts';
import type { CacheTimes } from '../../../src/cache/times.ts';
import type { ReplayClass } from '../../support/cache-replay.ts';
import type { ManualClock } from '../../support/manual-clock.ts';
import { burstyTrace, type ReadTrace, zipfTrace } from '../../support/read-traces.ts';
import type { Scale } from '../row.ts';

export interface Setting {
  readonly name: string;
  readonly class: ReplayClass;
  readonly trace: ReadTrace;
  /** In force while the model watches; none of those that it tries out by itself. */
  readonly freshMs: number;
}

/** Hours enough for a day's freshness to end; short, only with fewer reads. */
export function settingsOf(scale: Scale): readonly Setting[] {
  const reads = (whole: number) => (scale === 'whole' ? whole : whole / 8);
  const flat = zipfTrace({ seed: 1, reads: reads(180_000), hours: 26, keys: 120_000, exponent: 0.8 });
  const middle = zipfTrace({ seed: 2, reads: reads(200_000), hours: 30, keys: 250_000, exponent: 1 });
  const steep = zipfTrace({ seed: 3, reads: reads(160_000), hours: 25, keys: 1_000_000, exponent: 1.15 });
  const bursty = burstyTrace({ seed: 4, reads: reads(180_000), hours: 26, keys: 120_000, exponent: 0.9 });
  const all: readonly Setting[] = [
    { name: 'Zipf 0.8', class: 'evaluation', trace: flat, freshMs: 300_000 },
    { name: 'Zipf 1.0', class: 'transcript', trace: middle, freshMs: 30_000 },
    { name: 'Zipf 1.15', class: 'scorecard', trace: steep, freshMs: 900_000 },
    { name: 'bursts and crowds', class: 'dealInsights', trace: bursty, freshMs: 60_000 },
  ];
  return scale === 'whole' ? all : all.filter(({ name }) => name === 'Zipf 0.8' || name === 'bursts and crowds');
}

/** As long stale as fresh. */
export function timesOf(freshMs: number): CacheTimes {
  return { freshMs, staleMs: freshMs, errorMs: freshMs };
}

interface KeyRead {
  readonly class: ReplayClass;
  readonly keyHash: number;
  readonly atMs: number;
}

/** All reads of all traces, in order of time. */
export function readsOf(settings: readonly Setting[]): readonly KeyRead[] {
  return settings
    .flatMap(({ class: cacheClass, trace }) =>
      Array.from(trace.atMs, (atMs, index) => {
        return { class: cacheClass, keyHash: hash32(singleKey(cacheClass, `ev_${trace.keys[index]}`)), atMs };
      }),
    )
    .toSorted((a, b) => a.atMs - b.atMs);
}

/** Hands them on, the clock moved along. */
export function feed(reads: readonly KeyRead[], clock: ManualClock, take: (read: KeyRead) => void): void {
  const startMs = clock.nowMs();
  for (const read of reads) {
    clock.advance(startMs + read.atMs - clock.nowMs());
    take({ ...read, atMs: clock.nowMs() });
  }
}
