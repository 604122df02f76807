/** Starts one Redis server or several that know one another, as processes or in containers, each at a port of 127.0.0.1. */
import { freePort, isFree, LAST_PORT } from '../loopback.ts';
import type { TestRedis } from '../redis.ts';
import { untilAll, withClient } from './client.ts';
import { openProcessHost, type ServerProgram } from './process.ts';

/** Where the servers come from; `about` names it in the line of the run. */
export type RedisSource =
  | { readonly kind: 'container'; readonly image: string; readonly about: string }
  | { readonly kind: 'process'; readonly program: ServerProgram; readonly about: string }
  | { readonly kind: 'none'; readonly help: string; readonly about: string };

export interface ServerSetup {
  readonly port: number;
  /** The lines of its configuration file, except its port and address. */
  readonly config: readonly string[];
  readonly isSentinel?: boolean;
}

export interface ServerControl {
  /** Starts it again at its port, after `kill`, with the files it had. Resolves once it answers. */
  start(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Resolves once it has ended, paused or not. */
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** Where servers run that reach one another at its address, as the test reaches them. */
export interface ServerHost {
  readonly address: string;
  launch(setup: ServerSetup): Promise<ServerControl>;
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Whether it keeps what it holds over `kill` and `restart`. */
  readonly isDurable?: boolean;
  /** More lines of its configuration file. */
  readonly config?: readonly string[];
}

const START_ATTEMPTS = 3;
/** The nodes of a Cluster talk to one another at a port that is higher by this. */
const BUS_PORT_OFFSET = 10_000;

async function freePorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = await freePort(LAST_PORT - BUS_PORT_OFFSET);
    if (await isFree(port + BUS_PORT_OFFSET)) ports.add(port);
  }
  return [...ports];
}

/** Starts something that takes that many ports; tries others if another program took one meanwhile. */
export async function onHost<T>(
  source: RedisSource,
  count: number,
  start: (host: ServerHost, ports: readonly number[]) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await freePorts(count);
    const host = await openHost(source, ports);
    try {
      return await start(host, ports);
    } catch (error) {
      await host.close();
      if (attempt === START_ATTEMPTS) throw error;
    }
  }
}

async function openHost(source: RedisSource, ports: readonly number[]): Promise<ServerHost> {
  if (source.kind === 'none') throw new Error(source.help);
  if (source.kind === 'process') return openProcessHost(source.program);
  // Loading testcontainers takes half a second.
  const { openContainerHost } = await import('./container.ts');
  return openContainerHost(source.image, ports);
}

export async function launchRedis(host: ServerHost, port: number, options: ServerOptions = {}): Promise<TestRedis> {
  const { isDurable = false, config = [] } = options;
  const durability = isDurable ? ['appendonly yes', 'appendfsync no'] : ['appendonly no'];
  const control = await host.launch({ port, config: ['save ""', ...durability, ...config] });
  const url = `redis://${host.address}:${port}`;
  return {
    url,
    servers: [url],
    flush: () => withClient(url, async (client) => void (await client.flushall())),
    pause: () => control.pause(),
    resume: () => control.resume(),
    kill: () => control.kill(),
    restart: async () => {
      await control.kill();
      await control.start();
    },
    close: () => control.remove(),
  };
}

/** Lines of the configuration of servers that follow one another. */
export const REPLICATION = ['repl-diskless-sync yes', 'repl-diskless-sync-delay 0'];

export async function untilFollowing(replicas: readonly TestRedis[]): Promise<void> {
  await untilAll(replicas, 'the replicas follow', ({ url }) =>
    withClient(url, async (client) => (await client.info('replication')).includes('master_link_status:up')),
  );
}

/** Does to all at once what can be done to one. */
export function together(servers: readonly TestRedis[]): Pick<TestRedis, 'pause' | 'resume' | 'kill' | 'restart'> {
  const each = async (run: (server: TestRedis) => Promise<void>): Promise<void> => {
    await Promise.all(servers.map(run));
  };
  return {
    pause: () => each((server) => server.pause()),
    resume: () => each((server) => server.resume()),
    kill: () => each((server) => server.kill()),
    restart: () => each((server) => server.restart()),
  };
}
