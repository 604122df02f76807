/**
 * The package as `npm pack` makes it, run as an installed one. It is packed from a copy, because a build in this checkout would
 * be run by others who use the checkout meanwhile.
 *
 *     const { program } = await installPacked(folder);
 */
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { runProcess } from './process.ts';

const ROOT = join(import.meta.dirname, '../..');
const SOURCES = [
  'src',
  'config',
  'docs',
  'deploy',
  '.ci',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'LICENSE',
];
const lockSchema = z.object({
  packages: z.record(
    z.string(),
    z.looseObject({ dev: z.boolean().optional(), hasInstallScript: z.boolean().optional() }),
  ),
});

/** Packs a copy of this checkout into `folder`, and lays this checkout's production dependencies beside what the package holds. */
export async function installPacked(folder: string): Promise<{ readonly root: string; readonly program: string }> {
  const copy = join(folder, 'copy');
  for (const name of SOURCES) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const script = `cd "${copy}" && npm pack --silent && tar xzf evalgate-*.tgz -C "${folder}"`;
  const { code, stderr } = await runProcess('sh', ['-c', script]);
  if (code !== 0) throw new Error(`npm pack ended with ${code}: ${stderr}`);
  const root = join(folder, 'package');
  for (const name of productionPackages()) {
    cpSync(join(ROOT, name), join(root, name), { recursive: true, dereference: true });
  }
  return { root, program: join(root, 'src/cli/evalgate.js') };
}

/** The production packages of the lockfile, and whether they want to run a script when they are installed. */
export function lockedPackages(): readonly (readonly [path: string, hasInstallScript: boolean])[] {
  const lock = lockSchema.parse(JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')));
  return Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, { hasInstallScript = false }]) => [path, hasInstallScript]);
}

/** Their folders in this checkout. A package inside another comes with it. */
export function productionPackages(): readonly string[] {
  return lockedPackages().flatMap(([path]) => (path.lastIndexOf('node_modules') === 0 ? [path] : []));
}
