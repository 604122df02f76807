/** NODE_USE_ENV_PROXY, which some platforms set: neither the store nor an admin listener is reached through a proxy. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import { afterAll, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { GatewayProcess, PROGRAM, runProcess } from '../support/process.ts';
import { anEvaluation } from '../support/records.ts';
import { createStoreServer } from '../support/store-server.ts';

/** The requests that the proxy got. */
const asked: string[] = [];
const proxy = createServer((request, response) => {
  asked.push(`${request.method} ${request.url}`);
  response.writeHead(502).end();
});
proxy.on('connect', (request, socket) => {
  asked.push(`CONNECT ${request.url}`);
  socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
});
proxy.listen(0, '127.0.0.1');
await once(proxy, 'listening');
afterAll(() => void proxy.close());
const address = proxy.address();
const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
const PROXIED = {
  NODE_USE_ENV_PROXY: '1',
  HTTP_PROXY: url,
  http_proxy: url,
  HTTPS_PROXY: url,
  https_proxy: url,
  NO_PROXY: '',
  no_proxy: '',
};

const store = await forFile(createStoreServer());
store.put({ evaluations: [anEvaluation()] });
const gateway = await GatewayProcess.start({
  env: { ...PROXIED, UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token },
});
afterAll(() => gateway.kill());

const run = (...args: readonly string[]) =>
  runProcess(process.execPath, [PROGRAM, ...args], {
    ...process.env,
    ...PROXIED,
    UPSTREAM_URL: store.url,
    UPSTREAM_TOKEN: store.token,
    ADMIN_PORT: new URL(gateway.adminUrl).port,
  });

test('the proxy would be used otherwise', async () => {
  const script = `fetch('${store.url}').catch(() => undefined)`;
  await runProcess(process.execPath, ['--input-type=module', '--eval', script], { ...process.env, ...PROXIED });
  expect(asked).not.toEqual([]);
  asked.length = 0;
});

test('the store is called directly, and so is the admin listener', async () => {
  expect(await gateway.status('/v2/calls/ev_1', await gateway.issueKey())).toBe(200);
  expect(await run('health')).toMatchObject({ code: 0 });
  expect(await run('health', '--json')).toMatchObject({ code: 0 });
  expect(await run('cache', 'stats')).toMatchObject({ code: 0, stderr: '' });
  expect((await run('doctor')).stdout).toMatch(/^ok +upstream +the store answers, .*^ok +admin +a gateway runs/ms);
  expect(asked).toEqual([]);
});
