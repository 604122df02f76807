/** A Redis that somebody else runs: one test file at a time has it, and it must be empty or have been ours before. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { connectWhenUp, UNCONTROLLED } from './redis-client.ts';
import type { TestRedis } from './redis.ts';

/** Marks a database that may be emptied. */
const MARKER = 'evalgate-test:database';
const LOCK = 'evalgate-test:lock';
const LOCK_TTL_MS = 15_000;
const RENEW_EVERY_MS = 5000;
const LOOK_EVERY_MS = 50;
const WAIT_MS = 55_000;

async function claim(client: Redis, owner: string): Promise<void> {
  const isOurs = (await client.exists(MARKER)) === 1 || (await client.dbsize()) === 0;
  if (!isOurs) throw new Error('The database of TEST_REDIS_URL holds keys; give an empty one, tests drop all of it.');
  await client.set(MARKER, '1');
  const untilMs = performance.now() + WAIT_MS;
  while ((await client.set(LOCK, owner, 'PX', LOCK_TTL_MS, 'NX')) === null) {
    if (performance.now() > untilMs) throw new Error('Other tests hold the database of TEST_REDIS_URL.');
    await sleep(LOOK_EVERY_MS);
  }
}

async function empty(client: Redis, owner: string | null): Promise<void> {
  const batch = client.multi().flushdb().set(MARKER, '1');
  if (owner !== null) batch.set(LOCK, owner, 'PX', LOCK_TTL_MS);
  await batch.exec();
}

/** Waits until no other test file has it. A second one in the same file would wait for the first to be closed. */
export async function borrowShared(url: string): Promise<TestRedis> {
  const client = await connectWhenUp(url, WAIT_MS);
  const owner = randomUUID();
  await claim(client, owner);
  await empty(client, owner);
  const renewal = setInterval(() => {
    client.pexpire(LOCK, LOCK_TTL_MS).catch(() => undefined);
  }, RENEW_EVERY_MS).unref();
  return {
    url,
    servers: [url],
    pid: null,
    flush: () => empty(client, owner),
    ...UNCONTROLLED,
    close: async () => {
      clearInterval(renewal);
      await empty(client, null);
      client.disconnect();
    },
  };
}
