/** A Redis in a container, where a daemon runs and has the image or can get it. */
import { existsSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { connect, type NetConnectOpts } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { UNCONTROLLED, withClient } from './redis-client.ts';
import type { TestRedis } from './redis.ts';

const IMAGE = 'redis:8-alpine';
const REDIS_PORT = 6379;
const PROBE_TIMEOUT_MS = 50;
const START_TIMEOUT_MS = 30_000;
/** A daemon that could not start it is left alone for so long, so that not every test file waits for it. */
const GIVE_UP_FOR_MS = 10 * 60_000;
const GAVE_UP = resolve(import.meta.dirname, '../../.cache/redis/docker-gave-up.txt');

/** Where daemons listen; loading the client for containers takes much longer than to knock there. */
function daemonAddresses(): NetConnectOpts[] {
  const host = process.env['DOCKER_HOST'];
  if (host !== undefined && host !== '') {
    if (host.startsWith('unix://')) return [{ path: host.slice('unix://'.length) }];
    const { hostname, port } = new URL(host);
    return [{ host: hostname, port: Number(port) || 2375 }];
  }
  const runtime = process.env['XDG_RUNTIME_DIR'];
  const sockets = ['/var/run/docker.sock', join(homedir(), '.docker/run/docker.sock')];
  if (runtime !== undefined) sockets.push(join(runtime, 'docker.sock'));
  return sockets.filter((path) => existsSync(path)).map((path) => ({ path }));
}

function answers(address: NetConnectOpts): Promise<boolean> {
  return new Promise((settle) => {
    const socket = connect(address);
    const end = (isThere: boolean): void => {
      socket.destroy();
      settle(isThere);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => end(false));
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}

async function hasDaemon(): Promise<boolean> {
  for (const address of daemonAddresses()) {
    if (await answers(address)) return true;
  }
  return false;
}

async function gaveUpLately(): Promise<boolean> {
  const since = await stat(GAVE_UP).catch(() => null);
  return since !== null && Date.now() - since.mtimeMs < GIVE_UP_FOR_MS;
}

async function run(): Promise<TestRedis> {
  // The helper that cleans up after a crash needs an image of its own, which a machine without a registry can't get.
  process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';
  const { GenericContainer } = await import('testcontainers');
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts(REDIS_PORT)
    .withStartupTimeout(START_TIMEOUT_MS)
    .start();
  const url = `redis://${container.getHost()}:${container.getMappedPort(REDIS_PORT)}`;
  return {
    url,
    servers: [url],
    pid: null,
    flush: () => withClient(url, async (client) => void (await client.flushall())),
    ...UNCONTROLLED,
    close: async () => void (await container.stop()),
  };
}

/** Null where no daemon runs or it can't start the image. */
export async function startContainer(): Promise<TestRedis | null> {
  if (!(await hasDaemon()) || (await gaveUpLately())) return null;
  try {
    return await run();
  } catch (error) {
    await mkdir(dirname(GAVE_UP), { recursive: true });
    await writeFile(GAVE_UP, String(error));
    return null;
  }
}
