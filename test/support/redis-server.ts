/** A Redis server of its own, spawned on a free port, without persistence. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectWhenUp, withClient } from './redis-client.ts';
import type { TestRedis } from './redis.ts';
import type { ServerBinary } from './redis-binary.ts';

const START_ATTEMPTS = 5;
const START_TIMEOUT_MS = 10_000;

/** Rejects where that port is taken; 0 is any free one. */
export async function freePort(wanted = 0): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No port was given.');
  return address.port;
}

export interface ServerOptions {
  readonly isDurable?: boolean;
  /** A port that is free; any where none is given. */
  readonly port?: () => Promise<number>;
  /** More options of the server. */
  readonly more?: readonly string[];
}

class SpawnedRedis implements TestRedis {
  readonly url: string;
  readonly servers: readonly string[];
  readonly #binary: ServerBinary;
  readonly #port: number;
  readonly #directory: string;
  readonly #options: ServerOptions;
  #child: ChildProcess | null = null;
  readonly #killNow = (): void => void this.#child?.kill('SIGKILL');

  constructor(binary: ServerBinary, { port, directory }: { port: number; directory: string }, options: ServerOptions) {
    this.#options = options;
    this.#binary = binary;
    this.#port = port;
    this.#directory = directory;
    this.url = `redis://127.0.0.1:${port}`;
    this.servers = [this.url];
    process.once('exit', this.#killNow);
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Rejects where the port was taken meanwhile, or the server can't run. */
  async start(): Promise<void> {
    const options = ['--port', String(this.#port), '--bind', '127.0.0.1', '--save', ''];
    const { isDurable = false, more = [] } = this.#options;
    const durability = isDurable ? ['--appendonly', 'yes', '--appendfsync', 'no'] : ['--appendonly', 'no'];
    const child = spawn(this.#binary.path, [...options, ...durability, '--dir', this.#directory, ...more], {
      env: { ...process.env, ...this.#binary.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    const output: string[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()));
    const ended = Promise.race([once(child, 'exit'), once(child, 'error')]).then(() => 'ended' as const);
    const client = connectWhenUp(this.url, START_TIMEOUT_MS);
    const first = await Promise.race([client, ended]);
    if (first === 'ended') {
      client.then((late) => late.disconnect()).catch(() => undefined);
      throw new Error(`${this.#binary.path} did not start:\n${output.join('')}`);
    }
    // A stranger's server at this port would answer too.
    const isOurs = (await first.info('server')).includes(`process_id:${child.pid}\r\n`);
    first.disconnect();
    if (!isOurs) throw new Error(`Port ${this.#port} is somebody else's.`);
    output.length = 0;
    child.stdout.removeAllListeners('data').resume();
  }

  async flush(): Promise<void> {
    await withClient(this.url, (client) => client.flushall());
  }

  pause(): void {
    this.#running().kill('SIGSTOP');
  }

  resume(): void {
    this.#running().kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  async close(): Promise<void> {
    process.off('exit', this.#killNow);
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #running(): ChildProcess {
    if (this.#child === null) throw new Error('This Redis is not running.');
    return this.#child;
  }
}

/** Spawns it; another port is tried where one was taken between finding and using it. */
export async function spawnServer(binary: ServerBinary, options: ServerOptions = {}): Promise<TestRedis> {
  for (let attempt = 1; ; attempt += 1) {
    const directory = await mkdtemp(join(tmpdir(), 'evalgate-redis-'));
    const port = await (options.port?.() ?? freePort());
    const server = new SpawnedRedis(binary, { port, directory }, options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.close();
      if (attempt === START_ATTEMPTS) throw error;
    }
  }
}
