/** Redis and a store behind TLS, with an authority of their own that a gateway is given, or not. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createServer, type Server, type TlsOptions, TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { TEXTS } from '../http/common/endpoints.ts';
import { startTestGateway } from '../support/gateway.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';
import { dependency, redisIsWell, WITHIN } from '../support/world.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { makeTlsFiles } from '../support/tls-files.ts';
import { findRedis } from './redis-findings.ts';

// Without openssl there is nothing to make an authority with.
const files = await makeTlsFiles();
const IDS = Array.from({ length: 8 }, (_, index) => `66f0000000000000000000${index + 10}`);

let redis: TestRedis;
let store: StoreServer;
let front: Server;
let storeFront: Server;
/** Demands a certificate of the same authority from its clients. */
let strict: Server;

/** Takes TLS off in front of the server at that address. */
async function listen(url: string, options: TlsOptions): Promise<Server> {
  const { hostname, port } = new URL(url);
  const server = createServer(options, (socket) => {
    const plain = connect(Number(port), hostname);
    socket.on('error', () => plain.destroy()).pipe(plain);
    plain.on('error', () => socket.destroy()).pipe(socket);
  }).listen(0, '127.0.0.1');
  server.on('tlsClientError', () => undefined);
  await once(server, 'listening');
  return server;
}

function urlOf(server: Server, scheme = 'rediss'): string {
  const address = server.address();
  return `${scheme}://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

beforeAll(async () => {
  if (files === null) return;
  redis = await startRedis();
  store = await createStoreServer();
  store.put({ evaluations: IDS.map((id) => anEvaluation({ _id: id, workspaceId: WORKSPACE_A })) });
  const own = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
  storeFront = await listen(store.url, own);
  front = await listen(redis.url, own);
  strict = await listen(redis.url, { ...own, ca: readFileSync(files.ca), requestCert: true, rejectUnauthorized: true });
});
afterAll(async () => {
  if (files === null) return;
  front.close();
  strict.close();
  storeFront.close();
  await redis.close();
  await store.close();
  files.remove();
});

const start = (REDIS_URL: string) => startTestGateway({ env: { REDIS_URL } });

describe.skipIf(files === null)('Redis behind TLS', () => {
  test.each(['its own alone', 'one of the client too'])('a gateway serves with certificates: %s', async (whose) => {
    const isStrict = whose !== 'its own alone';
    const own = `&tlsCertFile=${files?.cert}&tlsKeyFile=${files?.key}`;
    const query = `?tlsCaFile=${encodeURIComponent(files?.ca ?? '')}${isStrict ? own : ''}`;
    const gateway = await forTest(start(`${urlOf(isStrict ? strict : front)}${query}`));
    await redisIsWell(gateway);
    expect((await gateway.get('/v2/key', { key: await gateway.issueKey() })).status).toBe(200);
  });

  test('an authority that is not named is not trusted, and the doctor says where to name it', async () => {
    const gateway = await forTest(start(urlOf(front)));
    await vi.waitFor(async () => expect(await dependency(gateway, 'redis-state')).toMatch(/^degraded/), WITHIN);
    const [check] = (await findRedis({ REDIS_URL: urlOf(front) })).found;
    expect(check).toMatchObject({
      status: 'fail',
      advice:
        'Name a file with the certificate of its authority: ?tlsCaFile=/path/ca.pem at the end of REDIS_URL, or in NODE_EXTRA_CA_CERTS.',
    });
    expect(check?.message).toMatch(
      /^REDIS_URL: Redis at 127\.0\.0\.1:\d+ can't be used \((?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN)\)$/,
    );
    const [named] = (await findRedis({ REDIS_URL: `${urlOf(front)}?tlsCaFile=${files?.ca}` })).found;
    expect(named?.status).toBe('ok');
  });

  test('an authority that is another one, and a certificate of another name, are told apart', async () => {
    const others = await makeTlsFiles();
    onTestFinished(() => others?.remove());
    const [wrong] = (await findRedis({ REDIS_URL: `${urlOf(front)}?tlsCaFile=${others?.ca}` })).found;
    expect(wrong?.advice).toBe(
      'The authority in the file of tlsCaFile did not sign its certificate: name the file of the one that did at the end of REDIS_URL.',
    );
    const [renamed] = (
      await findRedis({ REDIS_URL: `${urlOf(front)}?tlsCaFile=${files?.ca}&tlsServerName=other.internal` })
    ).found;
    expect(renamed?.advice).toBe(
      'Its certificate is for another name than the host in REDIS_URL: give the host that it names, or that name as ?tlsServerName=name at the end.',
    );
  });

  test('a second error of a connection that was refused ends nothing', async () => {
    const { port } = new URL(urlOf(strict));
    const sockets: unknown[] = [];
    const see = (message: unknown): void => void sockets.push(message);
    subscribe('net.client.socket', see);
    onTestFinished(() => void unsubscribe('net.client.socket', see));
    const link = new RedisLink({ url: `rediss://127.0.0.1:${port}?tlsCaFile=${files?.ca}`, role: 'state' });
    onTestFinished(() => link.close());
    await new Promise<void>((resolve) => {
      link.onDown(() => resolve());
    });
    for (const message of sockets)
      z.object({ socket: z.instanceof(TLSSocket) })
        .parse(message)
        .socket.emit('error', new Error('late'));
    expect(sockets.length).toBeGreaterThan(0);
  });

  test('certificates and their authority are replaced under a running gateway', async () => {
    const others = await makeTlsFiles();
    if (files === null || others === null) throw new Error('There are no certificates.');
    const used = { ca: `${others.ca}.used`, cert: `${others.cert}.used`, key: `${others.key}.used` };
    const use = async (from: typeof used): Promise<void> => {
      for (const name of ['ca', 'cert', 'key'] as const) await copyFile(from[name], used[name]);
    };
    await use(files);
    const url = `${urlOf(strict)}?tlsCaFile=${used.ca}&tlsCertFile=${used.cert}&tlsKeyFile=${used.key}`;
    const gateway = await GatewayProcess.start({ env: { REDIS_URL: url, UPSTREAM_URL: store.url, DRAIN_DELAY: '0s' } });
    onTestFinished(async () => {
      await gateway.kill();
      others.remove();
    });
    await expect.poll(async () => (await gateway.readiness()).status, WITHIN).toBe('ready');
    const names: string[] = [];
    const see = (socket: TLSSocket): void => void names.push(socket.getPeerCertificate().fingerprint256);
    strict.on('secureConnection', see);
    strict.setSecureContext({
      cert: readFileSync(others.cert),
      key: readFileSync(others.key),
      ca: readFileSync(others.ca),
    });
    onTestFinished(() => {
      strict.off('secureConnection', see);
    });
    await use({ ...files, key: others.key });
    gateway.signal('SIGHUP');
    const detail = async () => (await gateway.readiness()).dependencies.find(({ name }) => name === 'secrets')?.detail;
    await expect
      .poll(detail, WITHIN)
      .toBe(
        'the old value stays in force: REDIS_URL: the files of its options tlsCertFile and tlsKeyFile are no certificate and its key in PEM form',
      );
    await use(others);
    gateway.signal('SIGHUP');
    // Commands and messages, of state and cache.
    await expect.poll(() => names.length, WITHIN).toBeGreaterThanOrEqual(4);
    expect(new Set(names)).toEqual(new Set([new X509Certificate(readFileSync(others.cert)).fingerprint256]));
    await expect.poll(async () => (await gateway.admin('GET', '/api/keys')).status, WITHIN).toBe(200);
    expect(await detail()).toBe('in force as last read: REDIS_URL');
  });

  test.each([
    ['tlsCaFile', () => `tlsCaFile=${files?.key}`, 'the file of its option tlsCaFile holds no certificate in PEM form'],
    [
      'tlsCertFile and tlsKeyFile',
      () => `tlsCertFile=${files?.ca}&tlsKeyFile=${files?.key}`,
      'the files of its options tlsCertFile and tlsKeyFile are no certificate and its key in PEM form',
    ],
  ])('a gateway does not start where the file of %s holds something else', async (_what, query, reason) => {
    await expect(start(`rediss://h?${query()}`)).rejects.toThrow(`REDIS_URL: ${reason}`);
  });
});

test('a gateway does not start if a file is missing, and the path is not shown', async () => {
  await expect(start('rediss://h?tlsCaFile=/none/such.pem')).rejects.toThrow(
    "REDIS_URL: the file of its option tlsCaFile can't be read (ENOENT).",
  );
});

async function startProcess(env: Readonly<Record<string, string>>): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start({ env: { UPSTREAM_TOKEN: store.token, LOG_LEVEL: 'warn', ...env } });
  onTestFinished(() => gateway.kill());
  return gateway;
}

async function read(gateway: GatewayProcess, key: string, id: string) {
  const response = await fetch(`${gateway.publicUrl}/v2/calls/${id}`, { headers: { authorization: `Bearer ${key}` } });
  return { status: response.status, body: await response.text() };
}

describe.skipIf(files === null)('a store behind TLS', () => {
  test('is read as any other, over one connection, if its authority is known', async () => {
    const gateway = await startProcess({
      UPSTREAM_URL: urlOf(storeFront, 'https'),
      NODE_EXTRA_CA_CERTS: files?.ca ?? '',
    });
    const key = await gateway.issueKey();
    let handshakes = 0;
    storeFront.on('secureConnection', () => (handshakes += 1));
    for (const id of IDS) {
      expect(await read(gateway, key, id)).toEqual({ status: 200, body: expect.stringContaining(id) as unknown });
    }
    expect(handshakes).toBe(1);
  });

  test('is sent nothing if its authority is not known, and the log says why', async () => {
    const gateway = await startProcess({ UPSTREAM_URL: urlOf(storeFront, 'https'), NODE_EXTRA_CA_CERTS: '' });
    const callsBefore = store.calls();
    const { status, body } = await read(gateway, await gateway.issueKey(), IDS[0] ?? '');
    expect([status, JSON.parse(body)]).toEqual([500, { error: { message: TEXTS.unreachable } }]);
    await expect
      .poll(() => gateway.log.map((line): unknown => JSON.parse(line)))
      .toEqual([
        // Before anybody reads.
        expect.objectContaining({
          msg: 'the store cannot be reached',
          detail: "never answered: the store's certificate is not accepted (UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
        }),
        expect.objectContaining({
          msg: 'the store is failing',
          detail:
            'never answered; last call failed: the connection to the store failed before the answer (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
        }),
      ]);
    expect(store.calls()).toBe(callsBefore);
  });
});
