/** Gateways of one fleet whose clocks are minutes apart. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Fleet } from '../support/fleet.ts';

const OFF_MS = 5 * 60_000;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.start({ gateways: 2, redis: {}, clockOffsetsMs: [-OFF_MS, OFF_MS] });
});
afterAll(() => fleet.close());

test.each([
  [0, 1],
  [1, 0],
])('what gateway %i has cached gateway %i serves, of an age that is never below 0', async (first, second) => {
  const key = await fleet.first.issueKey();
  const path = `/v2/calls/by_${first}`;
  expect(await fleet.gateway(first).status(path, key)).toBe(200);
  const later = await fleet.gateway(second).get(path, key);
  expect([later.status, later.headers.get('age'), later.headers.get('cache-control')]).toEqual([
    200,
    expect.stringMatching(/^\d+$/),
    expect.stringMatching(/^private, max-age=\d+, must-revalidate$/),
  ]);
});

test('R1: a limit holds over both, to the request', async () => {
  const key = await fleet.first.issueKey({ perMinute: 10 });
  const statuses: number[] = [];
  for (let index = 0; index < 30; index += 1) {
    statuses.push(await fleet.gateway(index).status('/v2/calls/limited', key));
  }
  expect(statuses).toEqual([...Array<number>(10).fill(200), ...Array<number>(20).fill(429)]);
});

test('C8: a key that is revoked through one is refused by the other', async () => {
  const { keyId, token } = await fleet.first.issue();
  const statuses = () => Promise.all(fleet.gateways.map((gateway) => gateway.status('/v2/calls/revoked', token)));
  expect(await statuses()).toEqual([200, 200]);
  await fleet.first.administer('DELETE', `/api/keys/${keyId}`);
  await vi.waitFor(async () => expect(await statuses()).toEqual([403, 403]), { timeout: 10_000 });
});
