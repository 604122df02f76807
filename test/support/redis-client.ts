import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

const CONNECT_TIMEOUT_MS = 1000;
const ATTEMPT_EVERY_MS = 10;

/** A plain client for test support, once the server answers. The caller disconnects it. Rejects after `timeoutMs`. */
export async function connectWhenUp(url: string, timeoutMs: number): Promise<Redis> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const client = new Redis(url, {
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      commandTimeout: CONNECT_TIMEOUT_MS,
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
    await sleep(ATTEMPT_EVERY_MS);
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

function refuse(): never {
  throw new Error('This Redis is not under the control of the test: start it with `controls`.');
}

/** The controls of a Redis that was not spawned here. */
export const UNCONTROLLED = {
  pause: refuse,
  resume: refuse,
  kill: async (): Promise<void> => refuse(),
  restart: async (): Promise<void> => refuse(),
};
