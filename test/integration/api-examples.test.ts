/** The programs of docs/api.md, run against a gateway as an integrator runs them. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { startTestGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { programOnPath, runProcess } from '../support/process.ts';
import { anEvaluation, aTranscript } from '../support/records.ts';

const EXAMPLES = join(import.meta.dirname, '../../docs/examples');
const IDS = Array.from({ length: 230 }, (_, index) => `ev_${String(index).padStart(3, '0')}`);
/** Longer than a page may be, so that it is cut. */
const LONG_TURN = `Ada: ${'word '.repeat(14_000)}end`;
const TURNS = ['Ada: Hello.', LONG_TURN, ...IDS.map((id) => `Bo: ${id}.`)];

const gateway = await forFile(startTestGateway());
gateway.store.put({
  evaluations: IDS.map((_id, index) => anEvaluation({ _id, createdAtMs: 1_772_600_000_000 - index })),
  transcripts: [aTranscript({ evaluationId: 'ev_000', body: TURNS.join('\n') })],
});
gateway.store.transcripts.set('ev_001', { ...aTranscript({ evaluationId: 'ev_001' }), body: 7 });

const PYTHON = programOnPath('python3');
if (PYTHON === null) process.stderr.write('NOT TESTED: docs/examples/read_calls.py, because there is no python3.\n');

async function envOf(url: string): Promise<NodeJS.ProcessEnv> {
  const key = await gateway.issueKey({ scopes: ['calls.read'] });
  return { ...process.env, EVALGATE_URL: `${url}/`, EVALGATE_API_KEY: key };
}

describe.each([
  ['read-calls.ts', process.execPath],
  ['read_calls.py', PYTHON],
])('%s', (name, program) => {
  async function run(args: readonly string[] = [], url = gateway.publicUrl) {
    return runProcess(program ?? '', [join(EXAMPLES, name), ...args], await envOf(url));
  }

  test.skipIf(program === null)('prints each call once, over all pages', async () => {
    const { code, stdout, stderr } = await run();
    expect([code, stderr]).toEqual([0, '']);
    expect([...stdout.matchAll(/^\{"id": ?"(\w+)"/gm)].map(([, id]) => id)).toEqual(IDS);
  });

  test.skipIf(program === null)('ends in silence when its reader has enough', async () => {
    const piped = `"${program}" "${join(EXAMPLES, name)}" | true`;
    expect(await runProcess('sh', ['-c', piped], await envOf(gateway.publicUrl))).toMatchObject({ stderr: '' });
  });

  test.skipIf(program === null)('joins the parts of a turn that was cut', async () => {
    const { code, stdout } = await run(['ev_000']);
    expect([code, stdout.trimEnd().split('\n')]).toEqual([0, TURNS]);
  });

  test.skipIf(program === null)('waits for what may pass, and gives up at once on a damaged record', async () => {
    const damaged = await run(['ev_001']);
    expect([damaged.code, damaged.stderr]).toEqual([
      1,
      expect.stringMatching(/500 record_malformed, request [\w-]+: \{"error"/),
    ]);
    const headers = [{ 'retry-after': '0' }, { 'x-error-code': 'record_malformed' }];
    let requests = 0;
    const failing = await listenOnLoopback(
      createServer((_, response) => {
        response.writeHead(500, headers[requests]).end('{}');
        requests += 1;
      }),
    );
    const { code } = await run([], failing.url);
    await failing.close();
    expect([code, requests]).toEqual([1, 2]);
  });
});
