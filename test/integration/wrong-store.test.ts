/** A gateway that starts with a wrong address of its store says so before anybody reads, and asks the store for nothing. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { GatewayProcess } from '../support/process.ts';
import { createStoreServer } from '../support/store-server.ts';
import { freePort } from '../support/loopback.ts';

async function start(url: string, token = 'any'): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start({ env: { UPSTREAM_URL: url, UPSTREAM_TOKEN: token } });
  onTestFinished(() => gateway.kill());
  return gateway;
}

const storeOf = async (gateway: GatewayProcess) =>
  (await gateway.readiness()).dependencies.find(({ name }) => name === 'store');

/** Takes connections, and counts what is sent on them. */
async function listen(onData: (bytes: Buffer) => void): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer((socket) => void socket.on('data', onData).on('error', () => undefined)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  return { server, port: typeof address === 'object' ? (address?.port ?? 0) : 0 };
}

test.each([
  ['http://no-such-store.invalid', 'the host of UPSTREAM_URL is not known (ENOTFOUND)'],
  [`http://127.0.0.1:${await freePort()}/base`, 'nothing listens at the address of UPSTREAM_URL (ECONNREFUSED)'],
])('%s: /readyz and the log say what is wrong, without the address', async (url, failure) => {
  const gateway = await start(url);
  await expect.poll(() => storeOf(gateway)).toMatchObject({ status: 'degraded', detail: `never answered: ${failure}` });
  await expect.poll(() => gateway.logged('the store cannot be reached')).toHaveLength(1);
  expect(gateway.log.join('\n')).not.toContain(new URL(url).host);
  expect((await gateway.readiness()).code).toBe(200);
});

test('https in front of a store that speaks no TLS is named', async () => {
  const store = await forTest(createStoreServer());
  const gateway = await start(store.url.replace('http:', 'https:'));
  await expect
    .poll(async () => (await storeOf(gateway))?.detail)
    .toMatch(/^never answered: UPSTREAM_URL begins with https, and no TLS is spoken there \(/);
});

test('a store that takes connections has never answered until it has, and is sent nothing before a read', async () => {
  const sent: Buffer[] = [];
  const { port } = await listen((bytes) => sent.push(bytes));
  const gateway = await start(`http://127.0.0.1:${port}`);
  await expect
    .poll(() => storeOf(gateway))
    .toMatchObject({ status: 'unknown', detail: 'never answered: it takes connections, and is not called yet' });
  expect(sent).toEqual([]);
});

test('once a call has ended, that is what counts', async () => {
  const store = await forTest(createStoreServer());
  const gateway = await start(store.url, store.token);
  await gateway.status('/v2/calls/none', await gateway.issueKey());
  expect(await storeOf(gateway)).toMatchObject({ status: 'ok' });
  expect(store.calls()).toBe(1);
});
