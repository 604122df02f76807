import { describe, expect, test } from 'vitest';
import type { ApiKeyRecord } from '../../../src/domain/records.ts';
import { createAuthenticator } from '../../../src/keys/authenticate.ts';
import { createMemoryFailureLimiter } from '../../../src/keys/failure-limiter.ts';
import { type ApiKey, type KeyLookup, RegistryUnavailableError } from '../../../src/keys/key.ts';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { hashToken, newToken } from '../../../src/keys/token.ts';
import { createUpstreamKeySource } from '../../../src/keys/upstream-source.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { NEW_KEY, WORKSPACE_A } from './fixtures.ts';

const TOKEN = newToken();
const HASH = hashToken(TOKEN);
const GRACE_MS = 600_000;
const RECORD: ApiKeyRecord = {
  keyId: 'store-1',
  name: 'from the store',
  status: 'ACTIVE',
  workspaceIds: [WORKSPACE_A],
  scopes: ['calls.read', 'billing.write', 'reports.read'],
  expiresAtMs: null,
  limits: null,
};

function setUp(waitMs = 60_000) {
  const clock = new ManualClock();
  const memory = createMemoryRegistry({ clock });
  const registry: KeyLookup = { ...bound(memory) };
  const asked: string[] = [];
  const store = {
    records: new Map<string, ApiKeyRecord>([[HASH, RECORD]]),
    lookUp: async (hash: string): Promise<ApiKeyRecord | null> => store.records.get(hash) ?? null,
  };
  const source = createUpstreamKeySource({
    registry,
    lookUp: (hash) => {
      asked.push(hash);
      return store.lookUp(hash);
    },
    clock,
    graceMs: GRACE_MS,
    waitMs,
  });
  return { clock, memory, registry, asked, store, source };
}

/** A registry whose methods a test can replace. */
function bound(registry: KeyLookup) {
  return {
    find: registry.find.bind(registry),
    peek: registry.peek.bind(registry),
    touch: registry.touch.bind(registry),
  };
}

/** Lets what goes on behind a caller's back end. */
function settle(): Promise<void> {
  return new Promise((done) => void setImmediate(done));
}

function down(): Promise<never> {
  return Promise.reject(new Error('the store is down'));
}

describe('what a key of the store becomes', () => {
  test('it may do what the store says, as far as the gateway knows such a scope', async () => {
    const { source } = setUp();
    const key = await source.find(HASH);
    expect(key).toEqual({
      keyId: 'store-1',
      hash: HASH,
      name: 'from the store',
      status: 'active',
      workspaceIds: [WORKSPACE_A],
      scopes: ['reports.read', 'calls.read'],
      createdAtMs: 0,
      expiresAtMs: null,
      limits: { perMinute: null, perHour: null },
      quotaId: key?.quotaId,
      lastUsedAtMs: null,
    });
  });

  test.each([
    ['DEPRECATED', 'deprecated'],
    ['REVOKED', 'revoked'],
  ] as const)('K4: one that is %s is %s', async (status, expected) => {
    const { store, source } = setUp();
    store.records.set(HASH, { ...RECORD, status, expiresAtMs: 5, limits: { perMinute: 3, perHour: 4 } });
    expect(await source.find(HASH)).toMatchObject({
      status: expected,
      expiresAtMs: 5,
      limits: { perMinute: 3, perHour: 4 },
    });
  });

  test('R1: keys of the store and of the registry with the same id have quotas of their own', async () => {
    const { memory, store, source } = setUp();
    const { key } = await memory.create(NEW_KEY);
    const hashes = ['1', '2', '3'].map((digit) => digit.repeat(64));
    const keyIds = [key.keyId, key.keyId, 'x'.repeat(64)];
    for (const [i, hash] of hashes.entries()) store.records.set(hash, { ...RECORD, keyId: keyIds[i] ?? '' });
    const [first, second, third] = await Promise.all(hashes.map(async (hash) => (await source.find(hash))?.quotaId));
    expect(first).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(first).toBe(second);
    expect(new Set([first, third, key.quotaId]).size).toBe(3);
  });
});

describe('when the store is asked', () => {
  test('a key that the registry knows is never asked of the store', async () => {
    const { memory, asked, source } = setUp();
    const { key } = await memory.create(NEW_KEY);
    expect(source.peek(key.hash)).toEqual(key);
    expect(await source.find(key.hash)).toEqual(key);
    expect(asked).toEqual([]);
  });

  test('a key is at hand for a minute, and confirmed behind the back of whoever uses it after half of that', async () => {
    const { clock, asked, store, source } = setUp();
    await source.find(HASH);
    clock.advance(29_999);
    expect(source.peek(HASH)?.status).toBe('active');
    await settle();
    expect(asked).toHaveLength(1);
    clock.advance(1);
    store.records.set(HASH, { ...RECORD, status: 'REVOKED' });
    expect(source.peek(HASH)?.status).toBe('active');
    await settle();
    expect(asked).toHaveLength(2);
    expect(source.peek(HASH)?.status).toBe('revoked');
  });

  test('a key that was not used for more than a minute is confirmed before it is used', async () => {
    const { clock, store, source } = setUp();
    await source.find(HASH);
    store.records.set(HASH, { ...RECORD, status: 'REVOKED' });
    clock.advance(60_001);
    expect(source.peek(HASH)).toBeUndefined();
    expect((await source.find(HASH))?.status).toBe('revoked');
  });

  test('a key that the store has dropped is not used again', async () => {
    const { clock, store, source } = setUp();
    await source.find(HASH);
    store.records.clear();
    clock.advance(60_001);
    expect(await source.find(HASH)).toBeNull();
    store.lookUp = down;
    clock.advance(5001);
    await expect(source.find(HASH)).rejects.toThrow(RegistryUnavailableError);
  });

  test('a key that the store does not know is not asked for again for five seconds', async () => {
    const { clock, asked, source } = setUp();
    const hash = hashToken('unknown');
    expect(await source.find(hash)).toBeNull();
    clock.advance(5000);
    expect(await source.find(hash)).toBeNull();
    expect(asked).toHaveLength(1);
    clock.advance(1);
    expect(await source.find(hash)).toBeNull();
    expect(asked).toHaveLength(2);
  });

  test('many who come with the same key at once cost one look-up', async () => {
    const { asked, source } = setUp();
    const keys = await Promise.all(Array.from({ length: 50 }, () => source.find(HASH)));
    expect(new Set(keys).size).toBe(1);
    expect(asked).toEqual([HASH]);
  });

  test('of look-ups beyond ten in a second each is refused without a word to the store, and not as unknown', async () => {
    const { clock, asked, source } = setUp();
    const look = async (i: number) => source.find(hashToken(String(i)));
    const results = await Promise.allSettled(Array.from({ length: 25 }, (_, i) => look(i)));
    expect(asked).toHaveLength(10);
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(15);
    for (const { reason } of refused) expect(reason).toBeInstanceOf(RegistryUnavailableError);
    clock.advance(999);
    await expect(source.find(HASH)).rejects.toThrow(RegistryUnavailableError);
    clock.advance(1);
    expect((await source.find(HASH))?.keyId).toBe('store-1');
  });

  test('confirmations leave half of the look-ups of a second to keys that somebody waits for', async () => {
    const { clock, asked, store, source } = setUp();
    const hashes = Array.from({ length: 10 }, (_, i) => hashToken(`known ${i}`));
    for (const hash of hashes) store.records.set(hash, RECORD);
    await Promise.all(hashes.map((hash) => source.find(hash)));
    clock.advance(40_000);
    asked.length = 0;
    for (const hash of hashes) {
      expect(source.peek(hash)?.keyId).toBe('store-1');
      await settle();
    }
    expect(asked).toHaveLength(5);
    clock.advance(1000);
    for (const hash of hashes) {
      source.peek(hash);
      await settle();
    }
    expect(new Set(asked).size).toBe(10);
  });
});

describe('when the store or the registry fails', () => {
  test('a key that was never confirmed is neither let in nor refused', async () => {
    const { store, source } = setUp();
    store.lookUp = down;
    await expect(source.find(HASH)).rejects.toThrow(RegistryUnavailableError);
  });

  test('C8: a key that was confirmed stays good for the grace, and no longer', async () => {
    const { clock, store, source } = setUp();
    await source.find(HASH);
    store.lookUp = down;
    clock.advance(GRACE_MS);
    expect((await source.find(HASH))?.keyId).toBe('store-1');
    expect(source.peek(HASH)).toBeUndefined();
    clock.advance(1);
    await expect(source.find(HASH)).rejects.toThrow(RegistryUnavailableError);
  });

  test('a store that hangs holds nobody up for long whose key was confirmed', async () => {
    const { clock, asked, store, source } = setUp(1);
    await source.find(HASH);
    const answer = Promise.withResolvers<ApiKeyRecord | null>();
    store.lookUp = () => answer.promise;
    clock.advance(60_001);
    expect((await source.find(HASH))?.status).toBe('active');
    // From now on without any wait.
    const next = await Promise.race([source.find(HASH), settle().then(() => 'waited')]);
    expect(next).toMatchObject({ keyId: 'store-1' });
    expect(asked).toHaveLength(2);
    answer.resolve({ ...RECORD, status: 'REVOKED' });
    await settle();
    expect(source.peek(HASH)?.status).toBe('revoked');
  });

  test('C8: a registry that cannot be asked leaves what was confirmed good', async () => {
    const { clock, registry, source } = setUp();
    await source.find(HASH);
    registry.find = () => Promise.reject(new RegistryUnavailableError('down'));
    clock.advance(GRACE_MS);
    expect((await source.find(HASH))?.keyId).toBe('store-1');
    await expect(source.find(hashToken('other'))).rejects.toThrow(RegistryUnavailableError);
  });

  test('what is wrong with the code of the registry is passed on', async () => {
    const { clock, registry, source } = setUp();
    await source.find(HASH);
    registry.find = () => Promise.reject(new TypeError('bug'));
    clock.advance(60_001);
    await expect(source.find(HASH)).rejects.toThrow(TypeError);
  });
});

describe('the word of the registry', () => {
  const imported = { ...NEW_KEY, keyId: 'mine', hash: HASH, status: 'revoked', createdAtMs: 1 } as const;

  test('an operator revokes a key of the store by importing it as revoked', async () => {
    const { memory, source } = setUp();
    await source.find(HASH);
    await memory.importKeys([imported]);
    expect(source.peek(HASH)?.status).toBe('revoked');
  });

  test('so too where the registry only says that there is such a key, and where it fails then', async () => {
    const { registry, source } = setUp();
    await source.find(HASH);
    registry.isIssued = (hash) => hash === HASH;
    expect(source.peek(HASH)).toBeUndefined();
    registry.find = () => Promise.reject(new RegistryUnavailableError('down'));
    await expect(source.find(HASH)).rejects.toThrow(RegistryUnavailableError);
    const own: ApiKey = { ...imported, quotaId: 'q', lastUsedAtMs: null };
    registry.find = async () => own;
    expect(await source.find(HASH)).toEqual(own);
  });

  test('uses of its own keys are told to it, and those of the store are not', async () => {
    const { clock, memory, source } = setUp();
    const { key } = await memory.create(NEW_KEY);
    clock.advance(10);
    source.touch(key);
    expect((await memory.get(key.keyId))?.lastUsedAtMs).toBe(clock.nowMs());
    const foreign = await source.find(HASH);
    expect(foreign).not.toBeNull();
    await memory.importKeys([{ ...imported, keyId: 'store-1', hash: 'e'.repeat(64) }]);
    if (foreign !== null) source.touch(foreign);
    expect((await memory.get('store-1'))?.lastUsedAtMs).toBeNull();
  });
});

test('K9: a key of the store that was confirmed before is looked up again from an address that is blocked', async () => {
  const { clock, asked, source } = setUp();
  const authenticator = createAuthenticator({ registry: source, clock, failures: createMemoryFailureLimiter() });
  const authenticate = (token: string) =>
    authenticator.authenticate({ authorization: `Bearer ${token}`, address: () => '203.0.113.9' });
  expect((await authenticate(TOKEN)).kind).toBe('active');
  for (let i = 0; i < 60; i += 1) await authenticate('evg_wrong');
  clock.advance(61_000);
  asked.length = 0;
  expect(await authenticate(newToken())).toMatchObject({ reason: 'too-many-failures' });
  expect((await authenticate(TOKEN)).kind).toBe('active');
  expect(asked).toEqual([HASH]);
});
