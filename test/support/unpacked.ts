/**
 * Programs of Debian's or Ubuntu's packages, unpacked under .cache: nothing is installed or started, and no rights are needed.
 *
 *     const found = await unpacked('nginx', ['nginx']);
 *     found.path('usr/sbin/nginx')
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { programOnPath } from './process.ts';

const run = promisify(execFile);
const CACHE = resolve(import.meta.dirname, '../../.cache');

export interface Unpacked {
  /** The path of a file of the packages, which is given without its first slash. */
  readonly path: (name: string) => string;
  /** For their programs: where their libraries are. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The packages and no others: a library that they need besides must be on the machine. Null without apt-get and dpkg-deb;
 * rejects if the packages cannot be had. `finish` changes what is unpacked, once.
 */
export async function unpacked(
  name: string,
  packages: readonly string[],
  finish: (root: string) => Promise<void> = async () => {},
): Promise<Unpacked | null> {
  const root = join(CACHE, name, 'root');
  if (!existsSync(root)) {
    if (programOnPath('apt-get') === null || programOnPath('dpkg-deb') === null) return null;
    await unpack(join(CACHE, name), packages, finish);
  }
  const triplet = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`;
  const places = ['usr/lib', 'lib'].flatMap((base) => [base, join(base, triplet)]);
  return {
    path: (file) => join(root, file),
    env: { LD_LIBRARY_PATH: places.map((place) => join(root, place)).join(delimiter) },
  };
}

/** Unpacks beside and renames, so that another run at the same time never sees half of it. */
async function unpack(
  cache: string,
  packages: readonly string[],
  finish: (root: string) => Promise<void>,
): Promise<void> {
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'unpack-'));
  try {
    // The system's lists of packages may be missing or old.
    const lists = ['-o', `Dir::State::Lists=${folder}/lists`, '-o', `Dir::Cache=${folder}/cache`];
    await mkdir(join(folder, 'lists/partial'), { recursive: true });
    await mkdir(join(folder, 'cache/archives/partial'), { recursive: true });
    await run('apt-get', [...lists, 'update']);
    await run('apt-get', [...lists, 'download', ...packages], { cwd: folder });
    for (const file of await readdir(folder)) {
      if (file.endsWith('.deb')) await run('dpkg-deb', ['-x', join(folder, file), join(folder, 'root')]);
    }
    await finish(join(folder, 'root'));
    // Another run may have been first.
    await rename(join(folder, 'root'), join(cache, 'root')).catch(() => undefined);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
