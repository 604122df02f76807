/** A Redis that somebody else runs: one test file at a time has it, and it must be empty or have been ours before. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestRedis } from '../redis.ts';
import { connectWhenUp } from './client.ts';

/** Marks a database that may be emptied. */
const MARKER = 'evalgate-test:database';
const LOCK = 'evalgate-test:lock';
const LOCK_TTL_MS = 15_000;
const LOOK_EVERY_MS = 50;
const WAIT_MS = 55_000;

/** Waits until no other test file has it. A second one in the same file would wait for the first to be closed. */
export async function borrowShared(url: string): Promise<TestRedis> {
  const [client, owner] = [await connectWhenUp(url, WAIT_MS), randomUUID()];
  const isOurs = (await client.exists(MARKER)) === 1 || (await client.dbsize()) === 0;
  if (!isOurs) throw new Error('The database of TEST_REDIS_URL holds keys; give an empty one, tests drop all of it.');
  await client.set(MARKER, '1');
  const untilMs = performance.now() + WAIT_MS;
  while ((await client.set(LOCK, owner, 'PX', LOCK_TTL_MS, 'NX')) === null) {
    if (performance.now() > untilMs) throw new Error('Other tests hold the database of TEST_REDIS_URL.');
    await sleep(LOOK_EVERY_MS);
  }
  const renew = (): void => void client.pexpire(LOCK, LOCK_TTL_MS).catch(() => undefined);
  const renewal = setInterval(renew, LOCK_TTL_MS / 3).unref();
  const flush = async (): Promise<void> => {
    await client.multi().flushdb().set(MARKER, '1').set(LOCK, owner, 'PX', LOCK_TTL_MS).exec();
  };
  await flush();
  return {
    url,
    servers: [url],
    flush,
    pause: refuse,
    resume: refuse,
    kill: refuse,
    restart: refuse,
    close: async () => {
      clearInterval(renewal);
      await client.multi().flushdb().set(MARKER, '1').exec();
      client.disconnect();
    },
  };
}

async function refuse(): Promise<never> {
  throw new Error('This Redis is not under the control of the test: start it with `controls`.');
}
