import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_KEYS } from '../../../../src/cache/what-if/keys.ts';
import { CANDIDATE_FRESH_MS } from '../../../../src/cache/what-if/tally.ts';
import { burstyTrace, type ReadTrace, zipfTrace } from '../../../support/read-traces.ts';
import { callsOf, Watched } from '../../../support/watched.ts';

/** In percentage points of the hit ratio. */
function largestError(trace: ReadTrace, watched: Watched): number {
  const errors = CANDIDATE_FRESH_MS.map((freshMs) => {
    const { reads, calls } = watched.point(freshMs);
    expect(reads).toBe(trace.keys.length);
    return (100 * Math.abs(calls - callsOf(trace, freshMs))) / reads;
  });
  return Math.max(...errors);
}

test('while every key is followed, calls are exact for any reads', () => {
  // Ages are multiples of 61 s, of which none is in the last tenth of these times, where jitter decides.
  const times = CANDIDATE_FRESH_MS.filter((freshMs) => freshMs <= 360_000);
  const reads = fc.array(fc.tuple(fc.nat(20), fc.nat(4)), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(reads, (given) => {
      let minutes = 0;
      const trace = {
        keys: Uint32Array.from(given, ([key]) => key),
        atMs: Float64Array.from(given, ([, gap]) => 61_000 * (minutes += gap)),
      };
      const watched = new Watched();
      watched.feed(trace);
      for (const freshMs of times) expect(watched.point(freshMs).calls).toBe(callsOf(trace, freshMs));
    }),
    { numRuns: 50 },
  );
});

describe('with many more keys than there is room for, hit ratios are within a point', () => {
  test('of keys of lasting popularity', () => {
    const trace = zipfTrace({ seed: 11, reads: 120_000, hours: 25, keys: 150_000, exponent: 0.9 });
    const watched = new Watched();
    watched.feed(trace);
    expect(new Set(trace.keys).size).toBeGreaterThan(2 * MAX_KEYS);
    expect(largestError(trace, watched)).toBeLessThan(1);
  });

  test('of bursts and crowds, which make keys hot and cold again', () => {
    const trace = burstyTrace({ seed: 12, reads: 120_000, hours: 25, keys: 150_000, exponent: 0.9 });
    const watched = new Watched();
    watched.feed(trace);
    expect(largestError(trace, watched)).toBeLessThan(1);
  });

  test('if keys that were busy in the first half are not read in the second', () => {
    const first = zipfTrace({ seed: 13, reads: 60_000, hours: 12, keys: 150_000, exponent: 1 });
    const second = zipfTrace({ seed: 14, reads: 60_000, hours: 12, keys: 150_000, exponent: 1 });
    const trace = {
      keys: Uint32Array.from([...first.keys, ...second.keys.map((key) => 150_000 - key)]),
      atMs: Float64Array.from([...first.atMs, ...second.atMs.map((atMs) => atMs + 44_000_000)]),
    };
    const watched = new Watched();
    watched.feed(trace);
    expect(largestError(trace, watched)).toBeLessThan(1);
  });

  test('if nothing is ever read twice: all are calls', () => {
    const watched = new Watched();
    for (let read = 0; read < 60_000; read++) watched.readAt(read * 1000, `once ${read}`);
    expect(watched.point(86_400_000)).toMatchObject({ reads: 60_000, calls: 60_000 });
  });
});
