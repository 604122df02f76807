import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Redis } from 'ioredis';
import { type ImportedKey, KeyStateError, type NewKey, RegistryUnavailableError } from '../../src/keys/key.ts';
import { hashToken, newToken } from '../../src/keys/token.ts';
import { registryKey } from '../../src/redis/names.ts';
import { type FleetOptions, hears, type KeyFleet, startKeyFleet, until } from '../support/key-fleet.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const SOON_MS = 1000;
const NEW_KEY: NewKey = {
  name: 'reporting',
  workspaceIds: ['aaaaaaaa-0000-4000-8000-000000000001'],
  scopes: ['reports.read'],
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
};

function imported(token: string, keyId: string): ImportedKey {
  return { ...NEW_KEY, keyId, hash: hashToken(token), status: 'active', createdAtMs: 1 };
}

let redis: TestRedis;
let client: Redis;
const fleets: KeyFleet[] = [];

async function start(options: Omit<FleetOptions, 'url'> = {}): Promise<KeyFleet> {
  const fleet = await startKeyFleet({ url: redis.url, ...options });
  fleets.push(fleet);
  return fleet;
}

beforeAll(async () => {
  redis = await startRedis();
  client = await connectWhenUp(redis.url, 5000);
});
beforeEach(() => redis.flush());
afterEach(async () => {
  await Promise.all(fleets.splice(0).map((fleet) => fleet.close()));
});
afterAll(async () => {
  client.disconnect();
  await redis.close();
});

/** Everything that Redis holds, as text. */
async function dump(): Promise<string> {
  const parts: string[] = [];
  for (const name of await client.keys('*')) {
    const isHash = (await client.type(name)) === 'hash';
    parts.push(name, JSON.stringify(isHash ? await client.hgetall(name) : await client.get(name)));
  }
  return parts.join('\n');
}

/** How often the processes have read the record of a key. */
async function readings(): Promise<number> {
  const stats = /cmdstat_hget:calls=(\d+)/.exec(await client.info('commandstats'));
  return Number(stats?.[1] ?? 0) / 2;
}

describe('what Redis holds', () => {
  test('K2: no key, but its hash, its id and what it may do', async () => {
    const fleet = await start();
    const { registry } = fleet;
    const created = await registry.create(NEW_KEY);
    const rotated = await registry.rotate(created.key.keyId, 1000);
    const other = newToken();
    await registry.importKeys([imported(other, 'old-1')]);
    registry.touch(created.key);
    await registry.close();
    const held = await dump();
    expect(held).toContain(created.key.hash);
    expect(held).toContain(created.key.keyId);
    expect(rotated?.token).toMatch(/^evg_/);
    for (const token of [created.token, rotated?.token ?? '', other]) {
      expect(held).not.toContain(token);
      expect(held).not.toContain(token.slice(4, 20));
    }
  });

  test('all names are of one slot', async () => {
    const { registry } = await start();
    const { key } = await registry.create(NEW_KEY);
    registry.touch(key);
    await registry.close();
    const names = await client.keys('evalgate:*');
    expect(names.toSorted()).toEqual(['ids', 'records', 'used', 'version'].map((name) => `evalgate:{keys}:${name}`));
  });

  test('the time of the last use is handed on when the process ends, and never goes back', async () => {
    const clock = new ManualClock();
    const [late, early, reader] = [await start({ clock }), await start({ clock }), await start({ clock })];
    const { key } = await late.registry.create(NEW_KEY);
    early.registry.touch(key);
    clock.advance(5000);
    late.registry.touch(key);
    await late.registry.setStatus(key.keyId, 'deprecated');
    await late.close();
    await early.close();
    const expected = { ...key, status: 'deprecated', lastUsedAtMs: key.createdAtMs + 5000 };
    expect(await reader.registry.get(key.keyId)).toEqual(expected);
    expect(await reader.registry.list()).toEqual([expected]);
  });

  test('the use of a key that is not in the registry leaves nothing behind', async () => {
    const { registry } = await start();
    const { key } = await registry.create(NEW_KEY);
    registry.touch({ ...key, hash: 'f'.repeat(64) });
    await registry.close();
    expect(await client.exists(registryKey('used'))).toBe(0);
  });

  test.each([
    ['is no JSON', () => '{'],
    ['has no status', (record: string) => record.replace('"status":"active",', '')],
    ['is that of another hash', (record: string) => record.replace(/"hash":"."/, '"hash":"')],
    ['holds another hash', (record: string) => record.replace(/"hash":"[0-9a-f]{64}"/, `"hash":"${'0'.repeat(64)}"`)],
  ])('a record that %s lets nobody in and hides no other', async (_, spoil) => {
    const broken: RegistryUnavailableError[] = [];
    const { registry } = await start({ hooks: { onBrokenRecord: (error) => broken.push(error) } });
    const { key } = await registry.create(NEW_KEY);
    const whole = await registry.create(NEW_KEY);
    const record = (await client.hget(registryKey('records'), key.hash)) ?? '';
    const spoilt = spoil(record) === record ? '"spoilt"' : spoil(record);
    await client.hset(registryKey('records'), key.hash, spoilt);
    await expect(registry.find(key.hash)).rejects.toThrow(RegistryUnavailableError);
    expect(registry.peek(key.hash)).toBeUndefined();
    await expect(registry.get(key.keyId)).rejects.toThrow(RegistryUnavailableError);
    expect(await registry.list()).toEqual([whole.key]);
    expect(broken.map((error) => error.message.includes(key.hash))).toEqual([true]);
  });
});

describe('changes from several processes at once', () => {
  test('a revoked key stays revoked however many change its status meanwhile', async () => {
    const { registries, registry: first } = await start({ size: 4 });
    for (let round = 0; round < 10; round += 1) {
      const { key } = await first.create(NEW_KEY);
      const changes = registries.flatMap((registry, i) => [
        registry.setStatus(key.keyId, i === 2 ? 'revoked' : 'deprecated'),
        registry.setStatus(key.keyId, 'active'),
      ]);
      const failures = (await Promise.allSettled(changes)).filter((change) => change.status === 'rejected');
      for (const { reason } of failures) expect(reason).toBeInstanceOf(KeyStateError);
      expect((await first.get(key.keyId))?.status).toBe('revoked');
    }
  });

  test.each([
    ['one hash under two ids', (i: number) => imported('shared', `shared-${i}`)],
    ['two hashes under one id', (i: number) => imported(`shared-${i}`, 'shared')],
  ])('of two imports that contradict each other (%s) exactly one happens, and it happens whole', async (_, shared) => {
    const { registries, registry } = await start({ size: 2 });
    const outcomes = await Promise.allSettled(
      registries.map((one, i) => one.importKeys([imported(`own-${i}`, `own-${i}`), shared(i)])),
    );
    const winner = outcomes.findIndex((outcome) => outcome.status === 'fulfilled');
    const loser = outcomes[1 - winner];
    expect(loser?.status === 'rejected' && loser.reason).toBeInstanceOf(KeyStateError);
    const hashes = (await registry.list()).map((key) => key.hash);
    expect(new Set(hashes)).toEqual(new Set([hashToken(`own-${winner}`), shared(winner).hash]));
  });
});

describe('what a process remembers', () => {
  test('many look-ups of one key at once cost one', async () => {
    const [{ registry: maker }, { registry }] = [await start(), await start()];
    const { key } = await maker.create(NEW_KEY);
    const before = await readings();
    const found = await Promise.all(Array.from({ length: 100 }, () => registry.find(key.hash)));
    expect(found).toEqual(Array.from({ length: 100 }, () => key));
    expect(await registry.find(key.hash)).toEqual(key);
    expect(await readings()).toBe(before + 1);
  });

  test('a key that is not there is not looked up again for five seconds, unless it is issued meanwhile', async () => {
    const clock = new ManualClock();
    const [{ registry: maker }, { registry }] = [await start({ clock }), await start({ clock })];
    const token = newToken();
    const before = await readings();
    expect(await registry.find(hashToken(token))).toBeNull();
    expect(await registry.find(hashToken(token))).toBeNull();
    expect(await readings()).toBe(before + 1);
    clock.advance(5001);
    await hears(registry);
    expect(await registry.find(hashToken(token))).toBeNull();
    expect(await readings()).toBe(before + 2);
    await maker.importKeys([imported(token, 'old-1')]);
    await until(async () => (await registry.find(hashToken(token)))?.keyId === 'old-1', SOON_MS);
  });

  test('C8: a key in use is confirmed again every 30 s, and served meanwhile', async () => {
    const clock = new ManualClock();
    const { registry } = await start({ clock });
    const { key } = await registry.create(NEW_KEY);
    await registry.find(key.hash);
    // A change that nobody tells of, as when a backup is put back by hand.
    const record = (await client.hget(registryKey('records'), key.hash)) ?? '';
    await client.hset(registryKey('records'), key.hash, record.replace('"active"', '"revoked"'));
    clock.advance(29_000);
    await hears(registry);
    const before = await readings();
    expect(registry.peek(key.hash)?.status).toBe('active');
    expect(await registry.find(key.hash)).toEqual(key);
    expect(await readings()).toBe(before);
    clock.advance(1000);
    await hears(registry);
    expect(registry.peek(key.hash)?.status).toBe('active');
    await until(() => registry.peek(key.hash)?.status === 'revoked', SOON_MS);
  });

  test('C8: what is remembered is trusted for 900 ms from when the last beat that arrived was sent', async () => {
    const clock = new ManualClock();
    const { registry } = await start({ clock });
    const { key } = await registry.create(NEW_KEY);
    await registry.find(key.hash);
    clock.advance(900);
    expect([registry.trust(), registry.peek(key.hash)]).toEqual(['heard', key]);
    clock.advance(1);
    expect([registry.trust(), registry.peek(key.hash)]).toEqual(['deaf', undefined]);
    await hears(registry);
    expect(registry.peek(key.hash)).toEqual(key);
  });

  test('an import too large to name its keys is seen by all, also where they were known or unknown before', async () => {
    const { registries } = await start({ size: 2 });
    const [maker = expect.fail(), other = expect.fail()] = registries;
    const keys = Array.from({ length: 1001 }, (_, i) => imported(`token-${i}`, `old-${i}`));
    const [first = expect.fail(), second = expect.fail()] = keys;
    await maker.importKeys([first]);
    await other.find(first.hash);
    expect(await other.find(second.hash)).toBeNull();
    await maker.importKeys(keys.map((key) => ({ ...key, status: 'deprecated' })));
    await until(async () => (await other.find(first.hash))?.status === 'deprecated', SOON_MS);
    await until(async () => (await other.find(second.hash))?.status === 'deprecated', SOON_MS);
    await until(() => keys.every((key) => other.isIssued(key.hash)), SOON_MS);
  });

  test('K9: which hashes are those of issued keys is known before the keys are', async () => {
    const [{ registry: maker }] = [await start()];
    const { key: early } = await maker.create(NEW_KEY);
    const { registry } = await start();
    await until(() => registry.isIssued(early.hash), SOON_MS);
    const { key: late } = await maker.create(NEW_KEY);
    await until(() => registry.isIssued(late.hash), SOON_MS);
    expect(registry.peek(early.hash)).toBeUndefined();
    expect(registry.isIssued(hashToken(newToken()))).toBe(false);
  });

  test('a Redis that has lost its keys is noticed', async () => {
    const { registry } = await start();
    const { key } = await registry.create(NEW_KEY);
    await registry.find(key.hash);
    await redis.flush();
    await until(() => registry.peek(key.hash) === undefined, SOON_MS);
    expect(await registry.find(key.hash)).toBeNull();
  });
});
