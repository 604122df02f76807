/** The outcome of a fetch whose gateway dies or is frozen. */
import { test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { Fleet, PLAIN_STORE_CONFIG } from '../support/fleet.ts';
import type { GatewayProcess } from '../support/process.ts';
import { ms, prove } from './bar.ts';

const PROCESSES = 4;
const LEASE_MS = 2000;

async function startFleet(): Promise<Fleet> {
  const env = { CONFIG_FILE: PLAIN_STORE_CONFIG, CACHE_EVALUATION_FRESH: '1h' };
  const fleet = await forTest(Fleet.start({ gateways: PROCESSES, redis: {}, env }));
  return fleet;
}

test('a leader is killed', async (context) => {
  const [rounds, storeMs] = [20, 500];
  const allowedMs = LEASE_MS + storeMs + 250;
  const fleet = await startFleet();
  const load = await fleet.load();
  const key = await fleet.first.issueKey();
  fleet.store.title = 'Discovery call';
  await load.burst(fleet.targets(['/v2/calls/warm'], key), 25);
  fleet.store.answerAfter(storeMs);
  let [mostCalls, longestMs, unserved] = [0, 0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const id = `killed_${round}`;
    const [leader] = fleet.gateways.splice(0, 1);
    if (leader === undefined) throw new RangeError('There is no gateway.');
    leader.get(`/v2/calls/${id}`, key).catch(() => undefined);
    await fleet.store.server.waitForCalls(fleet.store.server.calls() + 1);
    const waiting = load.burst(fleet.targets([`/v2/calls/${id}`], key), 25);
    // One that has not begun to wait yet finds the lease as those do that have.
    const killedAtMs = Date.now();
    await leader.kill();
    const reads = await waiting;
    unserved += reads.filter(({ status, title }) => status !== 200 || title !== 'Discovery call').length;
    mostCalls = Math.max(mostCalls, fleet.store.calls(id));
    longestMs = Math.max(longestMs, ...reads.map(({ atMs, tookMs }) => atMs + tookMs - killedAtMs));
    const added = await fleet.add();
    await added.status('/v2/calls/warm', key);
  }
  prove(context, {
    name: 'leader killed',
    bar: `SIGKILL mid-fetch, ${rounds} times: at most 2 calls, all waiters of ${PROCESSES - 1} other processes served within ${ms(allowedMs)} of the kill`,
    measured: `at most ${mostCalls} calls, ${unserved} not served, the last after ${ms(longestMs)}`,
    ok: mostCalls <= 2 && unserved === 0 && longestMs <= allowedMs,
  });
});

async function titleAt(gateway: GatewayProcess, path: string, key: string): Promise<string | undefined> {
  const text = await (await gateway.get(path, key)).text();
  return /"name":"([^"]*)"/.exec(text)?.[1];
}

test('a leader is paused', async (context) => {
  const rounds = 10;
  const fleet = await startFleet();
  const { store } = fleet;
  const key = await fleet.first.issueKey();
  store.title = 'warm';
  for (const gateway of fleet.gateways) await titleAt(gateway, '/v2/calls/warm', key);
  let overwritten = 0;
  for (let round = 0; round < rounds; round += 1) {
    const path = `/v2/calls/paused_${round}`;
    const [leader, second] = [fleet.gateway(round), fleet.gateway(round + 1)];
    store.title = `old ${round}`;
    const held = store.hold();
    const late = titleAt(leader, path, key);
    await store.server.waitForCalls(store.server.calls() + 1);
    leader.signal('SIGSTOP');
    // The second waits until the lease expires; its own call is answered at once.
    held.letThrough();
    store.title = `new ${round}`;
    const taken = await titleAt(second, path, key);
    held.release();
    leader.signal('SIGCONT');
    const stale = await late;
    if (taken !== `new ${round}` || store.calls(`paused_${round}`) !== 2) {
      throw new Error(`The leader was not overtaken: ${taken}, ${stale}, ${store.calls(`paused_${round}`)} calls.`);
    }
    const seen = await Promise.all(fleet.gateways.map((gateway) => titleAt(gateway, path, key)));
    if (seen.some((title) => title !== `new ${round}`)) overwritten += 1;
  }
  prove(context, {
    name: 'leader paused',
    bar: `SIGSTOP past its lease, ${rounds} times: newer data is never overwritten`,
    measured: `overwritten ${overwritten} times`,
    ok: overwritten === 0,
  });
});
