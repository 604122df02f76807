import { expect, test } from 'vitest';
import type { Gathered } from '../../../src/cluster/gathering.ts';
import { describe, Supervisor, WorkersFailedError } from '../../../src/cluster/supervisor.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';
import { FakeWorkers } from './fake-workers.ts';

function rig(size = 2) {
  const timers = new ManualTimers();
  const workers = new FakeWorkers();
  const events: string[] = [];
  const gathered: Gathered[] = [];
  const supervisor = new Supervisor({
    workers: size,
    fork: workers.fork,
    timers,
    nowMs: () => timers.clock.nowMs(),
    payload: () => 'payload',
    summarise: async (topic, found) => {
      if (topic === 'nothing') throw new Error('no such topic');
      gathered.push(found);
      return `sum of ${found.answers.length}`;
    },
    hooks: {
      onReady: ({ id }) => events.push(`ready ${id}`),
      onCrashed: ({ id }, end, delayMs) => events.push(`crashed ${id}, ${describe(end)}, again in ${delayMs}`),
      onFailed: ({ id }, message) => events.push(`failed ${id}: ${message}`),
      onUnanswered: (topic) => events.push(`unanswered ${topic}`),
      onKilled: ({ id }) => events.push(`killed ${id}`),
    },
  });
  return { timers, workers, events, gathered, supervisor };
}

async function running() {
  const made = rig();
  const started = made.supervisor.start();
  for (const worker of made.workers.all) worker.become();
  await started;
  made.events.length = 0;
  return made;
}

test('it has started when all workers are ready, each of which got what it starts with', async () => {
  const { supervisor, workers } = rig();
  let isStarted = false;
  const started = supervisor.start().finally(() => (isStarted = true));
  workers.number(1).become();
  await settle();
  expect(isStarted).toBe(false);
  workers.number(2).become();
  expect(await started).toMatchObject({ publicUrl: 'http://127.0.0.1:1', adminUrl: 'http://127.0.0.1:2' });
  expect(workers.all).toHaveLength(2);
  expect(workers.number(2).told[1]).toEqual({ kind: 'start', payload: 'payload' });
  expect(workers.number(1).told.at(-1)).toMatchObject({ kind: 'standing', standing: { ready: 2, wanted: 2 } });
});

test('a worker that crashes after a while is replaced at once, and the others hear how many are ready', async () => {
  const { workers, timers, events } = await running();
  await timers.advance(5000);
  workers.number(1).end({ code: null, signal: 'SIGSEGV' });
  expect(workers.number(2).told.at(-1)).toMatchObject({ kind: 'standing', standing: { ready: 1, wanted: 2 } });
  await timers.advance(0);
  expect(workers.all).toHaveLength(3);
  workers.number(3).become();
  expect(events).toEqual(['crashed 1, ended by SIGSEGV, again in 0', 'ready 3']);
  expect(workers.number(2).told.at(-1)).toMatchObject({ kind: 'standing', standing: { ready: 2, wanted: 2 } });
});

test('workers that crash at once are replaced later and later, up to ten seconds', async () => {
  const { workers, timers, events } = await running();
  for (let crash = 0; crash < 9; crash += 1) {
    workers.number(workers.all.length).end();
    await timers.advance(10_000);
    expect(workers.all).toHaveLength(3 + crash);
  }
  const delays = events.map((event) => Number(event.split(' ').at(-1)));
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
});

test('a worker that says why it cannot start ends the start, with its words, and no worker is left', async () => {
  const { supervisor, workers } = rig(3);
  const started = supervisor.start();
  workers.number(1).become();
  workers.number(2).say({ kind: 'failed', message: 'PORT=1 is taken' });
  await expect(started).rejects.toEqual(new WorkersFailedError('PORT=1 is taken'));
  expect(workers.all.every(({ isKilled }) => isKilled)).toBe(true);
  expect(workers.all).toHaveLength(3);
});

test('workers that end without a word before they are ready end the start at the third', async () => {
  const { supervisor, workers, timers } = rig(1);
  const refusal = supervisor.start().catch((error: unknown) => error);
  for (let crash = 1; crash <= 3; crash += 1) {
    expect(workers.all).toHaveLength(crash);
    workers.number(crash).end({ code: 7, signal: null });
    await timers.advance(1000);
  }
  expect(await refusal).toEqual(
    new WorkersFailedError('Worker processes end before they are ready, 3 of them by now (exit status 7).'),
  );
  await timers.advance(60_000);
  expect(workers.all).toHaveLength(3);
});

test('a replacement that cannot start is tried again while the others go on', async () => {
  const { workers, timers, events } = await running();
  await timers.advance(5000);
  workers.number(1).end();
  await timers.advance(0);
  workers.number(3).say({ kind: 'failed', message: 'no memory' });
  workers.number(3).end();
  await timers.advance(100);
  expect(workers.all).toHaveLength(4);
  expect(workers.number(2).isKilled).toBe(false);
  expect(events).toContain('failed 3: no memory');
});

test('all are drained together; it has stopped when the last has ended, and none is replaced', async () => {
  const { supervisor, workers, timers, events } = await running();
  const stopped = supervisor.stop(700, 40_000);
  const again = supervisor.stop(0, 1);
  expect(workers.all.map((worker) => worker.told.at(-1))).toEqual([
    { kind: 'drain', delayMs: 700 },
    { kind: 'drain', delayMs: 700 },
  ]);
  workers.number(1).end({ code: 0, signal: null });
  await timers.advance(30_000);
  workers.number(2).end({ code: 0, signal: null });
  expect([await stopped, await again]).toEqual([0, 0]);
  expect(workers.all).toHaveLength(2);
  expect(events).toEqual([]);
});

test('a worker that does not end in the time it has is killed, and counted', async () => {
  const { supervisor, workers, timers, events } = await running();
  const stopped = supervisor.stop(0, 40_000);
  workers.number(1).end({ code: 0, signal: null });
  await timers.advance(40_000);
  expect(await stopped).toBe(1);
  expect(events).toEqual(['killed 2']);
});

test('stopped while it starts: it ends without having started, and a worker that has not begun is killed', async () => {
  const { supervisor, workers } = rig();
  const started = supervisor.start();
  workers.number(1).become();
  const stopped = supervisor.stop(0, 40_000);
  workers.number(2).say({ kind: 'hello' });
  workers.number(1).end({ code: 0, signal: null });
  expect(await started).toBeNull();
  expect(await stopped).toBe(0);
  expect(workers.number(2).isKilled).toBe(true);
});

test('stopped before it started: no worker is ever made', async () => {
  const { supervisor, workers } = rig();
  await supervisor.stop(0, 1000);
  expect(await supervisor.start()).toBeNull();
  expect(workers.all).toEqual([]);
});

test('a new configuration goes to all workers', async () => {
  const { supervisor, workers } = await running();
  supervisor.reload({ list: '45s' });
  expect(workers.all.map((worker) => worker.told.at(-1))).toEqual([
    { kind: 'reload', payload: { list: '45s' } },
    { kind: 'reload', payload: { list: '45s' } },
  ]);
});

test('an invalid configuration is counted by one worker, that is ready', async () => {
  const { supervisor, workers, timers } = await running();
  workers.number(1).end();
  await timers.advance(5000);
  supervisor.reloadFailed();
  expect(workers.all.map((worker) => worker.kinds().filter((kind) => kind === 'reload-failed').length)).toEqual([
    0, 1, 0,
  ]);
});

test('a question to all is answered from what each says, without those that are silent for a second', async () => {
  const { workers, timers, gathered } = await running();
  workers.number(1).say({ kind: 'ask', id: 9, topic: 'metrics' });
  expect(workers.all.map((worker) => worker.told.at(-1))).toMatchObject([{ topic: 'metrics' }, { topic: 'metrics' }]);
  workers.number(1).say({ kind: 'answer', id: 1, value: 'one' });
  await timers.advance(999);
  expect(gathered).toEqual([]);
  await timers.advance(1);
  expect(gathered).toEqual([{ answers: [{ worker: 1, value: 'one' }], silent: [2] }]);
  expect(workers.number(1).told.at(-1)).toEqual({ kind: 'summary', id: 9, value: 'sum of 1' });
  workers.number(2).say({ kind: 'answer', id: 1, value: 'late' });
  expect(gathered).toHaveLength(1);
});

test('nobody waits for the answer of a worker that has ended meanwhile', async () => {
  const { workers, gathered } = await running();
  workers.number(1).say({ kind: 'ask', id: 1, topic: 'metrics' });
  workers.number(1).say({ kind: 'answer', id: 1, value: 'one' });
  workers.number(2).end();
  await settle();
  expect(gathered).toEqual([{ answers: [{ worker: 1, value: 'one' }], silent: [] }]);
});

test('a question that cannot be answered is told of and harms nothing', async () => {
  const { workers, events } = await running();
  workers.number(1).say({ kind: 'ask', id: 1, topic: 'nothing' });
  for (const worker of workers.all) worker.say({ kind: 'answer', id: 1, value: 0 });
  await settle();
  expect(events).toEqual(['unanswered nothing']);
  expect(workers.number(1).kinds()).not.toContain('summary');
});
