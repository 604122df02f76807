/** One key whose reads make the store fail, and another: how many of the other's cold reads still succeed. */
import { randomUUID } from 'node:crypto';
import { onTestFinished, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import type { StoreHandler } from '../support/store-server.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation } from '../support/records.ts';
import { createStoreServer, sendError } from '../support/store-server.ts';
import { prove } from './bar.ts';

const ROUNDS = 6;
const BAD_READS = 15;
const COLD_READS = 10;

const tooDeep: StoreHandler = (_request, response) => void response.end('['.repeat(70) + ']'.repeat(70));
const tooLarge: StoreHandler = (_request, response) => void response.end(`{"a":"${'x'.repeat(8_100_000)}"}`);
const failing: StoreHandler = (_request, response) => sendError(response, 500, 'INTERNAL');

test.for([
  ['records nested 70 deep', tooDeep, (id: string) => `/v2/calls/bad_${id}`],
  ['records over 8 MB', tooLarge, (id: string) => `/v2/calls/bad_${id}`],
  ['ids that the store answers 500 for', failing, (id: string) => `/v2/calls/bad_${id}`],
  ['searches that the store answers 500 for', failing, (id: string) => `/v2/calls?search=${id}`],
] as const)('%s', async ([what, handler, pathOf], context) => {
  const store = await forTest(createStoreServer());
  store.evaluations.make = (id) => anEvaluation({ _id: id });
  store.override(/bad_|evaluations$/, handler);
  const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, LOG_LEVEL: 'fatal' };
  const gateway = await GatewayProcess.start({ env });
  onTestFinished(() => gateway.kill());
  const attacker = await gateway.issueKey({ workspaceIds: [randomUUID()] });
  const victim = await gateway.issueKey();
  const statusOf = async (path: string, key: string): Promise<number> => (await gateway.get(path, key)).status;
  let [failed, reads] = [0, 0];
  for (let round = 0; round < ROUNDS; round += 1) {
    const bad = Array.from({ length: BAD_READS }, (_, n) => statusOf(pathOf(`${round}_${n}`), attacker));
    // The first waits for the circuit that they open.
    await bad[0];
    const cold = Array.from({ length: COLD_READS }, (_, n) => statusOf(`/v2/calls/cold_${round}_${n}`, victim));
    const statuses = await Promise.all(cold);
    reads += statuses.length;
    failed += statuses.filter((status) => status !== 200).length;
    await Promise.all(bad);
  }
  prove(context, {
    name: `circuits: ${what}`,
    bar: `one key reads ${ROUNDS} × ${BAD_READS} of them, another ${ROUNDS} × ${COLD_READS} cold records: of these none fails`,
    measured: `${failed} of ${reads} failed`,
    ok: failed === 0,
  });
});
