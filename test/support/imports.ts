/** The imports of a folder `src` as dependency-cruiser finds and judges them (`.dependency-cruiser.mjs`), and their picture. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import { z } from 'zod';

const run = promisify(execFile);

export const ROOT = join(import.meta.dirname, '../..');
/** The picture of the folders, as `npm run draw:imports` writes it. */
export const PICTURE = join(ROOT, 'docs/images/architecture.svg');

const cruise = z.object({
  modules: z.array(z.object({ source: z.string(), dependencies: z.array(z.object({ resolved: z.string() })) })),
  summary: z.object({
    violations: z.array(z.object({ from: z.string(), to: z.string(), rule: z.object({ name: z.string() }) })),
  }),
});

/** Cruises `src` of the folder as `npm run lint:imports` does. */
export async function cruiseSource(folder: string): Promise<z.infer<typeof cruise>> {
  return cruise.parse(JSON.parse(await depcruise(folder, ['--output-type', 'json'])));
}

/**
 * Draws `src` as SVG: one box per folder, and an arrow to each folder that it imports from. An arrow is left out where a longer
 * way of arrows leads to the same folder: a hundred arrows would show nothing.
 */
export async function drawFolders(): Promise<string> {
  const graphviz = await Graphviz.load();
  const dot = await depcruise(ROOT, ['--include-only', '^src/', '--collapse', '^src/[^/]+', '--output-type', 'dot']);
  return graphviz.dot(graphviz.tred(dot).out, 'svg');
}

async function depcruise(folder: string, options: readonly string[]): Promise<string> {
  const command = join(ROOT, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs');
  const { stdout } = await run(process.execPath, [command, 'src', ...options], {
    cwd: folder,
    maxBuffer: 64 * 1024 ** 2,
  });
  return stdout;
}
