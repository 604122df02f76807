#!/usr/bin/env node
/*
 * The launcher. It is plain JavaScript, so that a Node.js too old for the program, which is TypeScript, can run it: it starts
 * the Node.js that `npm ci` has installed here, or says what to do.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const OLDEST_MAJOR = 24;
const BUNDLED = fileURLToPath(new URL('../../node_modules/node/bin/node', import.meta.url));
const { node: version } = process.versions;
const args = process.argv.slice(2);

if (Number.parseInt(version, 10) >= OLDEST_MAJOR) {
  const { enableCompileCache } = await import('node:module');
  enableCompileCache();
  const { main } = await import('./main.ts');
  await main(args);
  // A gateway has stopped: what still waits, such as a collector of spans that hangs, holds the process no longer.
  if (args[0] === 'serve' && !process.exitCode) process.exit();
} else if (existsSync(BUNDLED)) {
  // As one process: what is sent to the launcher reaches the program, and the launcher ends as the program does.
  const program = spawn(BUNDLED, [fileURLToPath(import.meta.url), ...args], { stdio: 'inherit' });
  const signals = /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP']);
  for (const name of signals) process.on(name, () => program.kill(name));
  program.on('exit', (code, signal) => {
    for (const name of signals) process.removeAllListeners(name);
    if (signal === null) process.exitCode = code ?? 1;
    else process.kill(process.pid, signal);
  });
} else {
  process.stderr.write(
    [
      `evalgate needs Node.js ${OLDEST_MAJOR} or newer, and this is ${version}.`,
      'It brings its own: run `npm ci` in its folder, without --ignore-scripts and --omit=dev,',
      'then start it with `npm start`, or a command with `npx evalgate ...`.\n',
    ].join('\n'),
  );
  process.exitCode = 1;
}
