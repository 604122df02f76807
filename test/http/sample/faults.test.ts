/** The faults of the sample store, as somebody sees them who tries a gateway or a client against it. */
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Faults } from '../../../src/sample/faults.ts';
import { type RunningSample, startSample } from '../../support/sample-store.ts';

const recordSchema = z.object({ _id: z.string(), workspaceId: z.string() });

/** The statuses of so many calls, 0 for one without an answer. */
async function statusesOf({ read, data }: RunningSample, calls: number): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    statuses.push(
      await read(`/evaluations/${data.demo.callId}`).then(
        ({ status }) => status,
        () => 0,
      ),
    );
  }
  return statuses;
}

test.each([
  [400, 'BAD_REQUEST', null],
  [401, 'UNAUTHENTICATED', null],
  [404, 'FAULT', null],
  [429, 'RATE_LIMITED', '7'],
  [500, 'INTERNAL', '7'],
  [502, 'BAD_GATEWAY', '7'],
  [503, 'UNAVAILABLE', '7'],
])(
  'status %i has the code %s, and from 429 on the Retry-After that was asked for',
  async (status, code, retryAfter) => {
    const { read, data, setFaults } = await startSample({ faults: { status, retryAfter: 7 } });
    const response = await read(`/evaluations/${data.demo.callId}`);
    expect([response.status, response.headers.get('retry-after')]).toEqual([status, retryAfter]);
    expect(await response.json()).toEqual({ code, message: 'the store was told to fail' });
    setFaults({ status });
    expect((await read('/evaluations/x')).headers.get('retry-after')).toBeNull();
  },
);

test('a share of the calls fails, the same calls in every run', async () => {
  const runs = await Promise.all(
    [1, 2].map(async () => statusesOf(await startSample({ faults: { errorRate: 0.3 } }), 60)),
  );
  expect(runs[0]).toEqual(runs[1]);
  const failed = runs[0]?.filter((status) => status === 500).length ?? 0;
  expect(failed).toBeGreaterThan(8);
  expect(failed).toBeLessThan(30);
});

const MAX_BYTES = 20_000_000;

/** The whole body; `endless` if it is far larger than any answer of the store. */
async function bodyOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body ?? []) {
    const chunk = z.instanceof(Uint8Array).parse(piece);
    length += chunk.length;
    if (length > MAX_BYTES) return 'endless';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

async function outcomeOf({ read, data, setFaults }: RunningSample, faults: Partial<Faults>): Promise<string> {
  setFaults(faults);
  // These never end, so there is nothing to wait for.
  const isTooSlow = faults.hangRate === 1 || faults.slowDrip === true;
  try {
    const signal = AbortSignal.timeout(isTooSlow ? 300 : 15_000);
    const response = await read(`/evaluations/${data.demo.callId}`, { signal });
    if (response.status !== 200) return String(response.status);
    const text = await bodyOf(response);
    if (text === 'endless') return text;
    if (text.startsWith('<')) return 'html';
    if (text.startsWith('[[')) return 'deep';
    const { _id, workspaceId } = recordSchema.parse(JSON.parse(text));
    if (_id !== data.demo.callId) return 'wrong id';
    return workspaceId === data.demo.workspaceId ? 'right' : 'wrong workspace';
  } catch (error) {
    return error instanceof SyntaxError ? 'no JSON' : 'no whole answer';
  }
}

test.each([
  ['error', '500'],
  ['hang', 'no whole answer'],
  ['reset', 'no whole answer'],
  ['html', 'html'],
  ['truncate', 'no JSON'],
  ['deep', 'deep'],
  ['wrongId', 'wrong id'],
  ['wrongWorkspace', 'wrong workspace'],
])('%sRate is 0 for no call and 1 for every call: %s', async (name, outcome) => {
  const sample = await startSample();
  expect(await outcomeOf(sample, { [`${name}Rate`]: 0 })).toBe('right');
  expect(await outcomeOf(sample, { [`${name}Rate`]: 1 })).toBe(outcome);
});

test.each([
  ['endless', 'endless'],
  ['gzipBomb', 'endless'],
  ['slowDrip', 'no whole answer'],
  ['redirect', '302'],
])('%s is a switch: %s', async (name, outcome) => {
  const sample = await startSample();
  expect(await outcomeOf(sample, { [name]: true })).toBe(outcome);
  expect(await outcomeOf(sample, {})).toBe('right');
});

test('capacity: within it a call takes the latency, beyond it longer by the square, beyond four times it is refused', async () => {
  const waits: { readonly ms: number; readonly end: () => void }[] = [];
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => void waits.push({ ms, end: resolve }));
  const sample = await startSample({ faults: { capacity: 2 }, latency: 10, sleep });
  const calls = Array.from({ length: 10 }, () => statusesOf(sample, 1));
  await vi.waitFor(() => expect(waits).toHaveLength(8));
  expect(waits.map(({ ms }) => ms)).toEqual([10, 10, 22.5, 40, 62.5, 90, 122.5, 160]);
  await Promise.race(calls);
  for (const { end } of waits.splice(0)) end();
  expect((await Promise.all(calls)).flat().toSorted((a, b) => a - b)).toEqual([
    ...Array.from({ length: 8 }, () => 200),
    503,
    503,
  ]);
});

async function waitsOf400(): Promise<readonly number[]> {
  const waits: number[] = [];
  const sleep = (ms: number): Promise<void> => Promise.resolve(void waits.push(ms));
  await statusesOf(await startSample({ latency: 120, sleep }), 400);
  return waits;
}

test('the latency is that of real stores: many near the median, a few far above it, the same in every run', async () => {
  const [waits, again] = [await waitsOf400(), await waitsOf400()];
  expect(waits).toEqual(again);
  const sorted = waits.toSorted((a, b) => a - b);
  expect(sorted[200]).toBeGreaterThan(95);
  expect(sorted[200]).toBeLessThan(150);
  expect(sorted[380]).toBeGreaterThan(500);
  expect(sorted.at(-1)).toBeLessThanOrEqual(6000);
});

test('a caller who leaves while it waits harms nobody', async () => {
  const left = Promise.withResolvers<void>();
  const sleep = (_ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        left.resolve();
        reject(new Error('left'));
      });
    });
  const sample = await startSample({ latency: 100, sleep });
  const controller = new AbortController();
  const call = sample.read('/evaluations/x', { signal: controller.signal });
  setImmediate(() => controller.abort());
  await expect(call).rejects.toThrow('aborted');
  sample.setFaults({ capacity: 1 });
  expect((await fetch(sample.url)).status).toBe(401);
});
