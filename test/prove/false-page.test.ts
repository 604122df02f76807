/** A store of whose calls some fail: what `/readyz` shows, and whether EvalgateStoreDown would page somebody. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { Fleet } from '../support/fleet.ts';
import { forTest } from '../support/opened.ts';
import type { GatewayProcess } from '../support/process.ts';
import { SeededRandom } from '../support/random.ts';
import { anEvaluation } from '../support/records.ts';
import { sendError, sendJson } from '../support/store-server.ts';
import { count, prove } from './bar.ts';

/** Each read finds a copy, and makes a call to the store. */
const TIMES = { CACHE_EVALUATION_FRESH: '1ms', CACHE_EVALUATION_STALE: '1h' };
const PATHS = Array.from({ length: 50 }, (_, index) => `/v2/calls/warm_${index}`);
const FOR_MS = 45_000;
const PER_SECOND = 40;
const LOOK_EVERY_MS = 250;
/** A circuit that opens by a run of failures closes again with the next probe; a page takes five minutes. */
const MAX_DOWN_MS = 10_000;

async function lookAt(gateway: GatewayProcess) {
  const { dependencies } = await gateway.readiness();
  const isDown = (await gateway.metric('evalgate_store_down')) === 1;
  return { isDegraded: dependencies.some(({ name, status }) => name === 'store' && status === 'degraded'), isDown };
}

/** The longest stretch of looks that found it down. Milliseconds. */
function longestDown(looks: readonly { readonly isDown: boolean }[]): number {
  let [longest, now] = [0, 0];
  for (const { isDown } of looks) {
    now = isDown ? now + LOOK_EVERY_MS : 0;
    longest = Math.max(longest, now);
  }
  return longest;
}

const CASES = [
  { failing: 0.04, promise: 'ok all the time', isDegraded: false, isDown: false },
  { failing: 0.4, promise: 'degraded at the end, never down for 10 s', isDegraded: true, isDown: false },
  { failing: 1, promise: 'degraded and down at the end', isDegraded: true, isDown: true },
] as const;

test.for(CASES)('$failing of the calls fail', async ({ failing, promise, ...expected }, context) => {
  const fleet = await forTest(Fleet.start({ env: TIMES }));
  const load = await fleet.load();
  const targets = fleet.targets(PATHS, await fleet.first.issueKey());
  await load.run(targets, { perSecond: PATHS.length, forMs: 2000 });
  const random = new SeededRandom(47);
  fleet.store.server.override(/\/evaluations\/warm_/, (request, response) => {
    if (random.next() < failing) sendError(response, 500, 'INTERNAL');
    else sendJson(request, response, anEvaluation({ _id: request.url?.split('/').at(-1) ?? '' }));
  });
  const reading = load.run(targets, { perSecond: PER_SECOND, forMs: FOR_MS });
  const looks = [];
  for (const endMs = Date.now() + FOR_MS; Date.now() < endMs; await sleep(LOOK_EVERY_MS)) {
    looks.push(await lookAt(fleet.first));
  }
  const samples = await reading;
  const answered = samples.filter(({ status }) => status === 200).length;
  const last = looks.at(-1);
  const degraded = looks.filter(({ isDegraded }) => isDegraded).length;
  const downMs = longestDown(looks);
  prove(context, {
    name: `false page: ${100 * failing} % of calls fail`,
    bar: `for ${FOR_MS / 1000} s every read is answered from its copy; the store is ${promise}`,
    measured: `${count(answered)} of ${count(samples.length)} answered; of ${looks.length} looks ${degraded} found it degraded; down for ${(downMs / 1000).toFixed(1)} s in a row at most`,
    ok:
      answered === samples.length &&
      last?.isDegraded === expected.isDegraded &&
      (expected.isDegraded || degraded === 0) &&
      (expected.isDown ? last.isDown : downMs < MAX_DOWN_MS),
  });
});
