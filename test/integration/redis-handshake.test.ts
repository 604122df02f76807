/** A Redis that refuses a command with which each connection begins is not used, and what it says is shown word for word. */
import { afterAll, describe, expect, test, vi } from 'vitest';
import { readinessOf } from '../support/admin.ts';
import { runCli } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { forFile, forTest } from '../support/opened.ts';
import { dependency, redisIsWell, WITHIN } from '../support/world.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { launchRedis, onHost } from '../support/redis/server.ts';
import { redisSource } from '../support/redis/source.ts';

const redis = await forFile(onHost(await redisSource(), 1, (host, [port = 0]) => launchRedis(host, port)));
const client = await connectWhenUp(redis.url, 5000);
afterAll(() => client.disconnect());
await client.acl('SETUSER', 'nameless', 'on', '>sesame-opens', '~*', '&*', '+@all', '-client');
await client.acl('SETUSER', 'bound', 'on', '>sesame-opens', '~*', '&*', '+@all', '-select');

const start = (env: Readonly<Record<string, string>>): Promise<TestGateway> =>
  forTest(startTestGateway({ env: { REDIS_URL: redis.url, ...env } }));

const as = (credentials: string): string => redis.url.replace('redis://', `redis://${credentials}@`);
const CASES: readonly (readonly [what: string, url: () => string, finding: string])[] = [
  [
    'SELECT of a database that it has not',
    () => `${redis.url}/16`,
    'has no database 16 (ERR DB index is out of range): give another number in REDIS_URL, or raise "databases" there',
  ],
  [
    'SELECT',
    () => `${as('bound:sesame-opens')}/2`,
    "refuses commands to the user of REDIS_URL (NOPERM this user has no permissions to run the 'select' command): grant its user ~evalgate:* &evalgate:* +@all -@dangerous +info, and rename no command",
  ],
  [
    'AUTH, having no password',
    () => as(':sesame-opens'),
    'takes no password, and REDIS_URL has one (ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?): leave it out there, or set it in Redis',
  ],
  [
    'AUTH',
    () => as('nameless:wrong'),
    'refuses the user or the password of REDIS_URL (WRONGPASS invalid username-password pair or user is disabled.)',
  ],
];

describe.each(CASES)('a Redis that refuses %s', (_, url, finding) => {
  test('keeps a gateway from becoming ready, and lets no key of database 0 in', async () => {
    const elsewhere = await start({});
    await redisIsWell(elsewhere);
    const key = await elsewhere.issueKey();
    const gateway = await start({ REDIS_URL: url() });
    const said = `degraded: ${finding}: not ready until it has answered once`;
    await vi.waitFor(async () => expect(await dependency(gateway, 'redis-state')).toBe(said), WITHIN);
    expect((await readinessOf(gateway)).status).toBe('starting');
    expect((await gateway.get('/v2/key', { key })).status).toBe(500);
    expect(gateway.logLines.join('')).not.toContain('sesame-opens');
  });

  test('is found by the doctor, with what to do', async () => {
    const { status, stdout } = await runCli(['doctor'], { env: { REDIS_URL: url() } });
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/^fail +redis +REDIS_URL: Redis at .* can't be used \(.*\)\n +What to do: \S/m),
    ]);
    expect(stdout).not.toContain('sesame-opens');
  });
});

test('a cache Redis without the database of its address is not used, and the rest works', async () => {
  const gateway = await start({ REDIS_CACHE_URL: `${redis.url}/16` });
  await vi.waitFor(
    async () =>
      expect(await dependency(gateway, 'redis-cache')).toBe(
        'degraded: has no database 16 (ERR DB index is out of range): give another number in REDIS_CACHE_URL, or raise "databases" there: this process goes on by itself',
      ),
    WITHIN,
  );
  await vi.waitFor(async () => expect((await readinessOf(gateway)).status).toBe('ready'), WITHIN);
  expect((await gateway.get('/v2/calls/none', { key: await gateway.issueKey() })).status).toBe(404);
  expect(await client.keys('evalgate:{cache-*')).toEqual([]);
});

test('CLIENT is a nicety: a user who may not send it has a gateway that works', async () => {
  const gateway = await start({ REDIS_URL: as('nameless:sesame-opens') });
  await redisIsWell(gateway);
  expect((await gateway.get('/v2/calls/none', { key: await gateway.issueKey() })).status).toBe(404);
});
