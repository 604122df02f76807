/** Finds where the tests' Redis comes from, once per run, and says so. Vitest runs `setup` before the first test. */
import { execFile } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { programOnPath } from '../process.ts';
import { unpacked } from '../unpacked.ts';
import { onHost, type RedisSource } from './server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisSource: RedisSource;
  }
}

const run = promisify(execFile);
const IMAGE = 'redis:8-alpine';
/** A slow line may take so long to pull the image. */
const PROBE_TIMEOUT_MS = 180_000;
/** `redis-server` and `redis-check-rdb` are one program, which goes by its name; this package starts no service. */
const PACKAGES = ['redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1'];
const HELP = [
  'No Redis was found for the tests. Provide one of these:',
  `  - a running Docker daemon with the image ${IMAGE}, or able to pull it;`,
  '  - redis-server or valkey-server on the PATH, or its path in TEST_REDIS_SERVER;',
  '  - Debian or Ubuntu with apt-get and dpkg-deb: their packages are unpacked under .cache, nothing is installed.',
].join('\n');

let found: Promise<RedisSource> | undefined;

export async function setup(project: TestProject): Promise<void> {
  project.provide('redisSource', await findSource());
}

/** In a test, what `setup` found; in any other program it is found at the first call. */
export async function redisSource(): Promise<RedisSource> {
  if (process.env['VITEST'] !== undefined) return (await import('vitest')).inject('redisSource');
  return (found ??= findSource());
}

async function findSource(): Promise<RedisSource> {
  const source = await firstSource();
  say(source.about);
  return source;
}

async function firstSource(): Promise<RedisSource> {
  const named = process.env['TEST_REDIS_SERVER'] ?? '';
  if (named !== '') return serverAt(named, 'TEST_REDIS_SERVER');
  const container = await containerSource();
  if (container !== undefined) return container;
  for (const name of ['redis-server', 'valkey-server']) {
    const path = programOnPath(name);
    if (path !== null) return serverAt(path, 'on the PATH');
  }
  const fallback = await unpackedServer().catch((error: unknown) => say(`the packages can't be had: ${String(error)}`));
  return fallback ?? { kind: 'none', help: HELP, about: 'none' };
}

function say(line: string): undefined {
  process.stderr.write(`Redis for the tests: ${line}\n`);
}

/** Starts one and removes it, so that what a daemon cannot do shows once and not in each test file. */
async function containerSource(): Promise<RedisSource | undefined> {
  const { getContainerRuntimeClient, getReaper, ImageName } = await import('testcontainers');
  const runtime = await getContainerRuntimeClient().catch(() => undefined);
  if (runtime === undefined) return undefined;
  const daemon = `Docker ${runtime.info.containerRuntime.serverVersion}`;
  const source: RedisSource = { kind: 'container', image: IMAGE, about: `container ${IMAGE} (${daemon})` };
  let step = `pull ${IMAGE}`;
  const probe = async (): Promise<RedisSource> => {
    await runtime.image.pull(ImageName.fromString(IMAGE));
    step = 'start Ryuk, which TESTCONTAINERS_RYUK_DISABLED=true does without';
    await getReaper(runtime);
    step = `start ${IMAGE}`;
    await onHost(source, 1, async (host, [port = 0]) => {
      await host.launch({ port, config: [] });
      await host.close();
    });
    return source;
  };
  const timeout = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error('it takes too long')), PROBE_TIMEOUT_MS).unref();
  });
  return Promise.race([probe(), timeout]).catch((error: unknown) =>
    say(`NO CONTAINER: ${daemon} answers, but can't ${step}: ${String(error)}`),
  );
}

async function serverAt(path: string, where: string, env: Readonly<Record<string, string>> = {}): Promise<RedisSource> {
  const { stdout } = await run(path, ['--version'], { env: { ...process.env, ...env } });
  const [, name = 'Redis', version = 'of an unknown version'] = /^(\w+) server v=(\S+)/.exec(stdout) ?? [];
  return { kind: 'process', program: { path, env }, about: `${path} (${name} ${version}, ${where})` };
}

async function unpackedServer(): Promise<RedisSource | undefined> {
  const packages = await unpacked('redis', PACKAGES, (root) =>
    symlink('redis-check-rdb', join(root, 'usr/bin/redis-server')),
  );
  if (packages === null) return undefined;
  return serverAt(packages.path('usr/bin/redis-server'), "the distribution's packages, unpacked", packages.env);
}
