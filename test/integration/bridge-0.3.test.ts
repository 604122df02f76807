/** 0.3 and 0.4 over one Redis: what 0.3 writes there and says is in force here, and the other way round. */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { identityOf } from '../../src/backend/store.ts';
import { hashToken } from '../../src/keys/token.ts';
import { GET_CALL } from '../http/common/endpoints.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';
import { forFile } from '../support/opened.ts';
import { MISS, World } from '../support/world.ts';

const HEAD = 'evalgate:{cache}:head';
const PURGES = 'evalgate:{cache}:purges';
const TIMES = 'evalgate:{cache}:times';
const VERSION = 'evalgate:{keys}:version';
const STATE_CHANNEL = 'evalgate:channel:cache:0:state';
const KEYS_CHANNEL = 'evalgate:channel:keys:0:changes';
const DAY = 24 * 3_600_000;

const redis = await forFile(startRedis());
const raw = await connectWhenUp(redis.url);
const listener = await connectWhenUp(redis.url);
const heard: string[] = [];
listener.on('message', (_channel: string, message: string) => heard.push(message));
await listener.subscribe(STATE_CHANNEL, KEYS_CHANNEL);
await raw.hset(HEAD, { history: 'of-0.3', sequence: 0 });
await raw.set(VERSION, 'first');
const world = await forFile(World.start('redis', { redisUrl: redis.url }));
afterAll(() => {
  raw.disconnect();
  listener.disconnect();
});
beforeEach(() => {
  heard.length = 0;
  world.clock.advance(1000);
});

const here = (method: string, path: string, body?: unknown) => world.here.admin(method, path, body);
const TTL = '/api/cache/ttl';
const MAINTENANCE = '/api/cache/maintenance';
const listWith = (times: object): unknown =>
  expect.arrayContaining([expect.objectContaining({ class: 'list', ...times })]);

test('a purge by 0.3 is in force at all of 0.4, once', async () => {
  const reader = await world.reader(GET_CALL);
  for (const gateway of world.gateways) await reader.ask(gateway);
  const purge = 'AAAAAAAAAAAA ["hard",["class:evaluation"]]';
  await raw
    .multi()
    .hincrby(HEAD, 'sequence', 1)
    .rpush(PURGES, purge)
    .publish(STATE_CHANNEL, `purge of-0.3 1 ${purge}`)
    .exec();
  await world.everywhere(async (gateway) => expect((await reader.explain(gateway)).memory).toBeNull());
  world.clock.advance(1);
  expect(await reader.ask(world.there)).toMatchObject({ cache: MISS });
  const entries = await raw.xrange('evalgate:{keys}:journal', '-', '+');
  expect(entries.filter(([, fields]) => fields.join(' ').includes('"from03":"of-0.3 1"'))).toHaveLength(1);
});

test('a purge by 0.4 is one more of 0.3, once, and 0.3 hears of it', async () => {
  const before = await raw.llen(PURGES);
  await here('POST', '/api/cache/purge', { tags: ['class:rubric'] });
  await expect.poll(() => raw.llen(PURGES)).toBe(before + 1);
  const [purge = ''] = await raw.lrange(PURGES, -1, -1);
  expect(purge).toMatch(/^0\.4-\S+ \["hard",\["class:rubric"\]\]$/);
  const sequence = await raw.hget(HEAD, 'sequence');
  await expect.poll(() => heard).toContain(`purge of-0.3 ${sequence} ${purge}`);
  // Nor does it come back as a purge by 0.3.
  const entries = await raw.xrange('evalgate:{keys}:journal', '-', '+');
  expect(entries.filter(([, fields]) => fields.join(' ').includes('class:rubric'))).toHaveLength(1);
});

test('a key that 0.3 revokes is refused by 0.4, and the other way round', async () => {
  const [byOld, byNew] = [await world.here.issue(), await world.here.issue()];
  const status = async (token: string) => (await world.there.get('/v2/key', { key: token })).status;
  expect([await status(byOld.token), await status(byNew.token)]).toEqual([200, 200]);
  const hash = hashToken(byOld.token);
  const record = (await raw.hget('evalgate:{keys}:records', hash)) ?? '';
  const before = await raw.get(VERSION);
  await raw
    .multi()
    .hset('evalgate:{keys}:records', hash, record.replace('"active"', '"revoked"'))
    .set(VERSION, 'by-0.3')
    .publish(KEYS_CHANNEL, `${before} by-0.3 ${hash}`)
    .exec();
  await expect.poll(() => status(byOld.token), { timeout: 5000 }).toBe(403);
  await here('DELETE', `/api/keys/${byNew.keyId}`);
  await expect
    .poll(() => heard.at(-1), { timeout: 5000 })
    .toMatch(new RegExp(`^\\S+ 0\\.4-\\d+ ${hashToken(byNew.token)}$`));
  expect(await raw.get(VERSION)).toMatch(/^0\.4-/);
});

test('times and maintenance that 0.4 sets are those of 0.3', async () => {
  await here('PUT', `${TTL}/list`, { fresh: '45s', stale: '1m' });
  await here('PUT', `${TTL}/list`, { fresh: '90s', for: '1h' });
  await here('PUT', MAINTENANCE, { for: '10m' });
  await expect
    .poll(() => raw.hgetall(TIMES), { timeout: 5000 })
    .toEqual({
      'list.freshMs': '45000',
      'list.staleMs': '60000',
      'list.freshMs.temporary': `90000 ${world.clock.nowMs() + 3_600_000}`,
    });
  await expect.poll(() => raw.hget(HEAD, 'maintenance'), { timeout: 5000 }).toContain('"by":"anonymous"');
  await here('DELETE', MAINTENANCE);
  await here('DELETE', `${TTL}/list`);
  await expect.poll(() => raw.hgetall(TIMES), { timeout: 5000 }).toEqual({});
  await expect.poll(() => raw.hget(HEAD, 'maintenance'), { timeout: 5000 }).toBeNull();
  expect(heard).toContain('look');
});

test('times and maintenance that 0.3 sets and ends are in force at 0.4', async () => {
  const untilMs = world.clock.nowMs() + 600_000;
  const maintenance = JSON.stringify({ sinceMs: untilMs - 700_000, untilMs, by: 'old' });
  await raw
    .multi()
    .hset(TIMES, { 'list.freshMs': '12000', 'list.errorMs.temporary': `7200000 ${untilMs}` })
    .hset(HEAD, { times: 'by-0.3', maintenance })
    .exec();
  await world.everywhere(async (gateway) => {
    expect((await gateway.admin('GET', TTL)).json).toMatchObject({ classes: listWith({ fresh: '12s', error: '2h' }) });
    expect((await gateway.admin('GET', MAINTENANCE)).json).toMatchObject({ active: true, by: 'old' });
  });
  await raw.multi().hdel(HEAD, 'maintenance').del(TIMES).exec();
  await world.everywhere(async (gateway) => {
    expect((await gateway.admin('GET', TTL)).json).toMatchObject({ classes: listWith({ fresh: '30s', error: '1h' }) });
    expect((await gateway.admin('GET', MAINTENANCE)).json).toMatchObject({ active: false });
  });
});

test('what is left of 0.3 is unlinked a day after its last process was seen', async () => {
  const copies = ['a', 'b'].map(
    (id) => `evalgate:{cache-${identityOf({ url: world.store.url })}-v2%3a%7brubric%3a${id}%7d}`,
  );
  for (const name of copies) await raw.hset(name, { meta: '{}', body: '' });
  world.clock.advance(DAY + 120_000);
  await expect.poll(() => raw.exists(HEAD, PURGES, TIMES, VERSION), { timeout: 5000 }).toBe(0);
  expect(await raw.exists(...copies)).toBe(0);
  await here('POST', '/api/cache/purge', { tags: ['class:rubric'] });
  expect(await raw.exists(HEAD, PURGES)).toBe(0);
});
