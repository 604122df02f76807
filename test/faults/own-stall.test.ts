/** A gateway that was held up itself reads what has come meanwhile before it calls the store late. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/time/clock.ts';
import { systemTimers } from '../../src/time/timers.ts';
import { AnswerMemory } from '../../src/upstream/answer-memory.ts';
import { StoreClient } from '../../src/upstream/client.ts';
import { RESOURCES } from '../../src/upstream/resources.ts';
import { anEvaluation, EVALUATION_ID } from '../support/records.ts';

const TIMEOUT_MS = 100;

/** The states of what both threads share: the store may answer, and has answered. */
const [TOLD, DONE] = [1, 2];

/** A store on a thread of its own. It says that it was asked, and answers once it is told to. */
const STORE = `
const { createServer } = require('node:http');
const { parentPort, workerData: { shared, body } } = require('node:worker_threads');
const state = new Int32Array(shared);
const server = createServer((_request, response) => {
  parentPort.postMessage('asked');
  Atomics.wait(state, 0, 0);
  response.end(body, () => {
    Atomics.store(state, 0, ${DONE});
    Atomics.notify(state, 0);
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

test('an answer that came while the process stood still past its deadline is taken', async () => {
  const shared = new SharedArrayBuffer(4);
  const state = new Int32Array(shared);
  const store = new Worker(STORE, { eval: true, workerData: { shared, body: JSON.stringify(anEvaluation()) } });
  onTestFinished(async () => void (await store.terminate()));
  const [port] = z.tuple([z.int()]).parse(await once(store, 'message'));
  const client = new StoreClient({
    baseUrl: `http://127.0.0.1:${port}`,
    token: null,
    timeoutMs: TIMEOUT_MS,
    maxResponseBytes: 1_000_000,
    maxConnections: 1,
    connectionMaxAgeMs: 60_000,
    memory: new AnswerMemory(1_000_000, { clock: systemClock, timers: systemTimers }),
  });
  onTestFinished(() => client.close());
  const answer = client.fetch(RESOURCES.evaluation, { id: EVALUATION_ID }, { requestId: 'r' });
  await once(store, 'message');
  Atomics.store(state, 0, TOLD);
  Atomics.notify(state, 0);
  Atomics.wait(state, 0, TOLD);
  // The state stays as it is now, so this thread stands still until the time is over.
  Atomics.wait(state, 0, DONE, 3 * TIMEOUT_MS);
  expect(await answer).toMatchObject({ kind: 'found' });
});
