import { expect, test } from 'vitest';
import { readToPrimary, readToWorker } from '../../../src/cluster/messages.ts';

test.each([
  undefined,
  'drain',
  {},
  { kind: 'drain' },
  { kind: 'drain', delayMs: -1 },
  { kind: 'drain', delayMs: '5' },
  { kind: 'standing', standing: { ready: 1 } },
  { cmd: 'NODE_CLUSTER' },
])('%j is nothing that a worker is told', (message) => {
  expect(readToWorker(message)).toBeNull();
});

test.each([null, 7, { kind: 'ready' }, { kind: 'failed', message: 1 }, { kind: 'answer', id: '1' }, { kind: 'start' }])(
  '%j is nothing that a worker says',
  (message) => {
    expect(readToPrimary(message)).toBeNull();
  },
);

test('what each may say is read as it was said', () => {
  const told = { kind: 'start', payload: { files: { a: 'b' } } };
  expect(readToWorker(told)).toEqual(told);
  expect(readToWorker({ kind: 'reload-failed' })).toEqual({ kind: 'reload-failed' });
  const said = { kind: 'ask', id: 3, topic: 'metrics' };
  expect(readToPrimary(said)).toEqual(said);
});
