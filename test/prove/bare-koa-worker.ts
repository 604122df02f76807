/** The best that any server can do: it waits for `?ms=` and answers. Prints its address as JSON. */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import Koa from 'koa';
import { listenOnLoopback } from '../support/loopback.ts';

const app = new Koa();
app.use(async (context) => {
  await sleep(Number(context.query['ms']));
  context.body = { ok: true };
});
const serve = app.callback();
const { url } = await listenOnLoopback(createServer((request, response) => void serve(request, response)));
process.stdout.write(JSON.stringify({ url }));
// It goes with the test that has started it.
process.stdin.on('end', () => process.exit()).resume();
