#!/usr/bin/env node
/*
 * The launcher. It is plain JavaScript, so that a Node.js too old for the program, which is TypeScript, says what to do
 * instead of showing a syntax error.
 */
const OLDEST_MAJOR = 24;
const { node: version } = process.versions;

if (Number.parseInt(version, 10) >= OLDEST_MAJOR) {
  const { enableCompileCache } = await import('node:module');
  enableCompileCache();
  const { main } = await import('./main.ts');
  const args = process.argv.slice(2);
  await main(args);
  // A gateway has stopped: what still waits, such as a collector of spans that hangs, holds the process no longer.
  if (args[0] === 'serve' && !process.exitCode) process.exit();
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
