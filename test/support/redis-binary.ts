/** Finds a Redis server that can be spawned: on the PATH, or in Debian's packages unpacked into the project's cache. */
import { execFile } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';

export interface ServerBinary {
  readonly path: string;
  /** Added to the environment of the server. */
  readonly env: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const NAMES = ['redis-server', 'valkey-server'] as const;
const CACHE = resolve(import.meta.dirname, '../../.cache/redis');
/** `redis-server` and `redis-check-rdb` are one program, which goes by its name; this package starts no service. */
const PACKAGES = ['redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1'] as const;

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Null where there is none. */
export async function findValkey(): Promise<string | null> {
  const named = process.env['VALKEY_SERVER'] ?? '';
  return named === '' ? onPath('valkey-server') : named;
}

async function onPath(name: string): Promise<string | null> {
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(directory, name);
    if (directory !== '' && (await isExecutable(path))) return path;
  }
  return null;
}

function unpackedIn(root: string): ServerBinary {
  const libraries = ['usr/lib', 'lib'].flatMap((base) => [join(root, base), join(root, base, debianTriplet())]);
  return { path: join(root, 'usr/bin/redis-server'), env: { LD_LIBRARY_PATH: libraries.join(delimiter) } };
}

function debianTriplet(): string {
  return `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`;
}

/** Downloads as any user may. Where the system's package lists are missing or old, lists of our own are fetched. */
async function download(into: string): Promise<void> {
  try {
    await run('apt-get', ['download', ...PACKAGES], { cwd: into });
  } catch {
    const state = ['-o', `Dir::State::Lists=${into}/lists`, '-o', `Dir::Cache=${into}/cache`];
    await mkdir(join(into, 'lists/partial'), { recursive: true });
    await mkdir(join(into, 'cache/archives/partial'), { recursive: true });
    await run('apt-get', [...state, 'update']);
    await run('apt-get', [...state, 'download', ...PACKAGES], { cwd: into });
  }
}

/** Unpacks beside and renames, so that test files that do it at the same time never see half of it. */
async function unpack(root: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const temporary = await mkdtemp(join(CACHE, 'unpack-'));
  try {
    await download(temporary);
    const archives = (await readdir(temporary)).filter((name) => name.endsWith('.deb'));
    for (const archive of archives) await run('dpkg-deb', ['-x', join(temporary, archive), join(temporary, 'root')]);
    await symlink('redis-check-rdb', join(temporary, 'root/usr/bin/redis-server'));
    await rename(join(temporary, 'root'), root);
  } catch (error) {
    if (!(await isExecutable(unpackedIn(root).path))) throw error;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function debianServer(): Promise<ServerBinary | null> {
  const root = join(CACHE, 'root');
  const server = unpackedIn(root);
  if (await isExecutable(server.path)) return server;
  if ((await onPath('apt-get')) === null || (await onPath('dpkg-deb')) === null) return null;
  try {
    await unpack(root);
    await run(server.path, ['--version'], { env: { ...process.env, ...server.env } });
    return server;
  } catch (error) {
    await mkdir(CACHE, { recursive: true });
    await writeFile(join(CACHE, 'unpack-error.txt'), String(error));
    return null;
  }
}

/** That of `TEST_REDIS_SERVER`, where it is set. Null where there is none. */
export async function findServer(): Promise<ServerBinary | null> {
  const named = process.env['TEST_REDIS_SERVER'] ?? '';
  if (named !== '') return { path: named, env: {} };
  for (const name of NAMES) {
    const path = await onPath(name);
    if (path !== null) return { path, env: {} };
  }
  return debianServer();
}
