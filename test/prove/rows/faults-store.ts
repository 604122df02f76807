/** The store is down in every way there is: those who read what is cached don't notice but for what the answers say. */
import { WORKSPACE_A } from '../../support/records.ts';
import { type FaultsWorld, sleep, withFaultsWorld } from '../../support/faults-world.ts';
import type { Sample, Target } from '../../support/load-commands.ts';
import { count, ms, percentile, type Row, type Scale } from '../row.ts';

const FRESH_MS = 1000;
/** Copies are stale for most of the outage, and served after failing tries for the rest of it. */
const TIMES = ['LIST', 'EVALUATION'].flatMap((name): [string, string][] => [
  [`CACHE_${name}_FRESH`, `${FRESH_MS}ms`],
  [`CACHE_${name}_STALE`, '2s'],
  [`CACHE_${name}_ERROR`, '1h'],
]);
const CALLS = 20;
const PER_SECOND = 40;
/** How exactly `Age` can be known from outside: whole seconds on both sides of the store's own time. */
const AGE_SLACK_SECONDS = 1.5;

type Outage = readonly [name: string, begin: (world: FaultsWorld) => Promise<void> | void];

const OUTAGES: readonly Outage[] = [
  ['refused', (world) => world.proxy.refuse()],
  ['reset', (world) => world.proxy.set('upstream', { resetPeerMs: 0 })],
  ['hang', (world) => world.proxy.blackHole()],
  ['503', (world) => void world.store.fail(503)],
  [
    'HTML with 200',
    (world) =>
      void world.store.override(/^/, (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>It works</title>');
      }),
  ],
];

export async function run(scale: Scale): Promise<readonly Row[]> {
  const forMs = scale === 'whole' ? 60_000 : 4000;
  const outages = scale === 'whole' ? OUTAGES : OUTAGES.filter(([name]) => name === 'hang' || name === 'refused');
  // Each with a gateway and a load generator of its own, so that all of them take one minute.
  const found = await Promise.all(outages.map((outage) => storeDown(outage, forMs)));
  const seconds = forMs / 1000;
  return [
    {
      name: 'store down',
      bar: `${outages.map(([name]) => name).join(', ')} for ${seconds} s each, warm keys: 100 % answered 200, marked stale, with the true Age`,
      measured: found.map(({ text }) => text).join('; '),
      ok: found.every(({ ok }) => ok),
    },
  ];
}

async function storeDown([name, begin]: Outage, forMs: number): Promise<{ text: string; ok: boolean }> {
  return withFaultsWorld({ env: Object.fromEntries(TIMES) }, async (world) => {
    const targets = await targetsOf(world);
    const warm = await world.load.run(targets, { perSecond: 2 * targets.length, forMs: 1000 });
    const beganAtMs = Date.now();
    await begin(world);
    const samples = await world.load.run(targets, { perSecond: PER_SECOND, forMs });
    const answered = samples.filter(({ status }) => status === 200);
    const unmarked = answered.filter((sample) => !isMarked(sample, beganAtMs));
    const dishonest = answered.filter((sample) => !isHonest(sample));
    const stale = answered.filter(({ cacheStatus }) => cacheStatus?.includes('detail=stale') === true);
    const oldest = Math.max(...answered.map(({ ageSeconds }) => ageSeconds ?? 0));
    const p99 = percentile(
      samples.map(({ tookMs }) => tookMs),
      0.99,
    );
    const faults = [...unmarked, ...dishonest].slice(0, 2).map((sample) => JSON.stringify(sample));
    return {
      text: `${name}: ${count(answered.length)} of ${count(samples.length)} answered 200, ${count(stale.length)} of them stale, up to ${oldest} s old, p99 ${ms(p99)}${faults.length > 0 ? ` (${faults.join()})` : ''}`,
      ok:
        answered.length === samples.length &&
        unmarked.length + dishonest.length === 0 &&
        stale.length > samples.length / 2 &&
        warm.every(({ status }) => status === 200) &&
        (await isWellAfter(world, name, targets)),
    };
  });
}

async function targetsOf({ first }: FaultsWorld): Promise<readonly Target[]> {
  const key = await first.issueKey();
  const paths = [
    ...Array.from({ length: CALLS }, (_, index) => `/v2/calls/warm_${index}`),
    '/v2/calls?pageSize=10',
    `/v1/workspaces/${WORKSPACE_A}/reports?limit=10`,
    `/v1/workspaces/${WORKSPACE_A}/reports/warm_0`,
  ];
  return paths.map((path) => ({ url: first.publicUrl + path, key, tag: 'warm' }));
}

/** Whatever was fetched before the outage, and can't be fresh any more, says that it is stale. */
function isMarked({ atMs, tookMs, cacheStatus, title }: Sample, beganAtMs: number): boolean {
  const filledAtMs = Number(title);
  if (filledAtMs > beganAtMs || atMs - filledAtMs < FRESH_MS) return true;
  const isSaid = /^evalgate; hit; ttl=-\d+; detail=stale-(?:while-revalidate|if-error)$/.test(cacheStatus ?? '');
  return isSaid || atMs + tookMs - filledAtMs < FRESH_MS;
}

/** The store wrote the time of its answer into the record. */
function isHonest({ atMs, tookMs, ageSeconds, title }: Sample): boolean {
  const filledAtMs = Number(title);
  const [least, most] = [(atMs - filledAtMs) / 1000, (atMs + tookMs - filledAtMs) / 1000];
  return ageSeconds !== null && ageSeconds >= least - AGE_SLACK_SECONDS && ageSeconds <= most + AGE_SLACK_SECONDS;
}

/** Fresh answers again, once the store gives them: within the 5 s after which a breaker has tried it. */
async function isWellAfter(world: FaultsWorld, name: string, targets: readonly Target[]): Promise<boolean> {
  if (name === '503' || name.startsWith('HTML')) return true;
  if (name === 'refused') await world.proxy.listen();
  world.proxy.heal();
  const healedAtMs = Date.now();
  while (Date.now() - healedAtMs < 8000) {
    const samples = await world.load.run(targets.slice(0, 3), { perSecond: 30, forMs: 200 });
    if (samples.some(({ status, title }) => status === 200 && Number(title) > healedAtMs)) return true;
    await sleep(100);
  }
  return false;
}
