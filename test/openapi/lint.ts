/**
 * Lints the OpenAPI document, and the part of each surface, with the recommended rules of Spectral. Exit status 1 if it finds
 * anything, a hint included.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const documents = { whole: [], v1: ['v1'], v2: ['v2'] };

const folder = mkdtempSync(join(tmpdir(), 'evalgate-openapi-'));
try {
  const files = Object.entries(documents).map(([name, surface]) => {
    const file = join(folder, `${name}.json`);
    writeFileSync(file, execFileSync(process.execPath, [join(root, 'src/cli/evalgate.js'), 'openapi', ...surface]));
    return file;
  });
  const rules = ['--ruleset', join(root, '.spectral.yaml'), '--fail-severity', 'hint'];
  const spectral = join(root, 'node_modules/.bin/spectral');
  process.exitCode = spawnSync(spectral, ['lint', ...files, ...rules], { stdio: 'inherit' }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
