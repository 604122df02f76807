/**
 * The limit of calls under way, against stores whose capacity is known. Each one's best is what a fixed limit could reach.
 * Runs are simulated and seeded, so each figure is the same on every machine.
 */
import { describe, expect, test } from 'vitest';
import type { BegunCall } from '../../../src/upstream/call-round.ts';
import { type CallEnd, ConcurrencyLimit } from '../../../src/upstream/concurrency-limit.ts';
import {
  constant,
  type Curve,
  linear,
  refusingAbove,
  Simulation,
  type SimulationOptions,
  stalling,
  uneven,
} from '../../support/store-simulation.ts';

function run(curve: Curve, seconds: number, more: Partial<SimulationOptions> = {}): Simulation {
  return new Simulation({ curve, seconds, processes: [{}], ...more }).run();
}

function processes(count: number) {
  return Array.from({ length: count }, () => ({}));
}

/** Half of the calls take 40 ms, half 400 ms, whatever is asked. */
const mixed: Curve = ({ random }) => ({ latencyMs: random.next() < 0.5 ? 40 : 400 });
const twoKinds: Curve = ({ resource }) => ({ latencyMs: resource === 'list' ? 400 : 40 });
const slowerAndSlower: Curve = ({ atMs }) => ({ latencyMs: atMs < 30_000 ? 100 : atMs < 60_000 ? 160 : 400 });
const refusingByChance: Curve = ({ random }) =>
  random.next() < 0.02 ? { latencyMs: 5, sign: 'overload' } : { latencyMs: 100 };
const cliff: Curve = ({ inFlight }) => ({ latencyMs: inFlight > 16 ? 1000 : 50 });
const collapse: Curve = ({ inFlight }) => ({ latencyMs: 50 * Math.max(1, (inFlight / 8) ** 2) });
const refusingForHalfAMinute: Curve = ({ atMs }) =>
  atMs >= 30_000 && atMs < 60_000 ? { latencyMs: 2, sign: 'overload' } : { latencyMs: 50 };

describe('a store that bears whatever it is asked is not throttled', () => {
  test.for([
    ['of 800 ms', constant(800), 50 / 0.8],
    ['of 50 ms', constant(50), 50 / 0.05],
    ['of 40 or 400 ms', mixed, 50 / 0.22],
    ['of slow lists and fast evaluations', twoKinds, 50 / 0.22],
    // The spread of a store with p50 120 ms and p99 1.5 s.
    ['of 120 ms with a long tail', uneven(constant(120), 1.08), 50 / (0.12 * Math.exp(1.08 ** 2 / 2))],
  ] as const)('%s', ([, curve, best]) => {
    const simulation = run(curve, 120, { resources: ['list', 'evaluation'] });
    expect(simulation.between(20, 120).perSecond).toBeGreaterThan(0.95 * best);
  });

  test('also one on a machine that delays all calls of a moment, again and again', () => {
    const simulation = run(stalling(constant(50), 100), 120);
    expect(simulation.between(20, 120).inFlight).toBeGreaterThan(0.8 * 50);
  });

  test('also one that becomes slower, and slower again', () => {
    const simulation = run(slowerAndSlower, 90);
    expect(simulation.between(50, 60).perSecond).toBeGreaterThan(0.95 * (50 / 0.16));
    expect(simulation.between(80, 90).perSecond).toBeGreaterThan(0.95 * (50 / 0.4));
  });

  test('also one that refuses two calls in a hundred, by chance', () => {
    expect(run(refusingByChance, 120).between(20, 120).perSecond).toBeGreaterThan(0.8 * (50 / 0.1));
  });
});

describe('a store that becomes slower beyond its capacity', () => {
  const store = refusingAbove(24, linear(50, 4));

  test.for([1, 2, 4])('is kept near it by %i processes, from 10 s after the start', (count) => {
    const simulation = run(store, 120, { processes: processes(count) });
    const { perSecond, inFlight, failedShare } = simulation.between(10, 120);
    expect(perSecond).toBeGreaterThan(0.97 * 80);
    expect(inFlight).toBeLessThan(1.5 * 4);
    expect(failedShare).toBe(0);
  });

  test('has few more calls at a time than it bears in the first seconds', () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      expect(run(store, 5, { seed }).between(0, 5).inFlight).toBeLessThan(1.5 * 4);
      expect(run(refusingAbove(24, linear(50, 8)), 5, { seed }).between(0, 5).inFlight).toBeLessThan(1.5 * 8);
    }
  });

  test('is kept near it for long, however uneven its latencies', () => {
    for (const seed of [1, 2]) {
      for (const count of [1, 4]) {
        const simulation = run(uneven(linear(50, 20), 0.1), 600, { processes: processes(count), seed });
        const { perSecond, inFlight } = simulation.between(540, 600);
        expect(perSecond).toBeGreaterThan(0.97 * 400);
        expect(inFlight).toBeLessThan(1.6 * 20);
      }
    }
  });

  test('is followed within 10 s if its capacity is halved, and within 30 s if it is doubled', () => {
    const halved = run(
      linear(50, (atMs) => (atMs < 60_000 ? 8 : 4)),
      90,
    );
    expect(halved.between(70, 90).inFlight).toBeLessThan(1.5 * 4);
    expect(halved.between(70, 90).perSecond).toBeGreaterThan(0.97 * 80);
    const doubled = run(
      linear(50, (atMs) => (atMs < 60_000 ? 4 : 8)),
      120,
    );
    expect(doubled.between(90, 120).perSecond).toBeGreaterThan(0.97 * 160);
    expect(doubled.between(90, 120).inFlight).toBeLessThan(1.5 * 8);
  });

  test('is followed up and down', () => {
    const sawtooth = run(
      linear(50, (atMs) => 4 + 8 * ((atMs / 20_000) % 1)),
      200,
    );
    expect(sawtooth.between(20, 200).perSecond).toBeGreaterThan(0.95 * 160);
    expect(sawtooth.between(20, 200).inFlight).toBeLessThan(1.6 * 8);
  });

  test('is shared evenly by processes that come and go', () => {
    const simulation = run(linear(50, 20), 180, {
      processes: [{ untilMs: 120_000 }, { fromMs: 20_000 }, { fromMs: 30_000 }, { fromMs: 40_000, untilMs: 120_000 }],
    });
    for (const [from, to] of [
      [60, 120],
      [130, 180],
    ] as const) {
      const { perSecond, inFlight } = simulation.between(from, to);
      expect(perSecond).toBeGreaterThan(0.95 * 400);
      expect(inFlight).toBeLessThan(1.4 * 20);
    }
    const shares = [0, 1, 2, 3].map((index) => simulation.limits(index)[110] ?? 0);
    expect(Math.max(...shares) / Math.min(...shares)).toBeLessThan(3);
  });

  test('has more to bear if clocks disagree, but not without bound', () => {
    const ahead = [0, 1000, -700, 300].map((clockAheadMs) => ({ clockAheadMs }));
    const { inFlight, perSecond } = run(linear(50, 20), 300, { processes: ahead }).between(240, 300);
    expect(inFlight).toBeLessThan(3 * 20);
    expect(perSecond).toBeGreaterThan(0.97 * 400);
  });
});

describe('a store that fails beyond its capacity', () => {
  test('by refusing: few calls are refused', () => {
    const { perSecond, failedShare } = run(refusingAbove(24, constant(50)), 120).between(10, 120);
    expect(perSecond).toBeGreaterThan(0.8 * 480);
    expect(failedShare).toBeLessThan(0.02);
  });

  test('at a cliff: twenty times slower', () => {
    expect(run(cliff, 120).between(10, 120).perSecond).toBeGreaterThan(0.7 * 320);
  });

  test('by collapsing: the more calls, the fewer answers', () => {
    for (const count of [1, 4]) {
      expect(run(collapse, 120, { processes: processes(count) }).between(20, 120).perSecond).toBeGreaterThan(0.8 * 160);
    }
  });

  test('altogether: the limit falls to 1, and is back within 30 s of the end', () => {
    const simulation = run(refusingForHalfAMinute, 120);
    expect(simulation.limits()[31]).toBe(1);
    expect(simulation.between(90, 120).perSecond).toBeGreaterThan(0.9 * 1000);
  });
});

describe('trouble of one key or of one record', () => {
  test.for([
    ['slow', { latencyMs: 2000 }],
    ['refused', { latencyMs: 5, sign: 'overload' }],
    ['without an answer', { latencyMs: 1000, sign: 'timeout' }],
  ] as const)('one key whose calls are %s lowers nothing', ([, answer]) => {
    const curve: Curve = ({ keyId, atMs }) => (keyId === 'key-1' && atMs > 30_000 ? answer : { latencyMs: 50 });
    const limits = run(curve, 90).limits().slice(25);
    expect(Math.min(...limits.map((limit) => limit ?? 0))).toBe(50);
  });

  test('the trouble of the only key there is, is the store’s', () => {
    const { failedShare } = run(refusingAbove(24, constant(50)), 60, { keys: 1 }).between(10, 60);
    expect(failedShare).toBeLessThan(0.02);
  });

  test('one record that never answers lowers nothing, whoever asks for it', () => {
    const limit = grownTo(18);
    for (let calls = 0; calls < 40; calls += 1) {
      const call = begin(limit, '/bad', `key-${calls % 5}`);
      limit.end(call, { sign: 'timeout', latencyMs: null });
    }
    expect(limit.status().limit).toBe(18);
  });
});

const ANSWERED: CallEnd = { sign: 'answered', latencyMs: 50 };

function begin(limit: ConcurrencyLimit, path: string, keyId = 'key-1'): BegunCall {
  return limit.begin({ resource: 'evaluation', keyId, path, othersWait: false });
}

/** A limit that has grown so far while calls took no longer, at a time that stands still. */
function grownTo(wanted: number): ConcurrencyLimit {
  const limit = new ConcurrencyLimit(50, { nowMs: () => 0, nowMicros: () => 0 });
  for (let rounds = 0; rounds < 100 && limit.status().limit < wanted; rounds += 1) {
    const calls = Array.from({ length: limit.status().limit }, (_, index) => begin(limit, `/${rounds}/${index}`));
    for (const call of calls) limit.end(call, ANSWERED);
  }
  return limit;
}

describe('what is learned', () => {
  test('stays while the gateway idles, and does not grow from what is not used', () => {
    const store = linear(50, 8);
    const busyThenIdle = new Simulation({
      curve: store,
      seconds: 400,
      processes: [{ untilMs: 60_000 }, { fromMs: 0, perSecond: 2 }],
    }).run();
    const idle = busyThenIdle.limits(1);
    expect(Math.max(...idle.slice(300).map((limit) => limit ?? 0))).toBeLessThanOrEqual(idle[61] ?? 0);
  });

  test('a refusal is answered for by the limit until it is at its floor', () => {
    const limit = grownTo(16);
    const refuse = (count: number): boolean[] => {
      const calls = Array.from({ length: count }, (_, index) => begin(limit, `/${index}`, `key-${index % 3}`));
      return calls.map((call) => limit.end(call, { sign: 'overload', latencyMs: 2 }));
    };
    // The first is one record's so far.
    expect(refuse(16)).toEqual([false, ...Array.from({ length: 15 }, () => true)]);
    expect(limit.status()).toEqual({ limit: 12, isFound: true });
    for (let times = 0; times < 20; times += 1) refuse(16);
    expect(limit.status()).toEqual({ limit: 1, isFound: true });
    // Now it is the store's trouble.
    expect(refuse(4)).toEqual([false, false, false, false]);
  });
});
