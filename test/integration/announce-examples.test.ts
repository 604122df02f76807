/** The programs of docs/store-interface.md that announce changes, run against a gateway as a store runs them. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { startTestGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { forFile, forTest } from '../support/opened.ts';
import { programOnPath, runProcess } from '../support/process.ts';
import { WORKSPACE_A } from '../support/records.ts';

const EXAMPLES = join(import.meta.dirname, '../../docs/examples');
const SECRET = `whsec_${Buffer.alloc(32, '+/').toString('base64')}`;
const gateway = await forFile(startTestGateway({ env: { CHANGES_SECRET: SECRET, ADMIN_TOKEN: 'a-token' } }));
const CHANGES = [{ evaluation: 'ev_1', workspace: WORKSPACE_A, kinds: ['evaluation'] }];

const PROGRAMS = [
  ['announce.sh', programOnPath('openssl') === null ? null : programOnPath('curl') && programOnPath('sh')],
  ['announce.ts', process.execPath],
  ['announce.py', programOnPath('python3')],
  ['Announce.java', programOnPath('java')],
] as const;
for (const [name, program] of PROGRAMS) {
  if (program === null) process.stderr.write(`NOT TESTED: docs/examples/${name}, because what runs it is not there.\n`);
}

describe.each(PROGRAMS)('%s', (name, program) => {
  let seen: string[] = [];
  beforeEach(() => {
    seen = [];
  });
  const run = (changes: unknown, url: string, secret = SECRET) =>
    runProcess(program ?? '', [join(EXAMPLES, name), JSON.stringify(changes)], {
      ...process.env,
      EVALGATE_ADMIN_URL: url,
      CHANGES_SECRET: secret,
    });

  test.skipIf(program === null)('announces, signed, until it is taken', async () => {
    // The first try is refused, as a gateway without Redis does it.
    const way = await forTest(
      listenOnLoopback(
        createServer((request, response) => {
          seen.push(String(request.headers['webhook-id']));
          const chunks: Buffer[] = [];
          request.on('data', (chunk: Buffer) => chunks.push(chunk));
          request.on('end', () => {
            if (seen.length === 1) return void response.writeHead(503, { 'retry-after': '2' }).end('{}');
            const names = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature'];
            const headers = Object.fromEntries(names.map((one) => [one, String(request.headers[one])]));
            const body = Buffer.concat(chunks);
            return void gateway
              .adminRaw('POST', String(request.url), { headers, body })
              .then((reply) => response.writeHead(reply.status).end(reply.text));
          });
        }),
      ),
    );
    const { code, stdout } = await run(CHANGES, way.url);
    expect([code, stdout]).toEqual([0, '']);
    expect([seen.length, new Set(seen).size]).toEqual([2, 1]);
  });

  test.skipIf(program === null)('gives up on what another try does not mend', async () => {
    expect((await run(CHANGES, gateway.adminUrl, `whsec_${Buffer.alloc(32).toString('base64')}`)).code).toBe(1);
    const faulty = await run([{ ...CHANGES[0], workspace: 'acme' }], gateway.adminUrl);
    expect(faulty.code).toBe(1);
    expect(faulty.stderr).toMatch(/400|acme/);
  });
});
