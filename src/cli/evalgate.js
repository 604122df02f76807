#!/usr/bin/env node
/*
 * The launcher. Plain JavaScript that an old Node.js understands as well: the program itself is TypeScript that
 * Node.js runs as it is, and where the version is too old somebody should read why instead of a syntax error.
 */
import { tooOld } from './node-version.js';

const problem = tooOld(process.versions.node);
if (problem === null) {
  const { enableCompileCache } = await import('node:module');
  enableCompileCache();
  const { main } = await import('./main.ts');
  await main(process.argv.slice(2));
} else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}
