/** Secrets in files change under a running gateway, which goes over to them; a file that cannot be used changes nothing. */
import { randomBytes } from 'node:crypto';
import { rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { openFolder } from '../support/files.ts';
import { forFile, forTest } from '../support/opened.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation } from '../support/records.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { atEach, namesIn, withClient } from '../support/redis/client.ts';
import { spawnCluster, spawnSentinels, startRedis, type TestRedis } from '../support/redis.ts';
import { createStoreServer } from '../support/store-server.ts';

/** The machine may do other things too. */
const SOON = { timeout: 15_000 };
const CHANGED = 'secrets changed';
const OLD_STAYS = 'a secret could not be read again: its old value stays in force';
const auditSchema = z.object({
  entries: z.array(z.object({ who: z.string(), action: z.string(), target: z.string() })),
});

const redis = await forFile(startRedis());
const store = await forFile(createStoreServer());
const folder = await forFile(openFolder());
store.put({ evaluations: Array.from({ length: 40 }, (_, index) => anEvaluation({ _id: `ev_${index}` })) });

/** Replaced as Kubernetes does it: at once, by another file. */
class SecretFile {
  readonly path: string;
  #versions = 0;

  constructor(name: string) {
    this.path = join(folder.path, name);
  }

  async write(text: string): Promise<void> {
    this.#versions += 1;
    const version = `${this.path}.${this.#versions}`;
    await writeFile(version, `${text}\n`);
    await symlink(version, `${version}.link`);
    await rename(`${version}.link`, this.path);
  }

  async remove(): Promise<void> {
    await rm(this.path);
  }
}

let files = 0;
async function fileOf(text: string): Promise<SecretFile> {
  files += 1;
  const file = new SecretFile(`secret-${files}`);
  await file.write(text);
  return file;
}

async function start(env: Readonly<Record<string, string>>): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start({
    env: { UPSTREAM_URL: store.url, DRAIN_DELAY: '0s', ...env },
  });
  onTestFinished(() => gateway.kill());
  return gateway;
}

/** Has it read the files again; resolves once it has gone over to what has changed. */
async function hangUp(gateway: GatewayProcess): Promise<void> {
  const before = gateway.logged('configuration reloaded').length;
  gateway.signal('SIGHUP');
  await expect.poll(() => gateway.logged('configuration reloaded').length, SOON).toBe(before + 1);
}

async function changes(gateway: GatewayProcess): Promise<readonly string[]> {
  const { entries } = auditSchema.parse(await gateway.administer('GET', '/api/audit'));
  return entries.filter(({ action }) => action === 'secret.change').map(({ target, who }) => `${target} by ${who}`);
}

async function secretsLine(gateway: GatewayProcess) {
  return (await gateway.readiness()).dependencies.find(({ name }) => name === 'secrets');
}

/** The id of the key that encrypted the copy in Redis. */
function keyIdOf(path: string): Promise<string | undefined> {
  return withClient(redis.url, async (client) => {
    const names = await namesIn(client, `evalgate:{cache-*${path.split('/').at(-1)}*`);
    const meta = await client.hget(names.find((name) => name.includes('}:copy-')) ?? '', 'meta');
    return /"keyId":"(\w+)"/.exec(meta ?? '')?.[1];
  });
}

let reads = 0;
/** A record that nobody has read before. */
const cold = (): string => `/v2/calls/ev_${(reads += 1)}`;
const tokensSent = (): readonly (string | undefined)[] => store.requests.map(({ headers }) => headers.authorization);

describe.each(['1', '2'])('with %s serving processes', (WORKERS) => {
  beforeAll(() => redis.flush());
  const shared = () => ({ WORKERS, REDIS_URL: redis.url });

  test("the store's token: read again when the store refuses it, and when it has changed", async () => {
    store.acceptOnly('first');
    const file = await fileOf('first');
    const gateway = await start({ ...shared(), UPSTREAM_TOKEN_FILE: file.path });
    const key = await gateway.issueKey();
    expect(await gateway.status(cold(), key)).toBe(200);
    await file.write('second');
    store.acceptOnly('second');
    store.forget();
    expect(await gateway.status(cold(), key)).toBe(200);
    expect(tokensSent()).toEqual(['Bearer first', 'Bearer second']);
    await file.write('third');
    await hangUp(gateway);
    store.acceptOnly('third');
    store.forget();
    // Both workers, sooner or later.
    for (let read = 0; read < 6; read += 1) {
      const response = await gateway.get(cold(), key, { connection: 'close' });
      expect(response.status).toBe(200);
    }
    expect(new Set(tokensSent())).toEqual(new Set(['Bearer third']));
    // Refused, and there is no other: the call is not repeated.
    store.acceptOnly('fourth');
    store.forget();
    expect(await gateway.status(cold(), key)).toBe(500);
    expect(store.requests).toHaveLength(1);
    expect(await changes(gateway)).toEqual(Array(2).fill('UPSTREAM_TOKEN_FILE by evalgate'));
    expect(gateway.log.join('')).not.toMatch(/second|third/);
  });

  test('admin tokens: the new ones are let in, and the old ones no more', async () => {
    const file = await fileOf('alice=first-of-alice');
    const gateway = await start({ ...shared(), UPSTREAM_TOKEN: 't', ADMIN_TOKEN_FILE: file.path });
    const status = async (token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' };
      return (await fetch(`${gateway.adminUrl}/api/whoami`, { headers })).status;
    };
    expect([await status('first-of-alice'), await status('second-of-alice')]).toEqual([200, 401]);
    await file.write('alice=second-of-alice');
    await hangUp(gateway);
    await expect.poll(() => status('first-of-alice'), SOON).toBe(401);
    for (let look = 0; look < 4; look += 1) {
      expect([await status('first-of-alice'), await status('second-of-alice')]).toEqual([401, 200]);
    }
  });

  test('encryption keys: the new one encrypts, and what the old one encrypted is still read', async () => {
    store.acceptOnly('t');
    const [first = '', second = ''] = Array.from({ length: 2 }, () => randomBytes(32).toString('base64'));
    const file = await fileOf(first);
    const env = { ...shared(), UPSTREAM_TOKEN: 't', CACHE_ENCRYPTION_KEYS_FILE: file.path };
    const gateway = await start(env);
    const key = await gateway.issueKey();
    const [one, other] = [cold(), cold()];
    expect(await gateway.status(one, key)).toBe(200);
    await file.write(`${second},${first}`);
    await hangUp(gateway);
    await expect.poll(() => changes(gateway), SOON).toContain('CACHE_ENCRYPTION_KEYS_FILE by evalgate');
    store.forget();
    expect(await gateway.status(other, key)).toBe(200);
    // A gateway that has not read it yet finds it in Redis.
    const next = await start(env);
    expect([await next.status(one, key), await next.status(other, key)]).toEqual([200, 200]);
    expect(store.requests).toHaveLength(1);
    const keyId = await keyIdOf(one);
    expect(keyId).toMatch(/^[0-9a-f]{8}$/);
    expect(await keyIdOf(other)).toMatch(new RegExp(`^(?!${keyId})[0-9a-f]{8}$`));
  });
});

test('a change is found without a signal; a file that cannot be used changes nothing and is reported until it can', async () => {
  store.acceptOnly('first');
  const [token, keys] = [await fileOf('first'), await fileOf(randomBytes(32).toString('base64'))];
  const gateway = await start({
    REDIS_URL: redis.url,
    UPSTREAM_TOKEN_FILE: token.path,
    CACHE_ENCRYPTION_KEYS_FILE: keys.path,
  });
  const key = await gateway.issueKey();
  expect(await secretsLine(gateway)).toEqual({
    name: 'secrets',
    status: 'ok',
    detail: 'in force as last read: UPSTREAM_TOKEN_FILE, CACHE_ENCRYPTION_KEYS_FILE',
  });
  await token.remove();
  await keys.write('c2hvcnQ=');
  await expect.poll(() => gateway.logged(OLD_STAYS).length, SOON).toBe(1);
  expect(await secretsLine(gateway)).toMatchObject({
    status: 'degraded',
    detail:
      'the old value stays in force: UPSTREAM_TOKEN_FILE: it cannot be read: there is no such file; CACHE_ENCRYPTION_KEYS_FILE: key 1 has 5 bytes instead of 32',
  });
  expect(await gateway.metric('evalgate_dependency_up', 'dependency="secrets"')).toBe(0);
  expect((await gateway.readiness()).code).toBe(200);
  expect(await gateway.status(cold(), key)).toBe(200);
  // One that is still faulty keeps no other from changing.
  store.acceptOnly('second');
  await token.write('second');
  expect(await gateway.status(cold(), key)).toBe(200);
  expect((await secretsLine(gateway))?.detail).toMatch(/^the old value stays in force: CACHE_ENCRYPTION_KEYS_FILE: /);
  await keys.write(randomBytes(32).toString('base64'));
  await expect.poll(async () => (await secretsLine(gateway))?.status, SOON).toBe('ok');
  await expect
    .poll(() => gateway.logged(CHANGED).map(({ secrets }) => secrets), SOON)
    .toEqual([['UPSTREAM_TOKEN_FILE'], ['CACHE_ENCRYPTION_KEYS_FILE']]);
});

/** Lets that user in with that password and no other, at every server. */
async function setPassword(at: Pick<TestRedis, 'servers'>, user: string, password: string): Promise<void> {
  await atEach(at, (client) =>
    client.call('ACL', 'SETUSER', user, 'on', 'resetpass', `>${password}`, '+@all', '~*', '&*'),
  );
}

/** Connections of that user, messages or not. */
async function connectionsOf(at: Pick<TestRedis, 'servers'>, user: string): Promise<number> {
  const lists = await atEach(at, async (client) => String(await client.call('CLIENT', 'LIST')));
  return lists.join('').match(new RegExp(` user=${user} `, 'g'))?.length ?? 0;
}

/** The address with that user. */
const as = (url: string, user: string, password: string): string =>
  url.replace('://', `://${user}:${encodeURIComponent(password)}@`);

test.each([
  ['one Redis', () => startRedis()],
  ['a Cluster', () => spawnCluster()],
  ['a primary with Sentinels', () => spawnSentinels()],
] as const)(
  '%s: its link goes over to another user, and loses no command and no message',
  async (_what, spawn) => {
    const server = await forTest(spawn());
    await setPassword(server, 'one', 'first');
    const link = new RedisLink({ url: as(server.url, 'one', 'first'), role: 'state', timeoutMs: 2000 });
    onTestFinished(() => link.close());
    const outages: string[] = [];
    const heard = new Set<string>();
    await expect.poll(() => link.isUp() && link.subscriber.isUp(), SOON).toBe(true);
    link.onDown((reason) => outages.push(`commands: ${reason.message}`));
    link.subscriber.onDown((reason) => outages.push(`messages: ${reason.message}`));
    await link.subscriber.subscribe('news', (message) => heard.add(message));
    // Without a pause, until the test has what it wants.
    let sent = 0;
    const over = new AbortController();
    onTestFinished(() => over.abort());
    const sending = (async () => {
      for (; !over.signal.aborted; sent += 1) await link.run((client) => client.publish('news', String(sent)));
    })();
    // The file may change before Redis knows the new user: the old one serves meanwhile.
    link.reconnect({ url: as(server.url, 'two', 'second') });
    await expect.poll(() => link.pendingReason?.message, SOON).toMatch(/WRONGPASS|AUTH/);
    await setPassword(server, 'two', 'second');
    await expect.poll(() => link.pendingReason, SOON).toBe(null);
    await expect.poll(() => connectionsOf(server, 'one'), SOON).toBe(0);
    expect(await connectionsOf(server, 'two')).toBeGreaterThanOrEqual(2);
    const end = await link.subscriber.subscribe('more', (message) => heard.add(message));
    over.abort();
    await sending;
    await link.run((client) => client.publish('more', 'over'));
    await expect.poll(() => heard.has('over'), SOON).toBe(true);
    end();
    await expect.poll(() => heard.size, SOON).toBe(sent + 1);
    expect(outages).toEqual([]);
  },
  60_000,
);

test('a link that was hung up, and goes over to a new password at once, hears each message once', async () => {
  await setPassword(redis, 'late', 'first');
  const link = new RedisLink({ url: as(redis.url, 'late', 'first'), role: 'state', timeoutMs: 2000 });
  onTestFinished(() => link.close());
  const isUp = (): boolean => link.isUp() && link.subscriber.isUp();
  await expect.poll(isUp, SOON).toBe(true);
  await setPassword(redis, 'late', 'second');
  // The subscriber is about to connect again by itself when it is given other credentials.
  const { promise: lost, resolve } = Promise.withResolvers<void>();
  link.subscriber.onDown(() => {
    link.reconnect({ url: as(redis.url, 'late', 'second') });
    resolve();
  });
  await withClient(redis.url, (client) => client.call('CLIENT', 'KILL', 'USER', 'late'));
  await lost;
  await expect.poll(isUp, SOON).toBe(true);
  const [sent, heard]: [string[], string[]] = [[], []];
  await link.subscriber.subscribe('news', (message) => heard.push(message));
  for (const beganAtMs = performance.now(); performance.now() - beganAtMs < 300; sent.push(String(sent.length))) {
    await link.run((client) => client.publish('news', String(sent.length)));
  }
  await expect.poll(() => heard.length, SOON).toBeGreaterThanOrEqual(sent.length);
  expect(heard).toEqual(sent);
  await expect.poll(() => connectionsOf(redis, 'late'), SOON).toBe(2);
});

describe.each(['1', '2'])('Redis behind %s serving processes', (WORKERS) => {
  beforeAll(() => redis.flush());
  test('goes over to a new password, and is found again when the old one is refused at once', async () => {
    store.acceptOnly('t');
    await setPassword(redis, 'gate', 'first');
    const file = await fileOf(as(redis.url, 'gate', 'first'));
    const gateway = await start({ WORKERS, UPSTREAM_TOKEN: 't', REDIS_URL_FILE: file.path, LOG_LEVEL: 'info' });
    const key = await gateway.issueKey();
    expect(await gateway.status(cold(), key)).toBe(200);
    const ids = async (): Promise<readonly string[]> => {
      const list = await withClient(redis.url, async (client) => String(await client.call('CLIENT', 'LIST')));
      return [...list.matchAll(/^id=(\d+) .* user=gate /gm)].map(([, id = '']) => id);
    };
    const before = new Set(await ids());
    await setPassword(redis, 'gate', 'second');
    await file.write(as(redis.url, 'gate', 'second'));
    await hangUp(gateway);
    await expect.poll(async () => (await ids()).filter((id) => before.has(id)), SOON).toEqual([]);
    expect(await gateway.status(cold(), key)).toBe(200);
    // Without notice: nobody of that user stays connected, and the old password is refused.
    await setPassword(redis, 'gate', 'third');
    await withClient(redis.url, (client) => client.call('CLIENT', 'KILL', 'USER', 'gate'));
    expect(await gateway.status(cold(), key)).toBe(200);
    await file.write(as(redis.url, 'gate', 'third'));
    await hangUp(gateway);
    await expect.poll(async () => (await gateway.admin('GET', '/api/keys')).status, SOON).toBe(200);
    await gateway.issueKey();
    // The worker that made the entry may find Redis later than the one that answers here.
    await expect.poll(() => changes(gateway), SOON).toEqual(Array(2).fill('REDIS_URL_FILE by evalgate'));
    expect(gateway.log.join('')).not.toMatch(/gate:(?:first|second|third)/);
    // Another Redis has other keys and limits.
    await file.write('redis://127.0.0.1:1');
    await hangUp(gateway);
    expect((await secretsLine(gateway))?.detail).toBe(
      'the old value stays in force: REDIS_URL_FILE: it leads to another Redis, which needs a restart',
    );
  }, 60_000);
});
