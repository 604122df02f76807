/**
 * Lints the OpenAPI document, and the part of each surface, with the recommended rules of Spectral and of Redocly.
 * Exit status 1 if either finds anything, a warning included. Neither linter is let onto the network.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };

const documents = { whole: [], v1: ['v1'], v2: ['v2'] };

const folder = await mkdtemp(join(tmpdir(), 'evalgate-openapi-'));
try {
  const results: string[] = [];
  for (const [name, surface] of Object.entries(documents)) {
    const file = `${name}.json`;
    const { stdout } = await run(process.execPath, [join(root, 'src/cli/evalgate.js'), 'openapi', ...surface]);
    await writeFile(join(folder, file), stdout);
    results.push(await lintWith('spectral', ['lint', file, '--ruleset', join(root, '.spectral.yaml'), '-F', 'hint']));
    results.push(await lintWith('redocly', ['lint', file, '--config', join(root, 'redocly.yaml')]));
  }
  process.stdout.write(`${results.join('\n')}\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Runs one linter in the folder of the documents; what it says goes to stderr if it is not content. */
async function lintWith(linter: 'spectral' | 'redocly', args: readonly string[]): Promise<string> {
  const label = `${linter} ${args[1] ?? ''}`;
  try {
    const { stdout, stderr } = await run(join(root, 'node_modules/.bin', linter), args, { cwd: folder, env });
    if (!/\bwarnings?\b/i.test(`${stdout}${stderr}`)) return `${label}: no problems`;
    process.stderr.write(`${stdout}${stderr}\n`);
  } catch (error) {
    process.stderr.write(`${outputOf(error)}\n`);
  }
  process.exitCode = 1;
  return `${label}: PROBLEMS`;
}

function outputOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return ['stdout', 'stderr'].map((stream) => String(Reflect.get(error, stream) ?? '')).join('') || error.message;
}
