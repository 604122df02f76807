/** `evalgate health`, as a container's health check runs it. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { runCli, runJson } from '../support/cli.ts';
import { fileOf } from '../support/files.ts';
import { startTestGateway, type TestGatewayOptions } from '../support/gateway.ts';
import { forTest } from '../support/opened.ts';

/** A gateway, and the port of its admin listener. */
async function start(options: TestGatewayOptions = {}) {
  const gateway = await forTest(startTestGateway(options));
  return { gateway, port: new URL(gateway.adminUrl).port };
}

const alive = (url: string) => ({ status: 0, stdout: `The gateway at ${url} is live.\n`, stderr: '' });

test('ends with 0 if the gateway is live, by the variables', async () => {
  const { port } = await start();
  expect(await runCli(['health'], { env: { ADMIN_PORT: port } })).toEqual(alive(`http://127.0.0.1:${port}`));
  const env = { ADMIN_HOST: '127.0.0.1', ADMIN_PORT: port };
  expect(await runCli(['health'], { env })).toEqual(alive(`http://127.0.0.1:${port}`));
  expect(await runJson(['health'], { env })).toEqual({ status: 'alive', url: `http://127.0.0.1:${port}` });
});

test.each([
  ['::', '[::1]'],
  ['0.0.0.0', '127.0.0.1'],
  ['::1', '[::1]'],
  ['localhost', 'localhost'],
])('finds a listener on %s', async (host, found) => {
  const { port } = await start({ env: { ADMIN_HOST: host, ADMIN_TOKEN: 'secret' } });
  expect(await runCli(['health'], { env: { ADMIN_HOST: host, ADMIN_PORT: port } })).toEqual(
    alive(`http://${found}:${port}`),
  );
});

test('goes by the file, and by the variables before it', async () => {
  const { port } = await start();
  const CONFIG_FILE = fileOf(`admin: {port: ${port}}`);
  expect((await runCli(['health'], { env: { CONFIG_FILE } })).status).toBe(0);
  expect((await runCli(['health'], { env: { CONFIG_FILE, ADMIN_PORT: '1' } })).status).toBe(1);
});

test('a configuration that was broken since the start, or a secret that cannot be read, makes nobody restart it', async () => {
  const { port } = await start();
  const CONFIG_FILE = fileOf(`{admin: {port: ${port}}, upstream: {maxQueue: many}, no: such}`);
  const env = { CONFIG_FILE, UPSTREAM_TOKEN_FILE: '/nowhere', REDIS_URL: 'nonsense' };
  expect((await runCli(['health'], { env })).status).toBe(0);
});

test('a gateway that drains is live; one that has ended is not', async () => {
  const { gateway, port } = await start();
  const env = { ADMIN_HOST: '127.0.0.1', ADMIN_PORT: port };
  await gateway.close();
  const { status, stdout, stderr } = await runCli(['health'], { env });
  expect([status, stdout, stderr]).toEqual([
    1,
    '',
    `No live gateway answers at http://127.0.0.1:${port} (ECONNREFUSED).\n`,
  ]);
});

test('is not caught by a proxy, and takes nothing else for a gateway', async () => {
  const other = createServer((_request, response) => void response.end('hello')).listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const address = other.address();
  const otherPort = typeof address === 'object' ? String(address?.port) : '';
  const refused = await runCli(['health'], { env: { ADMIN_HOST: '127.0.0.1', ADMIN_PORT: otherPort } });
  expect([refused.status, refused.stderr]).toEqual([
    1,
    `No live gateway answers at http://127.0.0.1:${otherPort} (status 200, not the answer of an admin listener).\n`,
  ]);
});

test('a port that the system chooses cannot be checked', async () => {
  const { status, stderr } = await runCli(['health'], { env: { ADMIN_PORT: '0' } });
  expect([status, stderr]).toEqual([
    1,
    'The admin port is 0, which takes any free port: set one that can be checked.\n',
  ]);
});
