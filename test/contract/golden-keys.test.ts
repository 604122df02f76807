/**
 * The data about keys that processes share through Redis, byte by byte: a gateway of another release must understand it, so that two
 * releases can run side by side. The record itself is in public-names/key-record.test.ts.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { forFile } from '../support/opened.ts';
import { hashToken, newToken } from '../../src/keys/token.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { redisIsWell, WITHIN } from '../support/world.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { appendRaw, JOURNAL } from '../support/journal.ts';
import { withClient } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

/** Tokens of another form than evalgate's, so that they can be the same every time. */
const TOKEN = 'a-token-from-elsewhere';
const HASH = '04bbf5cefd57485170559212f504de233455a7ca71e743b125330f005e5409f3';

let gateway: TestGateway;
const redis = await forFile(startRedis());
beforeEach(async () => {
  await redis.flush();
  gateway = await startTestGateway({ env: { REDIS_URL: redis.url, TRUSTED_PROXIES: '127.0.0.1/32' } });
  await redisIsWell(gateway);
});
afterEach(() => gateway.close());

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

/** The events of changes. */
async function changes(): Promise<readonly string[]> {
  const entries = await withClient(redis.url, (client) => client.xrange(JOURNAL, '-', '+'));
  return entries.map(([, fields]) => fields[5] ?? '').filter((event) => event.includes('"keys"'));
}

test('a change appends an event with the hashes of the keys', async () => {
  expect(hashToken(TOKEN)).toBe(HASH);
  await importKeys(TOKEN);
  await gateway.admin('PATCH', `/api/keys/${keyIdOf(TOKEN)}`, { status: 'deprecated' });
  await gateway.admin('PATCH', `/api/keys/${keyIdOf(TOKEN)}`, { status: 'deprecated' });
  await gateway.admin('DELETE', `/api/keys/${keyIdOf(TOKEN)}`);
  const event = `{"kind":"keys","hashes":["${HASH}"]}`;
  // The repeated one is written again, so that a replica can confirm it.
  expect(await changes()).toEqual([event, event, event, event]);
});

test('one event names up to a thousand keys; null stands for more', async () => {
  const tokens = Array.from({ length: 1001 }, (_, i) => `token-${i}`);
  await importKeys(...tokens.slice(0, 1000));
  await importKeys(...tokens.map((token) => `another-${token}`));
  const hashes = tokens.slice(0, 1000).map((token) => `"${hashToken(token)}"`);
  expect(await changes()).toEqual([`{"kind":"keys","hashes":[${hashes.join(',')}]}`, '{"kind":"keys","hashes":null}']);
});

test.each([HASH, null])('a change that another release makes and appends is in force (%s)', async (hash) => {
  await importKeys(TOKEN);
  const status = async (): Promise<number> => (await gateway.get('/v2/key', { key: TOKEN })).status;
  expect(await status()).toBe(200);
  await withClient(redis.url, async (client) => {
    const record = (await client.hget('evalgate:{keys}:records', HASH)) ?? '';
    await client.hset('evalgate:{keys}:records', HASH, record.replace('"active"', '"revoked"'));
    await appendRaw(client, { kind: 'keys', hashes: hash === null ? null : [hash] });
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
