import { describe, expect, test } from 'vitest';
import { KnownCredentials } from '../../../src/keys/known-credentials.ts';

const START_MS = Date.UTC(2026, 0, 15, 12);

describe('credentials that were good lately', () => {
  test('the hash is that of the credentials, each of their own', () => {
    const known = new KnownCredentials();
    known.remember('Bearer a', 'hash of a', START_MS);
    known.remember('Bearer b', 'hash of b', START_MS);
    expect(known.hashOf('Bearer a', START_MS)).toBe('hash of a');
    expect(known.hashOf('Bearer b', START_MS)).toBe('hash of b');
    expect(known.hashOf('Bearer ab', START_MS)).toBeUndefined();
  });

  test('K2: what is not used for two minutes is kept no longer, what is used is', () => {
    const known = new KnownCredentials();
    known.hashOf('first', START_MS);
    for (const name of ['used', 'unused']) known.remember(name, name, START_MS);
    for (let atMs = START_MS; atMs <= START_MS + 130_000; atMs += 10_000) {
      expect(known.hashOf('used', atMs)).toBe('used');
    }
    expect(known.size).toBe(1);
  });

  test('K2: after a longer silence nothing is left', () => {
    const known = new KnownCredentials();
    known.hashOf('first', START_MS);
    known.remember('first', 'hash', START_MS);
    expect(known.hashOf('first', START_MS + 3_600_000)).toBeUndefined();
    expect(known.size).toBe(0);
  });

  test('a clock that goes back does not keep them for longer', () => {
    const known = new KnownCredentials();
    known.hashOf('first', START_MS);
    known.remember('first', 'hash', START_MS);
    expect(known.hashOf('first', START_MS - 3_600_000)).toBeUndefined();
  });

  test('there are never more than two generations of so many', () => {
    const known = new KnownCredentials(10);
    for (let i = 0; i < 1000; i += 1) {
      known.remember(`Bearer ${i}`, String(i), START_MS);
      expect(known.size).toBeLessThanOrEqual(20);
      expect(known.hashOf(`Bearer ${Math.max(0, i - 4)}`, START_MS)).toBe(String(Math.max(0, i - 4)));
    }
  });

  test('none that is blown up with white space takes a place', () => {
    const known = new KnownCredentials();
    const padded = `Bearer ${' '.repeat(10_000)}a`;
    known.remember(padded, 'hash', START_MS);
    expect(known.hashOf(padded, START_MS)).toBeUndefined();
    expect(known.size).toBe(0);
  });
});
