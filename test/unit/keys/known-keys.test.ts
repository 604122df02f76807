import { describe, expect, test } from 'vitest';
import { KnownKeys, type Trust } from '../../../src/keys/known-keys.ts';
import { KEY } from './fixtures.ts';

const START_MS = 1_000_000;
const HASH = KEY.hash;
const OTHER = 'b'.repeat(64);

function setUp(bounds: { maxKnown?: number; maxUnknown?: number } = {}): KnownKeys {
  return new KnownKeys({ confirmEveryMs: 30_000, trustMs: 60_000, graceMs: 600_000, unknownMs: 5000, ...bounds });
}

function known(): KnownKeys {
  const keys = setUp();
  keys.remember(HASH, KEY, START_MS);
  return keys;
}

describe('a key', () => {
  test.each<[Trust, number, string]>([
    ['heard', 0, 'key'],
    ['heard', 60_000, 'key'],
    ['heard', 60_001, 'unsure'],
    ['deaf', 0, 'unsure'],
    ['offline', 600_000, 'key'],
    ['offline', 600_001, 'unsure'],
  ])('C8: where the source is %s, %i ms after its confirmation it is "%s"', (trust, ageMs, kind) => {
    expect(known().recall(HASH, START_MS + ageMs, trust).kind).toBe(kind);
  });

  test('C8: it is to be confirmed again from 30 s on, once a second until it is', () => {
    const keys = known();
    const isDueAt = (ms: number) => keys.recall(HASH, START_MS + ms, 'heard');
    expect(isDueAt(29_999)).toEqual({ kind: 'key', key: KEY, isDue: false });
    expect(isDueAt(30_000)).toEqual({ kind: 'key', key: KEY, isDue: true });
    expect(isDueAt(30_999)).toEqual({ kind: 'key', key: KEY, isDue: false });
    expect(isDueAt(31_000)).toEqual({ kind: 'key', key: KEY, isDue: true });
    keys.remember(HASH, KEY, START_MS + 31_000);
    expect(isDueAt(60_999)).toEqual({ kind: 'key', key: KEY, isDue: false });
  });

  test('it is not to be confirmed while nobody can', () => {
    expect(known().recall(HASH, START_MS + 40_000, 'offline')).toEqual({ kind: 'key', key: KEY, isDue: false });
  });

  test('C8: once changes may have been missed it is confirmed before it is used, but while nobody can', () => {
    const keys = known();
    keys.doubtAll();
    expect(keys.recall(HASH, START_MS, 'heard')).toEqual({ kind: 'unsure' });
    expect(keys.recall(HASH, START_MS, 'offline').kind).toBe('key');
    keys.remember(HASH, KEY, START_MS);
    expect(keys.recall(HASH, START_MS, 'heard').kind).toBe('key');
  });

  test('a key that has changed is not used within the grace either', () => {
    const keys = known();
    expect(keys.withinGrace(HASH, START_MS + 600_000)).toEqual(KEY);
    expect(keys.withinGrace(HASH, START_MS + 600_001)).toBeNull();
    expect(keys.has(HASH)).toBe(true);
    keys.forget(HASH);
    expect(keys.withinGrace(HASH, START_MS)).toBeNull();
    expect(keys.has(HASH)).toBe(false);
  });

  test('that it is gone replaces it, and that it is there replaces its absence', () => {
    const keys = known();
    keys.remember(HASH, null, START_MS);
    expect(keys.recall(HASH, START_MS, 'heard')).toEqual({ kind: 'none' });
    expect(keys.recall(HASH, START_MS, 'offline')).toEqual({ kind: 'unsure' });
    keys.remember(HASH, KEY, START_MS);
    expect(keys.recall(HASH, START_MS, 'heard')).toEqual({ kind: 'key', key: KEY, isDue: false });
  });
});

describe('an unknown key', () => {
  test.each<[Trust, number, string]>([
    ['heard', 5000, 'none'],
    ['heard', 5001, 'unsure'],
    ['deaf', 0, 'unsure'],
    ['offline', 0, 'unsure'],
  ])('where the source is %s, after %i ms it is "%s"', (trust, ageMs, kind) => {
    const keys = setUp();
    keys.remember(HASH, null, START_MS);
    expect(keys.recall(HASH, START_MS + ageMs, trust).kind).toBe(kind);
  });

  test('it is asked for again once it may have been issued', () => {
    const keys = setUp();
    keys.remember(HASH, null, START_MS);
    keys.remember(OTHER, null, START_MS);
    keys.forget(HASH);
    expect(keys.recall(HASH, START_MS, 'heard').kind).toBe('unsure');
    expect(keys.recall(OTHER, START_MS, 'heard').kind).toBe('none');
    keys.doubtAll();
    expect(keys.recall(OTHER, START_MS, 'heard').kind).toBe('unsure');
  });
});

describe('what is held is bounded', () => {
  test('of known keys those go that were not used for the longest time', () => {
    const keys = setUp({ maxKnown: 2 });
    const hashes = ['1', '2', '3'].map((digit) => digit.repeat(64));
    const [first = '', second = '', third = ''] = hashes;
    keys.remember(first, KEY, START_MS);
    keys.remember(second, KEY, START_MS);
    keys.recall(first, START_MS, 'heard');
    keys.remember(third, KEY, START_MS);
    expect(hashes.map((hash) => keys.recall(hash, START_MS, 'heard').kind)).toEqual(['key', 'unsure', 'key']);
  });

  test('made-up keys push out each other, never a known one', () => {
    const keys = setUp({ maxKnown: 1, maxUnknown: 2 });
    keys.remember(HASH, KEY, START_MS);
    const madeUp = ['1', '2', '3'].map((digit) => digit.repeat(64));
    for (const hash of madeUp) keys.remember(hash, null, START_MS);
    expect(keys.recall(HASH, START_MS, 'heard').kind).toBe('key');
    expect(madeUp.map((hash) => keys.recall(hash, START_MS, 'heard').kind)).toEqual(['unsure', 'none', 'none']);
  });

  test('C8: what is not trusted is used only where it was asked for in vain, and when it was confirmed anew', () => {
    const keys = known();
    keys.remember(OTHER, null, START_MS);
    keys.distrustAll();
    for (const trust of ['heard', 'deaf', 'offline'] as const) {
      expect([HASH, OTHER].map((hash) => keys.recall(hash, START_MS, trust).kind)).toEqual(['unsure', 'unsure']);
    }
    expect(keys.withinGrace(HASH, START_MS)).toBe(KEY);
    keys.remember(HASH, KEY, START_MS + 1);
    expect(keys.recall(HASH, START_MS + 1, 'offline').kind).toBe('key');
  });
});
