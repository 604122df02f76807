/** A store that does its worst costs a clear failure in time, and nothing that lasts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { MISBEHAVIOURS, type Misbehaviour } from '../../src/sample/faults.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';
import { ms, prove } from './bar.ts';

const DEADLINE_MS = 2000;
const ALLOWED_MS = DEADLINE_MS + 500;
const MEGABYTE = 2 ** 20;
const MORE_MEMORY_MB = 64;
const HELD_MS = 200;
const WELL_WITHIN_MS = 1000;
const GIVE_UP_MS = 10_000;
const PAGE = 7;
/** The id of falsified records (`src/sample/routes.ts`). */
const OTHER_ID = 'ev_another';

type Read = 'call' | 'list';

/** The status of an answer that is right all the same; where there is none, the store's answer must be a clear failure. */
const RIGHT: Partial<Record<Misbehaviour, Partial<Record<Read, number>>>> = {
  // The first answer is good; the other one must not be taken for that of another read.
  'two-answers': { call: 200, list: 200 },
  'late-second-answer': { call: 200, list: 200 },
  // A call of another workspace isn't there for this key. A list that holds one is not trusted at all (C4).
  'wrong-workspace': { call: 404 },
  // A list is asked for by workspace, not by ids: there is nothing to tell the ids of its records by (C4).
  'wrong-id': { list: 200 },
};

interface Answer {
  readonly read: Read;
  readonly status: number;
  readonly text: string;
  readonly tookMs: number;
}

async function ask(gateway: GatewayProcess, path: string, key: string, read: Read = 'call'): Promise<Answer> {
  const beganMs = performance.now();
  const response = await gateway.get(path, key);
  const text = await response.text();
  return { read, status: response.status, text, tookMs: performance.now() - beganMs };
}

/** A plain sentence in the form of the surface, or an answer that is right; in no case a record that wasn't asked for. */
function isClear(evil: Misbehaviour, { read, status, text }: Answer): boolean {
  const isFailure = status === 500 && /"(?:message|error)":"The (?:evaluation store|gateway) [^"]+\."/.test(text);
  const isRight = status === RIGHT[evil]?.[read];
  return (isFailure || isRight) && (!text.includes(OTHER_ID) || (evil === 'wrong-id' && read === 'list'));
}

/** Milliseconds until a read that was never made before is answered. */
async function wellAfterMs(store: StoreServer, gateway: GatewayProcess, key: string): Promise<number> {
  store.setFaults({});
  const beganMs = performance.now();
  for (let attempt = 0; performance.now() - beganMs < GIVE_UP_MS; attempt += 1) {
    if ((await ask(gateway, `/v2/calls/after_${attempt}`, key)).status === 200) break;
    await sleep(20);
  }
  return performance.now() - beganMs;
}

test.for([...MISBEHAVIOURS])('%s', async (evil, context) => {
  const store = await createStoreServer();
  store.evaluations.make = (id) => anEvaluation({ _id: id });
  store.put({ evaluations: Array.from({ length: PAGE }, (_, index) => anEvaluation({ _id: `listed_${index}` })) });
  onTestFinished(() => store.close());
  const env = {
    UPSTREAM_URL: store.url,
    UPSTREAM_TOKEN: store.token,
    UPSTREAM_TIMEOUT: `${DEADLINE_MS}ms`,
    LOG_LEVEL: 'warn',
  };
  const gateway = await GatewayProcess.start({ env, isProbed: true });
  onTestFinished(() => gateway.kill());
  const key = await gateway.issueKey();
  // Its code is loaded and compiled, so that what follows is the store's doing.
  for (const id of ['a', 'b', 'c']) await ask(gateway, `/v2/calls/${id}`, key);
  await ask(gateway, '/v2/calls', key);
  await sleep(200);
  gateway.forgetPeaks();
  const { nowBytes } = gateway.memory();
  store.setFaults({ misbehave: evil });
  const answers = await Promise.all([
    ask(gateway, '/v2/calls/ev_9', key),
    ask(gateway, `/v1/workspaces/${WORKSPACE_A}/reports?limit=${PAGE}`, key, 'list'),
  ]);
  await sleep(100);
  const { heldMs, heldCpuMs } = gateway.hold();
  const moreMb = Math.round((gateway.memory().peakBytes - nowBytes) / MEGABYTE);
  const wellMs = await wellAfterMs(store, gateway, key);
  const tookMs = Math.max(...answers.map((one) => one.tookMs));
  const clear = answers.filter((one) => isClear(evil, one)).length;
  prove(context, {
    name: `evil store: ${evil}`,
    bar: `${evil in RIGHT ? 'a right answer or a clear 500' : 'a clear 500'} within ${ms(ALLOWED_MS)} (deadline ${ms(DEADLINE_MS)}), at most ${MORE_MEMORY_MB} MB more memory, event loop never held over ${HELD_MS} ms of its thread's CPU; well again within ${ms(WELL_WITHIN_MS)}`,
    measured: `${clear} of ${answers.length} (${answers.map(({ status }) => status).join(', ')}) after ${ms(tookMs)}, ${moreMb} MB more, held ${ms(heldCpuMs)} (${ms(heldMs)} by the clock), well again after ${ms(wellMs)}`,
    ok:
      clear === answers.length &&
      tookMs <= ALLOWED_MS &&
      moreMb <= MORE_MEMORY_MB &&
      heldCpuMs <= HELD_MS &&
      wellMs <= WELL_WITHIN_MS,
  });
});
