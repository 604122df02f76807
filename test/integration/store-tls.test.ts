/** A store behind TLS whose certificate authority the gateway is configured to trust, or not. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';
import { makeTlsFiles } from '../support/tls-files.ts';

// Without openssl there is nothing to make an authority with.
const files = await makeTlsFiles();
const IDS = Array.from({ length: 8 }, (_, index) => `66f0000000000000000000${index + 10}`);

let store: StoreServer;
let front: Server;
let handshakes = 0;
let encryptedUrl: string;

beforeAll(async () => {
  if (files === null) return;
  store = await createStoreServer();
  store.put({ evaluations: IDS.map((id) => anEvaluation({ _id: id, workspaceId: WORKSPACE_A })) });
  front = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, passOn);
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  encryptedUrl = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
});
afterAll(async () => {
  if (files === null) return;
  front.close();
  await store.close();
  await files.remove();
});

function passOn(socket: TLSSocket): void {
  handshakes += 1;
  const plain = connect(Number(new URL(store.url).port), '127.0.0.1');
  socket.on('error', () => plain.destroy()).pipe(plain);
  plain.on('error', () => socket.destroy()).pipe(socket);
}

async function start(env: Readonly<Record<string, string>>): Promise<GatewayProcess> {
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
    const plain = await start({ UPSTREAM_URL: store.url });
    const encrypted = await start({ UPSTREAM_URL: encryptedUrl, NODE_EXTRA_CA_CERTS: files?.ca ?? '' });
    const [plainKey, key] = [await plain.issueKey(), await encrypted.issueKey()];
    handshakes = 0;
    for (const id of IDS) {
      const expected = await read(plain, plainKey, id);
      expect(expected.status).toBe(200);
      expect(await read(encrypted, key, id)).toEqual(expected);
    }
    expect(handshakes).toBe(1);
  });

  test('is sent nothing if its authority is not known, and the log says why', async () => {
    const gateway = await start({ UPSTREAM_URL: encryptedUrl, NODE_EXTRA_CA_CERTS: '' });
    const callsBefore = store.calls();
    const { status, body } = await read(gateway, await gateway.issueKey(), IDS[0] ?? '');
    expect([status, JSON.parse(body)]).toEqual([
      500,
      { error: { message: 'The evaluation store cannot be reached at the moment. Try again later.' } },
    ]);
    await expect
      .poll(() => gateway.log.map((line): unknown => JSON.parse(line)))
      .toEqual([
        expect.objectContaining({
          msg: 'the store is failing',
          detail:
            'last call failed: the connection to the store failed before the answer (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
        }),
      ]);
    expect(store.calls()).toBe(callsBefore);
  });
});
