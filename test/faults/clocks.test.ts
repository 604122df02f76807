/** Gateways of one fleet whose clocks are minutes apart. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Fleet } from '../support/fleet.ts';

const OFF_MS = 5 * 60_000;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.start({ gateways: 2, redis: {}, clockOffsetsMs: [-OFF_MS, OFF_MS] });
});
afterAll(() => fleet.close());

test.each([
  [0, 1, '200 \\d+ private, max-age=\\d+, must-revalidate'],
  // From the future, so that its age is unknown (C9).
  [1, 0, '200 null private, max-age=0, must-revalidate'],
])('gateway %2$i serves a copy of gateway %1$i with the age that it knows: %3$s', async (first, second, expected) => {
  const key = await fleet.first.issueKey();
  const path = `/v2/calls/by_${first}`;
  expect(await fleet.gateway(first).status(path, key)).toBe(200);
  const { status, headers } = await fleet.gateway(second).get(path, key);
  expect(`${status} ${headers.get('age')} ${headers.get('cache-control')}`).toMatch(new RegExp(`^${expected}$`));
});

test('C9: a copy from the future is renewed in Redis too, though its time is later than that of the new one', async () => {
  const key = await fleet.first.issueKey();
  const path = '/v2/calls/renewed';
  expect(await fleet.gateway(1).status(path, key)).toBe(200);
  const ages: (string | null)[] = [];
  await vi.waitFor(
    async () => {
      const reply = await fleet.gateway(0).get(path, key);
      await reply.arrayBuffer();
      ages.push(reply.headers.get('age'));
      expect(reply.headers.get('cache-status')).toMatch(/^evalgate; hit; ttl=[1-9]/);
    },
    { timeout: 10_000 },
  );
  expect(ages[0]).toBe(null);
});

const fleetSchema = z.object({ members: z.array(z.object({ self: z.boolean(), clockAheadMs: z.number() })) });

test("C9: Redis's clock judges: each gateway says by how much its own is off, and knows it of the other", async () => {
  for (const [index, offMs, word] of [
    [0, -OFF_MS, '5m behind'],
    [1, OFF_MS, '5m ahead of'],
  ] as const) {
    const gateway = fleet.gateway(index);
    await vi.waitFor(
      async () => {
        const clock = (await gateway.readiness()).dependencies.find(({ name }) => name === 'clock');
        expect(`${clock?.status}: ${clock?.detail}`).toContain(
          `degraded: the clock of this process is ${word} that of Redis`,
        );
        const { members } = fleetSchema.parse(await gateway.administer('GET', '/api/fleet'));
        expect(members.find(({ self }) => self)?.clockAheadMs).toBe(offMs);
        expect(members.find(({ self }) => !self)?.clockAheadMs).toBe(-offMs);
      },
      { timeout: 10_000 },
    );
  }
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
