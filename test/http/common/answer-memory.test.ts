/** The memory of answers under way: large ones wait for room in a fair turn per key, and fail if there is none in time. */
import type { ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import { metricOf } from '../../support/admin.ts';
import { forTest } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { HurriedTimers } from '../../support/hurried-timers.ts';
import { aTranscript } from '../../support/records.ts';

const BYTES = 1_400_000;
const MEDIUM_BYTES = 300_000;
const CONFIG = 'upstream: { adaptive: false, answerMemory: 2MB, breakerPercent: null, timeout: 60s }';

const UNDER_WAY = 'evalgate_store_answers_bytes';

const timers = new HurriedTimers();
/** Half of the time of a call. */
const WAIT_MS = 30_000;

/** A gateway with room for one large answer, in front of a store that sends the last byte of one when the test says so. */
async function startWorld(config = CONFIG, isDeclared = true) {
  const started = await forTest(startTestGateway({ config, timers }));
  const held = new Map<string, () => void>();
  started.store.override(/\/transcript$/, ({ url = '' }, response: ServerResponse) => {
    const id = url.split('/').at(-2) ?? '';
    const size = id.startsWith('small') ? 10 : id.startsWith('medium') ? MEDIUM_BYTES : BYTES;
    const body = Buffer.from(JSON.stringify(aTranscript({ evaluationId: id, body: 'x'.repeat(size) })));
    response.writeHead(200, { ...(isDeclared && { 'content-length': body.length }) });
    response.write(body.subarray(0, -1));
    held.set(id, () => response.end(body.subarray(-1)));
    if (size < BYTES) held.get(id)?.();
  });
  const [busy, quiet] = [await started.issueKey(), await started.issueKey()];
  const read = (id: string, key = busy): Promise<Reply> => started.get(`/v2/calls/${id}/transcript`, { key });
  const finish = async (id: string): Promise<void> => {
    await vi.waitUntil(() => held.has(id));
    held.get(id)?.();
  };
  const waiting = async (count: number): Promise<void> => {
    await vi.waitFor(async () => expect(await metricOf(started, 'evalgate_store_answers_waiting')).toBe(count));
  };
  /** Its body has arrived but for one byte. */
  const begin = async (id: string): Promise<{ readonly reply: Promise<Reply> }> => {
    const reply = read(id);
    await vi.waitFor(async () => expect(await metricOf(started, UNDER_WAY)).toBeGreaterThanOrEqual(BYTES));
    return { reply };
  };
  return { gateway: started, read, begin, finish, waiting, quiet };
}

test.each([
  ['declared', true],
  ['not declared', false],
])('a large answer whose length is %s waits until there is room; small ones do not', async (_what, isDeclared) => {
  const { gateway: started, read, begin, finish, waiting, quiet } = await startWorld(CONFIG, isDeclared);
  const { reply: first } = await begin('a');
  const second = read('b');
  await waiting(1);
  const third = read('c', quiet);
  await waiting(2);
  expect((await read('small')).status).toBe(200);
  expect((await read('medium', quiet)).status).toBe(200);
  expect((await read('medium_too')).status).toBe(200);
  await finish('b');
  await finish('c');
  await finish('a');
  const replies = await Promise.all([first, second, third]);
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
  await vi.waitFor(async () => expect(await metricOf(started, UNDER_WAY)).toBe(0));
});

test('one that finds no room in time is a 500 that may be tried again, and says nothing against the store', async () => {
  const {
    gateway: started,
    read,
    begin,
    finish,
    waiting,
  } = await startWorld('upstream: { adaptive: false, answerMemory: 2MB, timeout: 60s }');
  const { reply: first } = await begin('a');
  const others = Array.from({ length: 12 }, (_, index) => read(`other_${index}`));
  await waiting(12);
  timers.elapse(WAIT_MS);
  for (const { status, headers, text } of await Promise.all(others)) {
    expect([status, headers['x-error-code'], headers['retry-after']]).toEqual([500, 'overloaded', '1']);
    expect(text).toContain('shielding the evaluation store from too many requests');
  }
  expect(await metricOf(started, 'evalgate_store_breaker_open ')).toBe(0);
  expect(await metricOf(started, 'evalgate_store_calls_total{resource="transcript",outcome="overloaded"}')).toBe(12);
  await finish('a');
  await first;
  expect((await read('small')).status).toBe(200);
});
