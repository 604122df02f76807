/** Promises of ten seconds that only a real clock shows: Redis's own, and that of Node's server. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { dependency, type World, quotasAreExact, startFleet, WITHIN } from '../support/world.ts';
import { startRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const fleetSchema = z.looseObject({
  problem: z.string().nullable(),
  members: z.array(z.looseObject({ self: z.boolean(), status: z.string(), heardMsAgo: z.number() })),
});

async function fleetAt(gateway: TestGateway): Promise<z.output<typeof fleetSchema>> {
  return fleetSchema.parse((await gateway.admin('GET', '/api/fleet')).json);
}

/** Two gateways of one fleet; the second one reaches Redis through a proxy. */
async function startTwo(): Promise<{ fleet: World; other: TestGateway; proxy: TcpProxy }> {
  const redis = await forTest(startRedis({ isDurable: true }));
  const proxy = await forTest(TcpProxy.start(redis.url));
  const fleet = await forTest(startFleet(redis.url, { size: 1 }));
  return { fleet, proxy, other: await fleet.join({ env: { REDIS_URL: proxy.url } }) };
}

test('a process that is cut off is silent, and dropped after ten seconds; it says itself that it hears of nobody', async () => {
  const { fleet, other, proxy } = await startTwo();
  const [first = other] = fleet.gateways;
  const membersAt = async (gateway: TestGateway) => (await fleetAt(gateway)).members;
  for (const gateway of [first, other])
    await vi.waitFor(async () => expect(await membersAt(gateway)).toHaveLength(2), WITHIN);
  const heardMsAgo = async () => (await membersAt(first)).find(({ self }) => !self)?.heardMsAgo;
  expect(await heardMsAgo()).toBeLessThan(5000);
  await proxy.refuse();
  await vi.waitFor(async () => expect(await heardMsAgo()).toBeGreaterThan(5000), WITHIN);
  for (const gateway of [first, other])
    await vi.waitFor(async () => expect(await membersAt(gateway)).toMatchObject([{ self: true }]), WITHIN);
  const silence = 'Redis does not answer, so nothing is heard of other processes (2 known in all)';
  expect([(await fleetAt(first)).problem, (await fleetAt(other)).problem]).toEqual([null, silence]);
});

test('R5: a gateway that reaches Redis again before the others do goes on with the same share if Redis is lost again', async () => {
  const { fleet, other, proxy } = await startTwo();
  const ofTwo = 'degraded: Redis does not decide: this process goes on with its share, one of 2';
  const isLost = () => vi.waitFor(async () => expect(await dependency(other, 'quota')).toBe(ofTwo), WITHIN);
  await quotasAreExact(other);
  await proxy.refuse();
  await isLost();
  // In Redis, heartbeats count for ten seconds; the other gateway stays away for longer.
  await fleet.gateways[0]?.close();
  await sleep(11_000);
  await proxy.listen();
  await quotasAreExact(other);
  await sleep(500);
  await proxy.refuse();
  await isLost();
});

test('slow headers, and none at all, end with the 10 s for them', async () => {
  const { publicUrl, close } = await startTestGateway();
  onTestFinished(close);
  const answers = ['', 'GET / HTTP/1.1\r\nHost: a\r\nX: y'].map((bytes) => {
    const { port, hostname: host } = new URL(publicUrl);
    const socket = connect({ port: Number(port), host });
    socket.write(bytes);
    return text(socket);
  });
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    expect(answer).toContain('it did not arrive in time');
  }
});
