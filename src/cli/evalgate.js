#!/usr/bin/env node
/*
 * The launcher. It is plain JavaScript, so that any Node.js can run it. It runs the build of an installed package, or the
 * TypeScript of a checkout. A checkout has a Node.js of its own, from `npm ci`, for machines whose Node.js is too old.
 *
 * Node.js opens its inspector at SIGUSR1, and with that every key and record in memory, to all who reach its port. A program
 * that listens to the signal takes it from the inspector, however evalgate is started.
 */
/// <reference types="node" />
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

const pathOf = (/** @type {string} */ relative) => fileURLToPath(new URL(relative, import.meta.url));
const BUNDLED = pathOf('../../node_modules/node/bin/node');
const isBuilt = existsSync(pathOf('../../dist/cli/run.js'));
/** The oldest Node.js that runs the build, and the oldest that runs the TypeScript. */
const [oldestMajor, oldestMinor] = isBuilt ? [22, 15] : [24, 0];

const { node: version } = process.versions;
const [major = 0, minor = 0] = version.split('.').map(Number);

if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) {
  process.on('SIGUSR1', () => {});
  nodeModule.enableCompileCache();
  await import(isBuilt ? '../../dist/cli/run.js' : './run.ts');
} else if (existsSync(BUNDLED)) {
  // As one process: what is sent to the launcher reaches the program, and the launcher ends as the program does.
  const { spawn } = await import('node:child_process');
  const program = spawn(BUNDLED, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' });
  const signals = /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1']);
  for (const name of signals) process.on(name, () => program.kill(name));
  program.on('exit', (code, signal) => {
    for (const name of signals) process.removeAllListeners(name);
    if (signal === null) process.exitCode = code ?? 1;
    else process.kill(process.pid, signal);
  });
} else {
  const remedy = isBuilt
    ? 'install a newer one from https://nodejs.org'
    : 'run `npm ci` in its folder, without --ignore-scripts and --omit=dev, which brings one';
  process.stderr.write(
    `evalgate needs Node.js ${oldestMajor}.${oldestMinor} or newer, and this is ${version}: ${remedy}.\n`,
  );
  process.exitCode = 1;
}
