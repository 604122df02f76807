import { expect, test } from 'vitest';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { overlayLookup } from '../../../src/keys/overlay-lookup.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const NEW_KEY = {
  name: 'test',
  workspaceIds: ['0b6c1f5e-2d63-4d0c-9a52-3f7f1f6f0a11'],
  scopes: ['calls.read'],
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
} as const;

async function setUp() {
  const clock = new ManualClock();
  const first = createMemoryRegistry({ clock });
  const second = createMemoryRegistry({ clock });
  const { key: own } = await first.create(NEW_KEY);
  const { key: other } = await second.create(NEW_KEY);
  return { clock, first, second, own, other, both: overlayLookup(first, second) };
}

test('keys of both are found, at once and by looking them up', async () => {
  const { own, other, both } = await setUp();
  expect([both.peek(own.hash), both.peek(other.hash)]).toEqual([own, other]);
  expect([await both.find(own.hash), await both.find(other.hash)]).toEqual([own, other]);
  expect([both.peek('f'.repeat(64)), await both.find('f'.repeat(64))]).toEqual([undefined, null]);
});

test('uses are told to the one that has the key', async () => {
  const { clock, first, second, own, other, both } = await setUp();
  clock.advance(5);
  both.touch(own);
  expect((await first.get(own.keyId))?.lastUsedAtMs).toBe(clock.nowMs());
  expect((await second.get(other.keyId))?.lastUsedAtMs).toBeNull();
  both.touch(other);
  expect((await second.get(other.keyId))?.lastUsedAtMs).toBe(clock.nowMs());
});

test('K9: what the first knows, or the second has issued, is known to be issued', async () => {
  const { first, own, other } = await setUp();
  const issuing = { ...first, isIssued: (hash: string) => hash === other.hash };
  const both = overlayLookup(first, Object.assign(createMemoryRegistry({ clock: new ManualClock() }), issuing));
  expect([own.hash, other.hash, 'f'.repeat(64)].map((hash) => both.isIssued?.(hash))).toEqual([true, true, false]);
});
