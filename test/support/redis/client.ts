/** Plain clients for test support. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

const ATTEMPT_TIMEOUT_MS = 1000;
const LOOK_EVERY_MS = 10;
const STARTED_WITHIN_MS = 30_000;

/** Resolves once the server answers; the caller disconnects the client. Rejects after `timeoutMs`. */
export async function connectWhenUp(url: string, timeoutMs = STARTED_WITHIN_MS): Promise<Redis> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const client = new Redis(url, {
      lazyConnect: true,
      connectTimeout: ATTEMPT_TIMEOUT_MS,
      commandTimeout: ATTEMPT_TIMEOUT_MS,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.disconnect();
      if (performance.now() > untilMs) throw new Error(`No Redis answers at ${url}.`, { cause: error });
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Runs one thing with a client of its own. */
export async function withClient<T>(url: string, run: (client: Redis) => Promise<T>): Promise<T> {
  const client = await connectWhenUp(url, 5000);
  try {
    return await run(client);
  } finally {
    client.disconnect();
  }
}

/** Looks at each until it is so; a look that fails counts as not yet. Rejects after half a minute. */
export async function untilAll<T>(all: readonly T[], what: string, isSo: (one: T) => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + STARTED_WITHIN_MS;
  const look = async (one: T): Promise<void> => {
    while (!(await isSo(one).catch(() => false))) {
      if (performance.now() > untilMs) throw new Error(`Waited in vain: ${what}.`);
      await sleep(LOOK_EVERY_MS);
    }
  };
  await Promise.all(all.map(look));
}

interface Servers {
  readonly servers: readonly string[];
}

/** Cuts all connections for messages, at each server; resolves with how many there were. */
export async function cutSubscribers({ servers }: Servers): Promise<number> {
  return sum(servers, async (client) => Number(await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
}

/** How many connections for messages all servers have. */
export async function countSubscribers({ servers }: Servers): Promise<number> {
  return sum(
    servers,
    async (client) => String(await client.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).match(/^id=/gm)?.length ?? 0,
  );
}

async function sum(servers: readonly string[], count: (client: Redis) => Promise<number>): Promise<number> {
  const counts = await Promise.all(servers.map((url) => withClient(url, count)));
  return counts.reduce((total, one) => total + one, 0);
}
