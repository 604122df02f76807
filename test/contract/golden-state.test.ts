/**
 * The state that processes share in Redis, byte by byte: other processes, of this release and of the ones beside it, read
 * it. Random words are replaced; a change of anything else is a change of the format.
 */
import { afterAll, expect, test, vi } from 'vitest';
import { forFile } from '../support/opened.ts';
import { startTestGateway } from '../support/gateway.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const HEAD = 'evalgate:{cache}:head';
const PURGES = 'evalgate:{cache}:purges';
const TIMES = 'evalgate:{cache}:times';
const CHANNEL = 'evalgate:channel:cache:0:state';

const messages: string[] = [];

const redis = await forFile(startRedis());
const raw = await connectWhenUp(redis.url);
const subscriber = await connectWhenUp(redis.url);
await subscriber.psubscribe('evalgate:channel:cache:*:state');
subscriber.on('pmessage', (_pattern: string, channel: string, message: string) => {
  messages.push(`${channel} ${golden(message)}`);
});
const gateway = await forFile(startTestGateway({ env: { REDIS_URL: redis.url } }));
afterAll(async () => {
  subscriber.disconnect();
  raw.disconnect();
});

/** Histories and versions are UUIDs; a purge begins with an id of its own. */
function golden(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/(^|[0-9] )[\w-]{12} (?=\["(?:hard|soft)",)/g, '$1<id> ');
}

async function change(method: string, path: string, body?: unknown): Promise<void> {
  expect((await gateway.admin(method, `/api/cache/${path}`, body)).status).toBe(200);
}

async function head(): Promise<Record<string, string>> {
  const fields = await raw.hgetall(HEAD);
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, golden(value)]));
}

/** The messages published since the last call. */
async function published(count: number): Promise<readonly string[]> {
  await vi.waitUntil(() => messages.length >= count, { timeout: 10_000, interval: 5 });
  return messages.splice(0);
}

test('a new history', async () => {
  expect(await head()).toEqual({ history: '<uuid>', sequence: '0' });
  expect(await published(1)).toEqual([`${CHANNEL} look`]);
});

test('purges and their messages', async () => {
  await change('POST', 'purge', { tags: ['evaluation:ev_1', 'scorecard:sc_1'], exact: true });
  await change('POST', 'purge', { tags: ['class:list'], mode: 'soft' });
  // The first one has deleted what it ended; a soft one deletes nothing.
  expect(await head()).toEqual({ history: '<uuid>', sequence: '2', swept: '1 0 0' });
  expect((await raw.lrange(PURGES, 0, -1)).map(golden)).toEqual([
    '<id> ["hard",["evaluation:ev_1","scorecard:sc_1"]]',
    '<id> ["soft",["class:list"]]',
  ]);
  expect(await published(2)).toEqual([
    `${CHANNEL} purge <uuid> 1 <id> ["hard",["evaluation:ev_1","scorecard:sc_1"]]`,
    `${CHANNEL} purge <uuid> 2 <id> ["soft",["class:list"]]`,
  ]);
});

test('TTLs that are set, for good and for a while', async () => {
  await change('PUT', 'ttl/list', { fresh: '45s', stale: '0s' });
  await change('PUT', 'ttl/list', { fresh: '60s', error: '2h', for: '1h' });
  expect(await raw.hgetall(TIMES)).toEqual({
    'list.freshMs': '45000',
    'list.staleMs': '0',
    'list.freshMs.temporary': '60000 1768482000000',
    'list.errorMs.temporary': '7200000 1768482000000',
  });
  expect(await head()).toEqual({ history: '<uuid>', sequence: '2', swept: '1 0 0', times: '<uuid>' });
  await change('PUT', 'ttl/list', { error: '3h' });
  expect(await raw.hgetall(TIMES)).toEqual({
    'list.freshMs': '45000',
    'list.staleMs': '0',
    'list.errorMs': '10800000',
    'list.freshMs.temporary': '60000 1768482000000',
  });
  await change('DELETE', 'ttl/list');
  expect(await raw.hgetall(TIMES)).toEqual({});
  expect(await published(4)).toEqual(Array.from({ length: 4 }, () => `${CHANNEL} look`));
});

test('maintenance', async () => {
  await change('PUT', 'maintenance', { for: '30m' });
  expect((await head())['maintenance']).toBe('{"sinceMs":1768478400000,"untilMs":1768480200000,"by":"anonymous"}');
  await change('DELETE', 'maintenance');
  expect(await head()).toEqual({ history: '<uuid>', sequence: '2', swept: '1 0 0', times: '<uuid>' });
  expect(await published(2)).toEqual([`${CHANNEL} look`, `${CHANNEL} look`]);
});

test('the shared state never expires', async () => {
  await change('PUT', 'ttl/list', { fresh: '60s', for: '1h' });
  for (const name of [HEAD, PURGES, TIMES]) expect(await raw.pttl(name)).toBe(-1);
});
