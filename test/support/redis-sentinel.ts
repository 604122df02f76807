/** A primary, its replicas and the Sentinels that watch them, of their own for a test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectWhenUp, withClient } from './redis-client.ts';
import type { ServerBinary } from './redis-binary.ts';
import { freePort, spawnServer } from './redis-server.ts';
import type { TestRedis } from './redis.ts';

const NAME = 'main';
const START_TIMEOUT_MS = 30_000;
const LOOK_EVERY_MS = 25;

export interface SentinelOptions {
  readonly replicas?: number;
  readonly sentinels?: number;
  readonly isDurable?: boolean;
  /** A primary that is silent for so long is replaced. */
  readonly downAfterMs?: number;
}

export interface TestSentinels extends TestRedis {
  /** The primary, as the first Sentinel that answers names it. */
  primary(): Promise<TestRedis>;
  /** Resolves once the Sentinels name another primary than that one, and it is one. */
  replaced(old: TestRedis): Promise<TestRedis>;
  /** Of one Sentinel, by its place in the address. */
  killSentinel(index: number): Promise<void>;
}

interface Sentinel {
  readonly url: string;
  kill(): Promise<void>;
  close(): Promise<void>;
}

export async function startSentinels(binary: ServerBinary, options: SentinelOptions = {}): Promise<TestSentinels> {
  const { replicas = 1, sentinels = 3, isDurable = false, downAfterMs = 1000 } = options;
  const started: { close(): Promise<void> }[] = [];
  const note = <T extends { close(): Promise<void> }>(one: T): T => {
    started.push(one);
    return one;
  };
  try {
    const more = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'];
    const primary = note(await spawnServer(binary, { isDurable, more }));
    const { port } = new URL(primary.url);
    const servers = [primary];
    for (let i = 0; i < replicas; i += 1) {
      servers.push(note(await spawnServer(binary, { isDurable, more: [...more, '--replicaof', '127.0.0.1', port] })));
    }
    await Promise.all(servers.slice(1).map(({ url }) => until(() => saysAt(url, 'master_link_status:up'))));
    const watchers: Sentinel[] = [];
    for (let i = 0; i < sentinels; i += 1) watchers.push(note(await spawnSentinel(binary, { port, downAfterMs })));
    await Promise.all(watchers.map(({ url }) => until(() => isAgreed(url, { sentinels, replicas }))));
    return groupOf(servers, watchers);
  } catch (error) {
    await Promise.all(started.map((one) => one.close()));
    throw error;
  }
}

async function spawnSentinel(
  binary: ServerBinary,
  { port, downAfterMs }: { port: string; downAfterMs: number },
): Promise<Sentinel> {
  const directory = await mkdtemp(join(tmpdir(), 'evalgate-sentinel-'));
  const ownPort = await freePort();
  const file = join(directory, 'sentinel.conf');
  const lines = [
    `port ${ownPort}`,
    'bind 127.0.0.1',
    `dir ${directory}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${port} 2`,
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${NAME} 10000`,
  ];
  await writeFile(file, lines.join('\n'));
  const child = spawn(binary.path, [file, '--sentinel'], { env: { ...process.env, ...binary.env }, stdio: 'ignore' });
  const killNow = (): void => void child.kill('SIGKILL');
  process.once('exit', killNow);
  const url = `redis://127.0.0.1:${ownPort}`;
  (await connectWhenUp(url, START_TIMEOUT_MS)).disconnect();
  return {
    url,
    kill: () => end(child),
    close: async () => {
      process.off('exit', killNow);
      await end(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

async function saysAt(url: string, line: string): Promise<boolean> {
  return withClient(url, async (client) => (await client.info('replication')).includes(line));
}

/** Whether it knows all that it needs to choose another primary. */
async function isAgreed(
  url: string,
  { sentinels, replicas }: { sentinels: number; replicas: number },
): Promise<boolean> {
  const about = await withClient(url, (client) => client.call('SENTINEL', 'MASTER', NAME));
  const fields = Array.isArray(about) ? about.map(String) : [];
  const valueOf = (name: string): number => Number(fields[fields.indexOf(name) + 1]);
  return valueOf('num-other-sentinels') === sentinels - 1 && valueOf('num-slaves') === replicas;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + START_TIMEOUT_MS;
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > untilMs) throw new Error('The Sentinels did not come to what was awaited.');
    await sleep(LOOK_EVERY_MS);
  }
}

function groupOf(servers: readonly TestRedis[], sentinels: readonly Sentinel[]): TestSentinels {
  const together = async (run: (server: TestRedis) => Promise<void>): Promise<void> => {
    await Promise.all(servers.map(run));
  };
  const named = async (): Promise<TestRedis | undefined> => {
    for (const { url } of sentinels) {
      const reply = await withClient(url, (client) => client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)).catch(
        () => null,
      );
      if (Array.isArray(reply)) return servers.find((server) => new URL(server.url).port === String(reply[1]));
    }
    return undefined;
  };
  const primary = async (): Promise<TestRedis> => {
    const found = await named();
    if (found === undefined) throw new Error('No Sentinel names the primary.');
    return found;
  };
  return {
    url: `redis+sentinel://${sentinels.map(({ url }) => new URL(url).host).join(',')}/${NAME}`,
    servers: servers.map(({ url }) => url),
    pid: null,
    primary,
    replaced: async (old) => {
      let now = old;
      await until(async () => {
        now = await primary();
        return now !== old && (await saysAt(now.url, 'role:master'));
      });
      return now;
    },
    killSentinel: async (index) => sentinels[index]?.kill(),
    flush: async () => withClient((await primary()).url, async (client) => void (await client.flushall())),
    pause: () => servers.forEach((server) => server.pause()),
    resume: () => servers.forEach((server) => server.resume()),
    kill: () => together((server) => server.kill()),
    restart: () => together((server) => server.restart()),
    close: async () => {
      await Promise.all(sentinels.map((sentinel) => sentinel.close()));
      await together((server) => server.close());
    },
  };
}
