/** A server that is told to stop while requests wait at the system, which its busy process has not seen yet. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { listen } from '../../src/server.ts';

const CLIENTS = 40;
const BUSY_MS = 600;

/** Asks once as soon as it hears anything, and prints the statuses that came. */
const CLIENT = `
const { get } = require('node:http');
const ask = () => new Promise((resolve) => {
  get({ port: Number(process.argv[1]), agent: false }, (r) => resolve(r.resume().statusCode)).on('error', (e) => resolve(e.code));
});
process.stdin.once('data', async () => {
  const all = await Promise.all(Array.from({ length: ${CLIENTS} }, ask));
  console.log(JSON.stringify(all));
  process.exit();
});
console.log('here');`;

test('requests that had arrived when a busy server was told to stop are answered, all of them', async () => {
  const listener = await listen(
    async (_, response) => response.end('ok'),
    { host: '127.0.0.1', port: 0 },
    {
      errorBody: () => ({}),
    },
  );
  const client = spawn(process.execPath, ['-e', CLIENT, String(listener.port)], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(client.stdout, 'data');
  client.stdin.write('go');
  // Held, as by a long computation: nothing is accepted.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
  const closed = listener.close(30_000);
  const printed = z.array(z.instanceof(Buffer)).parse(await once(client.stdout, 'data'));
  expect(JSON.parse(String(printed[0]))).toEqual(Array.from({ length: CLIENTS }, () => 200));
  await closed;
});
