import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/clock.ts';
import { type ImportedKey, type KeyRegistry, KeyStateError, type NewKey } from '../../../src/keys/key.ts';
import { InvalidKeyError } from '../../../src/keys/schema.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const WORKSPACE_A = 'aaaaaaaa-0000-4000-8000-000000000001';
const WORKSPACE_B = 'bbbbbbbb-0000-4000-8000-000000000002';
const HOUR_MS = 3_600_000;

const NEW_KEY: NewKey = {
  name: 'reporting',
  workspaceIds: [WORKSPACE_A, WORKSPACE_B],
  scopes: ['reports.read', 'calls.read'],
  expiresAtMs: null,
  limits: { perMinute: 7, perHour: null },
};

const IMPORTED: ImportedKey = {
  ...NEW_KEY,
  keyId: 'old-1',
  hash: 'c'.repeat(64),
  status: 'active',
  createdAtMs: 1_600_000_000_000,
};

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export interface RegistryFixture {
  readonly registry: KeyRegistry;
  close(): Promise<void>;
}

/** What every key registry does. `make` gives an empty one that takes the time from the clock. */
export function describeRegistry(name: string, make: (clock: Clock) => Promise<RegistryFixture>): void {
  describe(`key registry: ${name}`, () => {
    let clock: ManualClock;
    let fixture: RegistryFixture;
    let registry: KeyRegistry;
    beforeEach(async () => {
      clock = new ManualClock();
      fixture = await make(clock);
      registry = fixture.registry;
    });
    afterEach(() => fixture.close());

    test('K2: a new key is found by the SHA-256 of its token, and the token is kept nowhere', async () => {
      const { key, token } = await registry.create(NEW_KEY);
      expect(key).toEqual({
        ...NEW_KEY,
        keyId: key.keyId,
        hash: sha256(token),
        status: 'active',
        createdAtMs: clock.nowMs(),
        quotaId: key.keyId,
        lastUsedAtMs: null,
      });
      expect(key.keyId).toMatch(/^key_[0-9A-Za-z]{12}$/);
      expect(await registry.find(sha256(token))).toEqual(key);
      expect(await registry.get(key.keyId)).toEqual(key);
      expect(JSON.stringify(await registry.list())).not.toContain(token);
    });

    test('what was never issued is not there', async () => {
      const hash = sha256('never');
      expect(await registry.find(hash)).toBeNull();
      expect(registry.peek(hash)).toBeUndefined();
      expect(await registry.get('key_never')).toBeNull();
      expect(await registry.setStatus('key_never', 'revoked')).toBeNull();
      expect(await registry.rotate('key_never', 0)).toBeNull();
      expect(await registry.list()).toEqual([]);
    });

    test('a key that was found is at hand without a look-up', async () => {
      const { key } = await registry.create(NEW_KEY);
      await registry.find(key.hash);
      expect(registry.peek(key.hash)).toEqual(key);
    });

    test('keys are listed in the order in which they were created', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 5; i += 1) {
        ids.push((await registry.create(NEW_KEY)).key.keyId);
        clock.advance(1);
      }
      await registry.importKeys([IMPORTED]);
      expect((await registry.list()).map((key) => key.keyId)).toEqual(['old-1', ...ids]);
    });

    test('K3: workspace ids are kept in lower case', async () => {
      const { key } = await registry.create({ ...NEW_KEY, workspaceIds: [WORKSPACE_A.toUpperCase()] });
      expect((await registry.get(key.keyId))?.workspaceIds).toEqual([WORKSPACE_A]);
    });

    test('a key that breaks a rule is not created', async () => {
      await expect(registry.create({ ...NEW_KEY, workspaceIds: [] })).rejects.toThrow(InvalidKeyError);
      expect(await registry.list()).toEqual([]);
    });

    test('K4: a change of status is seen by the next look-up', async () => {
      const { key } = await registry.create(NEW_KEY);
      await registry.find(key.hash);
      for (const status of ['deprecated', 'active', 'deprecated', 'revoked', 'revoked'] as const) {
        expect(await registry.setStatus(key.keyId, status)).toEqual({ ...key, status });
        expect(await registry.find(key.hash)).toEqual({ ...key, status });
        expect(registry.peek(key.hash)).toEqual({ ...key, status });
      }
    });

    test.each(['active', 'deprecated'] as const)('a revoked key stays revoked when it is set %s', async (status) => {
      const { key } = await registry.create(NEW_KEY);
      await registry.setStatus(key.keyId, 'revoked');
      await expect(registry.setStatus(key.keyId, status)).rejects.toThrow(KeyStateError);
      expect((await registry.get(key.keyId))?.status).toBe('revoked');
    });

    test('K3: a rotated key and its successor share rights, limits, expiry and quota', async () => {
      const expiresAtMs = clock.nowMs() + 100 * HOUR_MS;
      const { key: old, token } = await registry.create({ ...NEW_KEY, expiresAtMs });
      clock.advance(HOUR_MS);
      const issued = await registry.rotate(old.keyId, 24 * HOUR_MS);
      expect(issued?.key).toEqual({
        ...old,
        keyId: issued?.key.keyId,
        hash: sha256(issued?.token ?? ''),
        createdAtMs: clock.nowMs(),
      });
      expect(issued?.key.keyId).toMatch(/^key_[0-9A-Za-z]{12}$/);
      expect(issued?.key.keyId).not.toBe(old.keyId);
      expect(issued?.token).not.toBe(token);
      expect(await registry.find(issued?.key.hash ?? '')).toEqual(issued?.key);
      expect(await registry.find(old.hash)).toEqual({ ...old, expiresAtMs: clock.nowMs() + 24 * HOUR_MS });
    });

    test('K3: the quota goes on through a second rotation', async () => {
      const first = await registry.create(NEW_KEY);
      const second = await registry.rotate(first.key.keyId, HOUR_MS);
      const third = await registry.rotate(second?.key.keyId ?? '', HOUR_MS);
      expect(third?.key.quotaId).toBe(first.key.keyId);
    });

    test('a rotation never puts off the end of the old key', async () => {
      const expiresAtMs = clock.nowMs() + HOUR_MS;
      const { key } = await registry.create({ ...NEW_KEY, expiresAtMs });
      await registry.rotate(key.keyId, 24 * HOUR_MS);
      expect((await registry.get(key.keyId))?.expiresAtMs).toBe(expiresAtMs);
    });

    test('without overlap the old key ends at once', async () => {
      const { key } = await registry.create(NEW_KEY);
      await registry.rotate(key.keyId, 0);
      expect((await registry.get(key.keyId))?.expiresAtMs).toBe(clock.nowMs());
    });

    test.each(['deprecated', 'revoked'] as const)('a key that is %s cannot be rotated', async (status) => {
      const { key } = await registry.create(NEW_KEY);
      await registry.setStatus(key.keyId, status);
      await expect(registry.rotate(key.keyId, 0)).rejects.toThrow(KeyStateError);
      expect(await registry.list()).toHaveLength(1);
    });

    test('an expired key cannot be rotated', async () => {
      const { key } = await registry.create({ ...NEW_KEY, expiresAtMs: clock.nowMs() + 1 });
      clock.advance(1);
      await expect(registry.rotate(key.keyId, 0)).rejects.toThrow(KeyStateError);
    });

    test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])('an overlap of %s is refused', async (overlapMs) => {
      const { key } = await registry.create(NEW_KEY);
      await expect(registry.rotate(key.keyId, overlapMs)).rejects.toThrow(RangeError);
    });

    test('K1: an imported key is found by its hash, with a quota of its own unless it names one', async () => {
      const shared = { ...IMPORTED, keyId: 'old-2', hash: 'd'.repeat(64), quotaId: 'q' };
      expect(await registry.importKeys([IMPORTED, shared])).toEqual({ added: 2, replaced: 0 });
      expect(await registry.find(IMPORTED.hash)).toEqual({ ...IMPORTED, quotaId: 'old-1', lastUsedAtMs: null });
      expect((await registry.find(shared.hash))?.quotaId).toBe('q');
    });

    test('an imported key replaces the one with the same id and hash, which keeps its quota', async () => {
      await registry.importKeys([{ ...IMPORTED, quotaId: 'q' }]);
      expect(await registry.importKeys([{ ...IMPORTED, name: 'renamed' }])).toEqual({ added: 0, replaced: 1 });
      expect(await registry.list()).toEqual([{ ...IMPORTED, name: 'renamed', quotaId: 'q', lastUsedAtMs: null }]);
    });

    test.each([
      ['the same id with another hash', { hash: 'd'.repeat(64) }],
      ['another id with the same hash', { keyId: 'old-2' }],
    ])('an import that has %s changes nothing at all', async (_, change) => {
      await registry.importKeys([IMPORTED]);
      const fresh = { ...IMPORTED, keyId: 'old-9', hash: 'e'.repeat(64) };
      await expect(registry.importKeys([fresh, { ...IMPORTED, ...change }])).rejects.toThrow(KeyStateError);
      expect((await registry.list()).map((key) => key.keyId)).toEqual(['old-1']);
    });

    test('two imported keys of one file that contradict each other are refused', async () => {
      const contradiction = { ...IMPORTED, keyId: 'old-2' };
      await expect(registry.importKeys([IMPORTED, contradiction])).rejects.toThrow(KeyStateError);
      expect(await registry.list()).toEqual([]);
    });

    test('an import does not bring a revoked key back to life', async () => {
      await registry.importKeys([{ ...IMPORTED, status: 'revoked' }]);
      await expect(registry.importKeys([IMPORTED])).rejects.toThrow(KeyStateError);
      expect((await registry.get('old-1'))?.status).toBe('revoked');
    });

    test('an imported key that breaks a rule is refused, and none of its file is kept', async () => {
      const plain = { ...IMPORTED, keyId: 'old-2', hash: 'a token, not a hash' };
      await expect(registry.importKeys([IMPORTED, plain])).rejects.toThrow(InvalidKeyError);
      expect(await registry.list()).toEqual([]);
    });
  });
}
