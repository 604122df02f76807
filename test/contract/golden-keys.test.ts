/**
 * The data about keys that processes share through Redis, byte by byte: a gateway of another release must understand it, so that two
 * releases can run side by side. The record itself is in public-names/key-record.test.ts.
 */
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { forFile } from '../support/opened.ts';
import { hashToken, newToken } from '../../src/keys/token.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { redisIsWell, WITHIN } from '../support/world.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { connectWhenUp, withClient } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const CHANGES = 'evalgate:channel:keys:0:changes';
const VERSION = 'evalgate:{keys}:version';
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** Tokens of another form than evalgate's, so that they can be the same every time. */
const TOKEN = 'a-token-from-elsewhere';
const HASH = '04bbf5cefd57485170559212f504de233455a7ca71e743b125330f005e5409f3';

let listener: Redis;
let gateway: TestGateway;
/** Each message as its channel and its text. */
let messages: (readonly [channel: string, message: string])[] = [];
const redis = await forFile(startRedis());
beforeEach(async () => {
  await redis.flush();
  messages = [];
  listener = await connectWhenUp(redis.url);
  listener.on('pmessage', (_pattern: string, channel: string, message: string) => messages.push([channel, message]));
  await listener.psubscribe('evalgate:channel:keys:*');
  gateway = await startTestGateway({ env: { REDIS_URL: redis.url, TRUSTED_PROXIES: '127.0.0.1/32' } });
  await redisIsWell(gateway);
});
afterEach(async () => {
  await gateway.close();
  listener.disconnect();
});

const keyIdOf = (token: string): string => `key_${hashToken(token).slice(0, 12)}`;

const importKeys = (...tokens: readonly string[]) => {
  const keys = tokens.map((token) => ({
    keyId: keyIdOf(token),
    hash: hashToken(token),
    name: 'Golden',
    workspaceIds: [WORKSPACE_A],
    scopes: ['calls.read'],
  }));
  return gateway.admin('POST', '/api/keys/import', { keys });
};

const changes = (): readonly string[] =>
  messages.filter(([channel]) => channel === CHANGES).map(([, message]) => message);

/** The messages of changes, once there are so many, with the random words that name versions as V1, V2 ... */
async function changesOnce(count: number): Promise<readonly string[]> {
  await vi.waitFor(() => expect(changes()).toHaveLength(count), WITHIN);
  const versions: string[] = [];
  return changes().map((message) =>
    message.replaceAll(new RegExp(UUID, 'g'), (version) => {
      if (!versions.includes(version)) versions.push(version);
      return `V${versions.indexOf(version) + 1}`;
    }),
  );
}

test('a change is published with the versions before and after it and the hashes of the keys', async () => {
  expect(hashToken(TOKEN)).toBe(HASH);
  await importKeys(TOKEN);
  await gateway.admin('PATCH', `/api/keys/${keyIdOf(TOKEN)}`, { status: 'deprecated' });
  await gateway.admin('PATCH', `/api/keys/${keyIdOf(TOKEN)}`, { status: 'deprecated' });
  await gateway.admin('DELETE', `/api/keys/${keyIdOf(TOKEN)}`);
  expect(await changesOnce(3)).toEqual([`- V1 ${HASH}`, `V1 V2 ${HASH}`, `V2 V3 ${HASH}`]);
  const version = await withClient(redis.url, (client) => client.get(VERSION));
  expect(changes().at(-1)).toContain(` ${version} `);
});

test('one message names up to a thousand keys; a star stands for more', async () => {
  const tokens = Array.from({ length: 1001 }, (_, i) => `token-${i}`);
  await importKeys(...tokens.slice(0, 1000));
  await importKeys(...tokens.map((token) => `another-${token}`));
  expect(await changesOnce(2)).toEqual([`- V1 ${tokens.slice(0, 1000).map(hashToken).join(',')}`, 'V1 V2 *']);
});

test('a change that another release makes and publishes is in force', async () => {
  await importKeys(TOKEN);
  const status = async (): Promise<number> => (await gateway.get('/v2/key', { key: TOKEN })).status;
  expect(await status()).toBe(200);
  await withClient(redis.url, async (client) => {
    const record = (await client.hget('evalgate:{keys}:records', HASH)) ?? '';
    const before = (await client.get(VERSION)) ?? '';
    await client
      .multi()
      .hset('evalgate:{keys}:records', HASH, record.replace('"active"', '"revoked"'))
      .set(VERSION, 'another-version')
      .publish(CHANGES, `${before} another-version ${HASH}`)
      .exec();
  });
  await vi.waitFor(async () => expect(await status()).toBe(403), WITHIN);
});

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['2001:DB8:1:2:0:0:0:9', '2001:db8:1:2::/64'],
  ['2001:db8::9', '2001:db8::/64'],
  ['2001:db8:0:1::', '2001:db8:0:1::/64'],
  ['::9', '::/64'],
])('K9: the failures of %s are counted under %s', async (address, name) => {
  const headers = { 'x-forwarded-for': address };
  for (let time = 0; time < 3; time += 1) await gateway.get('/v2/key', { key: newToken(), headers });
  const counts = await withClient(redis.url, async (client) => {
    const names = await client.keys('evalgate:limit:*');
    return Promise.all(names.map(async (key) => [key, await client.get(key)]));
  });
  expect(counts).toEqual([[`evalgate:limit:failed-authentications:${name}`, '3']]);
});
