/**
 * Reads one address with two keys through the caches that docs/api.md names, and counts what reaches the gateway. Prints, for
 * each cache, what each step sent: nothing, a request, or a request with `If-None-Match`, and its status.
 *
 *     node caches.js '{"baseUrl": "...", "path": "...", "keys": ["...", "..."], "freshMs": 12000}'
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import got from 'got';
import { Agent, cacheStores, interceptors, request } from 'undici';

const { baseUrl, path, keys, freshMs } = JSON.parse(process.argv[2]);
/** A server in front of the gateway that notes what it passes on. */
async function frontOf(sent) {
  const front = createServer(async ({ url, headers }, response) => {
    const { authorization, 'if-none-match': etag } = headers;
    const answer = await fetch(baseUrl + url, {
      headers: {
        authorization,
        'accept-encoding': 'identity',
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
      },
    });
    sent.push(`${etag === undefined ? '' : 'If-None-Match '}${answer.status}`);
    response.writeHead(
      answer.status,
      Object.fromEntries([...answer.headers].filter(([name]) => name !== 'connection')),
    );
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise((resolve) => front.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${front.address().port}${path}`;
}

function undici(options) {
  const dispatcher = new Agent().compose(interceptors.cache({ store: new cacheStores.MemoryCacheStore(), ...options }));
  return async (url, headers) => (await request(url, { dispatcher, headers })).body.text();
}

function cachingGot(cacheOptions) {
  const client = got.extend({ cache: new Map(), cacheOptions, decompress: false, retry: { limit: 0 } });
  return async (url, headers) => (await client(url, { headers })).body;
}

async function measure(read) {
  const sent = [];
  const url = await frontOf(sent);
  const step = async (key) => {
    sent.length = 0;
    const body = await read(url, { authorization: `Bearer ${key}` });
    return { sent: sent.join(', '), body };
  };
  const steps = [await step(keys[0]), await step(keys[0])];
  await sleep(freshMs);
  steps.push(await step(keys[0]), await step(keys[1]));
  return { sent: steps.map((one) => one.sent), isSame: steps.every(({ body }) => body === steps[0].body) };
}

const CACHES = {
  'undici, private': undici({ type: 'private' }),
  'undici, shared': undici({}),
  'got, private': cachingGot({ shared: false }),
  'got, shared': cachingGot({}),
};
// At once, so that all begin with a copy that is fresh at the gateway.
const found = await Promise.all(Object.entries(CACHES).map(async ([name, read]) => [name, await measure(read)]));
process.stdout.write(JSON.stringify(Object.fromEntries(found)));
process.exit();
