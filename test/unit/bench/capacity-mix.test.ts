import { expect, test } from 'vitest';
import {
  everyFill,
  expectedFills,
  KEYS,
  KINDS,
  mixedRequest,
  type MixedRequest,
  SHARES,
  workspaceId,
  workspaceOf,
  WORKSPACES,
} from '../../bench/capacity-mix.ts';
import { SeededRandom } from '../../support/random.ts';

test('the shares of the mix are all of it, and requests come in these shares', () => {
  expect(KINDS.reduce((sum, kind) => sum + SHARES[kind], 0)).toBe(100);
  const random = new SeededRandom(1);
  const requests = Array.from({ length: 20_000 }, () => mixedRequest(() => random.next()));
  for (const kind of KINDS) {
    const percent = (100 * requests.filter((request) => request.kind === kind).length) / requests.length;
    expect(Math.abs(percent - SHARES[kind])).toBeLessThan(1);
  }
});

test('a request asks for what its key may read, and all keys ask', () => {
  const random = new SeededRandom(2);
  const requests = Array.from({ length: 150_000 }, () => mixedRequest(() => random.next()));
  expect(requests.filter((request) => !isOwn(request))).toEqual([]);
  expect(new Set(requests.map(({ key }) => key)).size).toBe(KEYS);
});

test('the numbers at both ends make requests as all others do', () => {
  expect(mixedRequest(() => 0)).toEqual({
    kind: 'list',
    key: 0,
    path: '/v1/workspaces/00000000-0000-4000-8000-000000000000/reports?limit=8',
  });
  expect(mixedRequest(() => 0.999_999_999)).toEqual({
    kind: 'transcript page, gzip',
    key: 9599,
    path: '/v2/calls/ev_1199_0/transcript',
  });
});

test('one request for each answer fills all that is asked of the store', () => {
  const fills = everyFill();
  expect(fills).toHaveLength(2 * WORKSPACES);
  expect(new Set(fills.map(({ path }) => path)).size).toBe(2 * WORKSPACES);
});

test('an answer that is always asked for is filled once in its freshness, a rare one with each read', () => {
  expect(expectedFills({ answers: 1200, readsPerSecond: 1e12, freshSeconds: 30 })).toBeCloseTo(40, 6);
  expect(expectedFills({ answers: 1200, readsPerSecond: 0.001, freshSeconds: 30 })).toBeCloseTo(0.001, 6);
  // Each of 1,200 every 30 s: fresh for 30 s, then 30 s until the next read.
  expect(expectedFills({ answers: 1200, readsPerSecond: 40, freshSeconds: 30 })).toBeCloseTo(20, 10);
  expect(expectedFills({ answers: 1200, readsPerSecond: 0, freshSeconds: 30 })).toBe(0);
});

function isOwn({ key, path }: MixedRequest): boolean {
  const workspace = workspaceOf(key);
  return path.includes(workspaceId(workspace)) || path.includes(`/ev_${workspace}_`);
}
