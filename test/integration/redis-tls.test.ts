/** Redis behind TLS, with an authority of its own: read from a file that the address names, and demanded. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { RedisAddressError } from '../../src/redis/address.ts';
import { openRedis } from '../../src/redis/connection.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { makeTlsFiles } from '../support/tls-files.ts';
import { evalgate } from '../unit/cli/support.ts';

// Without openssl there is nothing to make an authority with.
const files = await makeTlsFiles();

let redis: TestRedis;
let front: Server | null = null;
let url: string;

beforeAll(async () => {
  if (files === null) return;
  redis = await startRedis();
  const { hostname, port } = new URL(redis.url);
  front = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, (socket) => {
    const plain = connect(Number(port), hostname);
    socket.on('error', () => plain.destroy()).pipe(plain);
    plain.on('error', () => socket.destroy()).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  url = `rediss://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
});
afterAll(async () => {
  if (files === null) return;
  front?.close();
  await redis.close();
  await files.remove();
});

const reportSchema = z.object({
  checks: z.array(
    z.object({ name: z.string(), status: z.string(), message: z.string(), advice: z.string().nullable() }),
  ),
});

async function doctor(REDIS_URL: string) {
  const { stdout } = await evalgate(['doctor', '--json', '--admin', 'http://127.0.0.1:1'], { env: { REDIS_URL } });
  return reportSchema.parse(JSON.parse(stdout)).checks.filter(({ name }) => name === 'redis');
}

function opening(options: string) {
  return () => openRedis({ url: `rediss://h?${options}`, role: 'state' });
}

describe.skipIf(files === null)('behind TLS', () => {
  test('commands and messages go by TLS where the address names the authority', async () => {
    const link = openRedis({ url: `${url}?tlsCaFile=${encodeURIComponent(files?.ca ?? '')}`, role: 'state' });
    onTestFinished(() => link.close());
    await linkUp(link);
    const heard = new Promise<string>((resolve) => void link.subscriber.listen('news', resolve));
    if (!link.subscriber.isUp()) await new Promise<void>((resolve) => void link.subscriber.onUp(resolve));
    await link.client.set('secret', '1');
    expect(await link.client.get('secret')).toBe('1');
    await link.client.publish('news', 'one');
    expect(await heard).toBe('one');
  });

  test('an authority that is not named is not trusted, and the doctor says where to name it', async () => {
    const [check] = await doctor(url);
    expect(check).toMatchObject({
      status: 'fail',
      advice:
        'Name a file with the certificate of its authority: ?tlsCaFile=/path/ca.pem at the end of REDIS_URL, or in NODE_EXTRA_CA_CERTS.',
    });
    expect(check?.message).toMatch(
      /^REDIS_URL: Redis at 127\.0\.0\.1:\d+ can't be used \((?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN)\)$/,
    );
    const [named] = await doctor(`${url}?tlsCaFile=${files?.ca}`);
    expect(named?.status).toBe('ok');
  });

  test('an authority that is another one, and a certificate of another name, are told apart', async () => {
    const others = await makeTlsFiles();
    onTestFinished(async () => others?.remove());
    const [wrong] = await doctor(`${url}?tlsCaFile=${others?.ca}`);
    expect(wrong?.advice).toBe(
      'The authority in the file of tlsCaFile did not sign its certificate: name the file of the one that did at the end of REDIS_URL.',
    );
    const [renamed] = await doctor(`${url}?tlsCaFile=${files?.ca}&tlsServerName=other.internal`);
    expect(renamed?.advice).toBe(
      'Its certificate is of another name than the host in REDIS_URL: give a host that it is of, or that name as ?tlsServerName=name at the end.',
    );
  });

  test('files that hold something else are told with their options', () => {
    expect(opening(`tlsCaFile=${files?.key}`)).toThrow(
      'the file of its option tlsCaFile holds no certificate in PEM form',
    );
    expect(opening(`tlsCertFile=${files?.ca}&tlsKeyFile=${files?.key}`)).toThrow(
      'the files of its options tlsCertFile and tlsKeyFile are no certificate and its key in PEM form',
    );
  });
});

const openWithoutFile = opening('tlsCaFile=/none/such.pem');

test('a file that is not there is told with its option, and not with its path', () => {
  expect(openWithoutFile).toThrow(RedisAddressError);
  expect(openWithoutFile).toThrow("the file of its option tlsCaFile can't be read (ENOENT)");
});
