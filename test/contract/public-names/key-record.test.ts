/** The key record in Redis, as 0.1 stores it: a later version must be able to read it as it stands. */
import { beforeEach, expect, test, vi } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { hashToken } from '../../../src/keys/token.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';
import { withClient } from '../../support/redis/client.ts';
import { startRedis } from '../../support/redis.ts';
import { expectPinned } from './pin.ts';

/** A token of another form than evalgate's, so that it can be the same every time. */
const TOKEN = 'a-token-from-elsewhere';
const LINE = {
  keyId: 'key_golden',
  hash: hashToken(TOKEN),
  name: 'Golden',
  status: 'active',
  workspaceIds: [WORKSPACE_A, WORKSPACE_B],
  scopes: ['reports.read', 'calls.read'],
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2027-01-01T00:00:00.000Z',
  limits: { perMinute: 30, perHour: null },
  quotaId: 'key_predecessor',
};

const redis = await forFile(startRedis());
beforeEach(() => redis.flush());

/** All that the registry holds, as commands that would write it again. */
function stored(): Promise<readonly string[]> {
  return withClient(redis.url, async (client) => {
    const names = ['ids', 'records', 'used'].map((part) => `evalgate:{keys}:${part}`);
    const lines = await Promise.all(
      names.map(async (name) =>
        Object.entries(await client.hgetall(name)).map(([field, value]) => `HSET ${name} ${field} ${value}`),
      ),
    );
    return lines.flat();
  });
}

const GOLDEN = [
  `HSET evalgate:{keys}:ids key_golden ${LINE.hash}`,
  `HSET evalgate:{keys}:records ${LINE.hash} {"keyId":"key_golden","hash":"${LINE.hash}","name":"Golden","status":"active","workspaceIds":["${WORKSPACE_A}","${WORKSPACE_B}"],"scopes":["reports.read","calls.read"],"createdAtMs":1767225600000,"expiresAtMs":1798761600000,"limits":{"perMinute":30,"perHour":null},"quotaId":"key_predecessor"}`,
  `HSET evalgate:{keys}:used ${LINE.hash} 1768478400000`,
];

test('a key is stored exactly so, with its id and the time of its last use', async () => {
  const gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
  const imported = await gateway.admin('POST', '/api/keys/import', { keys: [LINE] });
  expect(imported.json).toEqual({ added: 1, replaced: 0, unchanged: 0, leftOut: 0 });
  expect((await gateway.get('/v2/key', { key: TOKEN })).status).toBe(200);
  await gateway.close();
  const lines = await stored();
  expect(lines).toEqual(GOLDEN);
  await expectPinned('key-record.txt', lines);
});

test('a record that another version wrote is read as it stands, and what it has beyond does no harm', async () => {
  await withClient(redis.url, async (client) => {
    for (const line of GOLDEN) {
      const [, name = '', field = '', value = ''] = line.split(/ (.+?) (.+?)(?: (.*))?$/s);
      await client.hset(name, field, value.replace(/^\{/, '{"later":1,'));
    }
  });
  const gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
  try {
    const { status, json, headers } = await gateway.get('/v2/key', { key: TOKEN });
    expect([status, headers['x-ratelimit-minute-limit']]).toEqual([200, '30']);
    expect(json).toMatchObject({ key: { id: 'key_golden', scopes: ['reports.read', 'calls.read'] } });
    const shown = z.object({ key: z.unknown() }).parse((await gateway.admin('GET', '/api/keys/key_golden')).json);
    const { hash: _, ...rest } = LINE;
    expect(shown.key).toMatchObject({ ...rest, lastUsedAt: '2026-01-15T12:00:00.000Z' });
    await gateway.admin('PATCH', '/api/keys/key_golden', { status: 'deprecated' });
    await vi.waitUntil(async () => (await gateway.get('/v2/key', { key: TOKEN })).status === 403);
  } finally {
    await gateway.close();
  }
});

test('K11: a key that is bound to addresses has them in its record, beside the rest', async () => {
  const gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
  const keys = [{ ...LINE, from: ['10.0.0.0/8', '::1'] }];
  expect((await gateway.admin('POST', '/api/keys/import', { keys })).status).toBe(200);
  await gateway.close();
  const record = await withClient(redis.url, (client) => client.hget('evalgate:{keys}:records', LINE.hash));
  const golden = GOLDEN.find((line) => line.includes(':records'))?.replace(/^HSET \S+ \S+ /, '');
  expect(record).toBe(golden?.replace(/\}$/, ',"from":["10.0.0.0/8","::1/128"]}'));
});
