/** The rate limit's windows and defaults. Its decisions and headers are held against an oracle in rate-limit-walk.test.ts. */
import { expect, test } from 'vitest';
import { startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import { GET_CALL, GET_RUBRIC, LIST_CALLS, LIST_REPORTS } from './endpoints.ts';
import { rateLimitOf } from './headers.ts';
import { rotateKey } from './keys.ts';
import { readerOf } from './subject.ts';

const gateway = await forFile(startTestGateway());

test('R1, R2, R4: by default 120 a minute and 3,000 an hour', async () => {
  const start = gateway.clock.nowMs() / 1000;
  const reply = await gateway.get('/v2/calls', { key: await gateway.issueKey() });
  expect(rateLimitOf(reply)).toEqual({
    'x-ratelimit-limit': '120',
    'x-ratelimit-remaining': '119',
    'x-ratelimit-reset': String(start + 60),
    'x-ratelimit-active-window': 'minute',
    'x-ratelimit-minute-limit': '120',
    'x-ratelimit-minute-remaining': '119',
    'x-ratelimit-minute-reset': String(start + 60),
    'x-ratelimit-hour-limit': '3000',
    'x-ratelimit-hour-remaining': '2999',
    'x-ratelimit-hour-reset': String(start + 3600),
    'ratelimit-policy': '"minute";q=120;w=60, "hour";q=3000;w=3600',
    ratelimit: '"minute";r=119;t=60, "hour";r=2999;t=3600',
  });
});

test.each([
  [{ perMinute: 7 }, '"minute";q=7;w=60, "hour";q=3000;w=3600'],
  [{ perHour: 9 }, '"minute";q=120;w=60, "hour";q=9;w=3600'],
])("R1: a key's own limits override, each of them by itself: %j", async (limits, policy) => {
  const reply = await gateway.get('/v2/calls', { key: await gateway.issueKey(limits) });
  expect(reply.headers['ratelimit-policy']).toBe(policy);
});

test('R1: all endpoints of both surfaces draw on the same two windows', async () => {
  const { subject, key } = await readerOf(gateway, LIST_CALLS, { perMinute: 10, perHour: 20 });
  const remaining: unknown[] = [];
  for (const endpoint of [LIST_REPORTS, LIST_CALLS, GET_CALL, GET_RUBRIC]) {
    const { headers } = await gateway.get(endpoint.path(subject), { key });
    remaining.push(
      `${String(headers['x-ratelimit-minute-remaining'])} ${String(headers['x-ratelimit-hour-remaining'])}`,
    );
  }
  expect(remaining).toEqual(['9 19', '8 18', '7 17', '6 16']);
});

test('K3: when the overlap is over a rotated key ends, and its successor has the quota to itself', async () => {
  const { keyId, token: old } = await gateway.issue({ perMinute: 3, perHour: 9 });
  const successor = await rotateKey(gateway, keyId, '1h');
  const statuses: number[] = [];
  for (const key of [old, successor, old, old, successor])
    statuses.push((await gateway.get('/v2/calls', { key })).status);
  gateway.clock.advance(3_600_000);
  for (const key of [old, successor]) statuses.push((await gateway.get('/v2/calls', { key })).status);
  expect(statuses).toEqual([200, 200, 200, 429, 429, 403, 200]);
});
