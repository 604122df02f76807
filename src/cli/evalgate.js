#!/usr/bin/env node
/*
 * The launcher. Plain JavaScript that an old Node.js understands as well: the program itself is TypeScript that
 * Node.js runs as it is, and where the version is too old somebody should read why instead of a syntax error.
 */
import { tooOld } from './node-version.js';

const problem = tooOld(process.versions.node);
if (problem === null) {
  const { enableCompileCache } = await import('node:module');
  const { setFlagsFromString } = await import('node:v8');
  enableCompileCache();
  // What is cached is bounded; let what the collector leaves lying about beside it be so too. Collecting more often costs
  // little: what lives long is hardly more than the cache. The young generation's size can only be set on the command
  // line, as `npm start` and the container do.
  setFlagsFromString('--heap-growing-percent=25');
  // V8 allocates in the old generation what it once saw live long, by where in the code it is made, and does not take that
  // back: some requests at once at the start, and from then on all that a request leaves behind was kept until the next
  // full collection, of which there were ten a second. A cached read cost twice as much.
  setFlagsFromString('--no-allocation-site-pretenuring');
  // Whoever imports node:http has Node read all that it exports, and three of those names are of a client for WebSockets
  // that is loaded when they are read: 763 kB of source and 3 MB of memory for what nobody here uses.
  const http = process.getBuiltinModule('node:http');
  for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name);
  const { main } = await import('./main.ts');
  await main(process.argv.slice(2));
} else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}
