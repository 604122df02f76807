import { setFlagsFromString } from 'node:v8';
import { Command } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LeanCommand } from '../../../src/redis/lean-command.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A predicate of V8's own. */
function youngGenerationHas(): (value: unknown) => unknown {
  setFlagsFromString('--allow-natives-syntax');
  try {
    // oxlint-disable-next-line typescript/no-implied-eval -- No parser but V8's takes it.
    const ask = new Function('value', 'return %InYoungGeneration(value)');
    return (value) => {
      const answer: unknown = Reflect.apply(ask, undefined, [value]);
      return answer;
    };
  } finally {
    setFlagsFromString('--no-allow-natives-syntax');
  }
}

test('nothing of it is made in the old generation; of ioredis’ own command something is', () => {
  const isYoung = youngGenerationHas();
  const lean = new LeanCommand('get', ['k']);
  for (const part of [lean, lean.resolve, lean.reject, lean.promise]) expect(isYoung(part)).toBe(true);
  // Where this fails, ioredis has mended it, and there is no need of another command.
  expect(isYoung(new Command('get', ['k']).reject)).toBe(false);
});

test('it is sent as ioredis’ own is', () => {
  const args = ['key', 7, 1.5, Buffer.from([0, 255]), 'ä'];
  const socket = {};
  expect(new LeanCommand('eval', args).toWritable(socket)).toEqual(new Command('eval', args).toWritable(socket));
  expect(new LeanCommand('eval', ['a', 1]).toWritable(socket)).toBe('*3\r\n$4\r\neval\r\n$1\r\na\r\n$1\r\n1\r\n');
});

test('a reply in its encoding, and bytes where there is none', async () => {
  const reply = [Buffer.from('ä'), null, 7];
  const text = new LeanCommand('get', ['k'], { replyEncoding: 'utf8' });
  const bytes = new LeanCommand('get', ['k'], { replyEncoding: null });
  expect([text.isResolved, text.isSettled]).toEqual([false, false]);
  text.resolve(reply);
  bytes.resolve(reply);
  expect(await text.promise).toEqual(['ä', null, 7]);
  expect(await bytes.promise).toEqual([Buffer.from('ä'), null, 7]);
  expect([text.isResolved, text.isSettled]).toEqual([true, true]);
});

test('an error rejects it, and is not taken for an answer', async () => {
  const command = new LeanCommand('get', ['k']);
  const error = new Error('LOADING');
  command.reject(error);
  await expect(command.promise).rejects.toBe(error);
  expect([command.isResolved, command.isSettled]).toEqual([false, true]);
});

test('it waits as long as it was told first, and an answer ends that', async () => {
  const slow = new LeanCommand('get', ['k']);
  slow.setTimeout(100);
  slow.setTimeout(500);
  const quick = new LeanCommand('get', ['k']);
  quick.setTimeout(100);
  quick.resolve(Buffer.from('v'));
  expect(vi.getTimerCount()).toBe(1);
  const ended = vi.fn<(error: unknown) => void>();
  slow.promise.catch(ended);
  await vi.advanceTimersByTimeAsync(99);
  expect(ended).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(ended.mock.calls).toEqual([[new Error('Command timed out')]]);
  // What comes late changes nothing.
  slow.resolve(Buffer.from('v'));
  await expect(slow.promise).rejects.toThrow('Command timed out');
  expect(await quick.promise).toEqual(Buffer.from('v'));
});
