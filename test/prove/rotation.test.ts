/** Each secret changes under load, also with the old one refused at once: no read is lost. */
import { randomBytes } from 'node:crypto';
import { mkdtempDisposable, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { Fleet } from '../support/fleet.ts';
import { withClient } from '../support/redis/client.ts';
import { count, ms, prove } from './bar.ts';

const PER_SECOND = 300;
const IN_FORCE_WITHIN_MS = 10_000;
const SETTLED_AFTER_MS = 1000;
const GIVE_UP_MS = 30_000;
const USER = 'gate';

async function until(isSo: () => Promise<boolean> | boolean, sinceMs: number): Promise<number> {
  while (!(await isSo())) {
    if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error('The new secret is not in force.');
    await sleep(50);
  }
  return performance.now() - sinceMs;
}

test('no read is lost while a secret changes', async (context) => {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtempDisposable(join(tmpdir(), 'evalgate-rotation-'));
  stack.defer(() => folder.remove());
  const pathOf = (name: string): string => join(folder.path, name);
  const write = async (name: string, secret: string): Promise<void> => {
    await writeFile(pathOf(`${name}.new`), secret);
    await rename(pathOf(`${name}.new`), pathOf(name));
  };
  await writeFile(pathOf('config.yaml'), 'log: {requests: off}\n');
  const [oldKey = '', newKey = ''] = Array.from({ length: 2 }, () => randomBytes(32).toString('base64'));
  const secrets = { upstream: 'first', admin: 'ann=first-of-ann', keys: oldKey, redis: '' };
  for (const [name, secret] of Object.entries(secrets)) await write(name, secret);
  const fleet = await Fleet.start({ gateways: 0, redis: {}, env: { CONFIG_FILE: pathOf('config.yaml') } });
  stack.defer(() => fleet.close());
  const atRedis = (...words: readonly string[]): Promise<unknown> =>
    withClient(fleet.redis.url, (client) => client.call(words[0] ?? '', words.slice(1)));
  const allow = (password: string): Promise<unknown> =>
    atRedis('ACL', 'SETUSER', USER, 'on', 'resetpass', `>${password}`, '+@all', '~*', '&*');
  const urlWith = (password: string): string => fleet.redis.url.replace('://', `://${USER}:${password}@`);
  const idsAtRedis = async (): Promise<readonly string[]> =>
    [...String(await atRedis('CLIENT', 'LIST')).matchAll(/^id=(\d+) .* user=gate /gm)].map(([, id = '']) => id);
  await allow('first');
  await write('redis', urlWith('first'));
  fleet.store.server.acceptOnly('first');
  const files = {
    LOG_LEVEL: 'info',
    UPSTREAM_TOKEN: '',
    UPSTREAM_TOKEN_FILE: pathOf('upstream'),
    REDIS_URL: '',
    REDIS_URL_FILE: pathOf('redis'),
    CACHE_ENCRYPTION_KEYS_FILE: pathOf('keys'),
  };
  const one = await fleet.add(files);
  const two = await fleet.add({ ...files, WORKERS: '2', ADMIN_TOKEN_FILE: pathOf('admin') });
  const isAdmitted = async (token: string): Promise<boolean> =>
    (await fetch(`${two.adminUrl}/api/whoami`, { headers: { authorization: `Bearer ${token}` } })).ok;
  const load = await fleet.load();
  // A fifth of them reach the store.
  const warm = Array.from({ length: 8 }, (_, index) => `/v2/calls/warm_${index}`);
  const paths = [...warm, '/v2/calls/cold_{n}', '/v2/calls?search=s{n}'];
  const targets = fleet.targets(paths, await one.issueKey());
  const isNoticed = (name: string, times: number): boolean =>
    [one, two].every(
      (gateway) => gateway.logged('secrets changed').filter(({ secrets: all }) => String(all) === name).length >= times,
    );
  await load.run(targets, { perSecond: PER_SECOND / 3, forMs: 2000 });

  /** `change` resolves once the new secret is written, with what tells that it is in force. */
  const rotate = async (name: string, change: () => Promise<() => Promise<boolean> | boolean>): Promise<void> => {
    await load.begin(targets, PER_SECOND);
    await sleep(SETTLED_AFTER_MS);
    const isInForce = await change();
    const tookMs = await until(isInForce, performance.now());
    await sleep(SETTLED_AFTER_MS);
    const samples = await load.end();
    const lost = samples.filter(({ status }) => status !== 200);
    const statuses = lost.length === 0 ? '' : ` (${[...new Set(lost.map(({ status }) => status))].join(', ')})`;
    prove(context, {
      name: `rotation: ${name}`,
      bar: `in force within ${ms(IN_FORCE_WITHIN_MS)}, 0 of ${PER_SECOND} reads/s lost`,
      measured: `in force after ${ms(tookMs)}; ${count(lost.length)} of ${count(samples.length)} reads lost${statuses}`,
      ok: tookMs <= IN_FORCE_WITHIN_MS && lost.length === 0,
    });
  };

  await rotate('token of the store', async () => {
    fleet.store.server.acceptOnly('first', 'second');
    await write('upstream', 'second');
    return () => isNoticed('UPSTREAM_TOKEN_FILE', 1);
  });
  await rotate('token of the store, the old one refused at once', async () => {
    await write('upstream', 'third');
    fleet.store.server.acceptOnly('third');
    return () => isNoticed('UPSTREAM_TOKEN_FILE', 2);
  });
  await rotate('admin token, the old one refused at once', async () => {
    await write('admin', 'ann=second-of-ann');
    return async () => (await isAdmitted('second-of-ann')) && !(await isAdmitted('first-of-ann'));
  });
  await rotate('encryption keys', async () => {
    await write('keys', `${newKey},${oldKey}`);
    return () => isNoticed('CACHE_ENCRYPTION_KEYS_FILE', 1);
  });
  await rotate('encryption keys, the old one dropped', async () => {
    await write('keys', newKey);
    return () => isNoticed('CACHE_ENCRYPTION_KEYS_FILE', 2);
  });
  const isReplaced = async (): Promise<() => Promise<boolean>> => {
    const before = new Set(await idsAtRedis());
    return async () => {
      const now = await idsAtRedis();
      return now.length > 0 && !now.some((id) => before.has(id));
    };
  };
  await rotate('password of Redis', async () => {
    const isInForce = await isReplaced();
    await allow('second');
    await write('redis', urlWith('second'));
    return isInForce;
  });
  await rotate('password of Redis, connections with the old one ended at once', async () => {
    await allow('third');
    await atRedis('CLIENT', 'KILL', 'USER', USER);
    // The file is late.
    await sleep(2000);
    await write('redis', urlWith('third'));
    return async () => isNoticed('REDIS_URL_FILE', 2) && (await idsAtRedis()).length >= 3 * 4;
  });
}, 300_000);
