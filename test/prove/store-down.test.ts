/** The store is down in every way there is: readers of what is cached notice nothing but what the answers say. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { Fleet } from '../support/fleet.ts';
import type { Load, Sample, Target } from '../support/load.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { count, ms, p99, prove } from './bar.ts';

const FRESH_MS = 1000;
/** Copies are stale for most of the outage, and served after failing tries for the rest of it. */
const TIMES = Object.fromEntries(
  ['LIST', 'EVALUATION'].flatMap((name) => [
    [`CACHE_${name}_FRESH`, `${FRESH_MS}ms`],
    [`CACHE_${name}_STALE`, '2s'],
    [`CACHE_${name}_ERROR`, '1h'],
  ]),
);
const FOR_MS = 60_000;
const PER_SECOND = 40;
/** How exactly `Age` can be known from outside: whole seconds on both sides of the store's own time. */
const AGE_SLACK_SECONDS = 1.5;
/** As soon as the circuit closes again after it was probed. */
const WELL_WITHIN_MS = 8000;
const PATHS = [
  ...Array.from({ length: 20 }, (_, index) => `/v2/calls/warm_${index}`),
  '/v2/calls?pageSize=10',
  `/v1/workspaces/${WORKSPACE_A}/reports?limit=10`,
  `/v1/workspaces/${WORKSPACE_A}/reports/warm_0`,
];

interface Outage {
  readonly name: string;
  readonly begin: (fleet: Fleet) => Promise<void> | void;
  readonly end: (fleet: Fleet) => Promise<void> | void;
}

const heal = ({ storeProxy }: Fleet): void => storeProxy.heal();
let takeBack = (): void => undefined;

const OUTAGES: readonly Outage[] = [
  { name: 'refused', begin: ({ storeProxy }) => storeProxy.refuse(), end: ({ storeProxy }) => storeProxy.listen() },
  { name: 'reset', begin: ({ storeProxy }) => storeProxy.reset(), end: heal },
  { name: 'hang', begin: ({ storeProxy }) => storeProxy.blackHole(), end: heal },
  {
    name: '503',
    begin: ({ store }) => void (takeBack = store.server.fail(503)),
    end: () => takeBack(),
  },
  {
    name: 'HTML with 200',
    begin: ({ store }) => {
      takeBack = store.server.override(/^/, (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>It works</title>');
      });
    },
    end: () => takeBack(),
  },
];

/** Everything that was fetched before the outage and can't be fresh any more says that it is stale. */
function isMarked({ atMs, tookMs, cacheStatus, title }: Sample, beganAtMs: number): boolean {
  const filledAtMs = Number(title);
  if (filledAtMs > beganAtMs || atMs + tookMs - filledAtMs < FRESH_MS) return true;
  return /^evalgate; hit; ttl=-\d+; detail=stale-(?:while-revalidate|if-error)$/.test(cacheStatus);
}

/** The store wrote the time of its answer into the record. */
function isHonest({ atMs, tookMs, ageSeconds, title }: Sample): boolean {
  const filledAtMs = Number(title);
  const [least, most] = [(atMs - filledAtMs) / 1000, (atMs + tookMs - filledAtMs) / 1000];
  return ageSeconds !== null && ageSeconds >= least - AGE_SLACK_SECONDS && ageSeconds <= most + AGE_SLACK_SECONDS;
}

/** Milliseconds until answers are fresh again; Infinity if they aren't in time. */
async function wellAfterMs(load: Load, targets: readonly Target[]): Promise<number> {
  const sinceMs = Date.now();
  while (Date.now() - sinceMs < WELL_WITHIN_MS) {
    const samples = await load.burst(targets.slice(0, 3), 1);
    if (samples.some(({ status, title }) => status === 200 && Number(title) > sinceMs)) return Date.now() - sinceMs;
    await sleep(50);
  }
  return Number.POSITIVE_INFINITY;
}

test.for(OUTAGES)('$name', async ({ name, begin, end }, context) => {
  const fleet = await forTest(Fleet.start({ env: TIMES }));
  const load = await fleet.load();
  const targets = fleet.targets(PATHS, await fleet.first.issueKey());
  const warm = await load.run(targets, { perSecond: 2 * targets.length, forMs: 1000 });
  const beganAtMs = Date.now();
  await begin(fleet);
  const samples = await load.run(targets, { perSecond: PER_SECOND, forMs: FOR_MS });
  await end(fleet);
  const wellMs = await wellAfterMs(load, targets);
  const answered = samples.filter(({ status }) => status === 200);
  const faults = answered.filter((sample) => !isMarked(sample, beganAtMs) || !isHonest(sample));
  const stale = answered.filter(({ cacheStatus }) => cacheStatus.includes('detail=stale'));
  const oldest = Math.max(...answered.map(({ ageSeconds }) => ageSeconds ?? 0));
  prove(context, {
    name: `store down: ${name}`,
    bar: `for ${FOR_MS / 1000} s, warm keys: 100 % answered 200, marked stale, with the true Age; fresh again within ${ms(WELL_WITHIN_MS)}`,
    measured: `${count(answered.length)} of ${count(samples.length)} answered 200, ${count(stale.length)} of them stale, up to ${oldest} s old, p99 ${ms(p99(samples))}; fresh again after ${ms(wellMs)}${faults[0] === undefined ? '' : `; ${JSON.stringify(faults[0])}`}`,
    ok:
      answered.length === samples.length &&
      faults.length === 0 &&
      stale.length > samples.length / 2 &&
      warm.every(({ status }) => status === 200) &&
      wellMs <= WELL_WITHIN_MS,
  });
});
