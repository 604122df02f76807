/**
 * From a change in the store to a fresh answer in every process, if the store announces it: with times of a day and 500 reads
 * per second, for a burst of ten thousand changes, and while Redis is away. PROVE_CHANGES makes it fewer changes.
 */
import { test } from 'vitest';
import { ChangingSample, type Edited } from '../support/changing-sample.ts';
import { Load } from '../support/load.ts';
import { forTest } from '../support/opened.ts';
import { percentile } from '../support/percentile.ts';
import { count, ms, p99, prove } from './bar.ts';

const EDITS = Number(process.env['PROVE_CHANGES'] ?? 1000);
const GATEWAYS = 4;
const READS_PER_SECOND = 500;
const GIVE_UP_MS = 10_000;
/** The load generator, the store and Redis need their share of a small machine. */
const BURST_GATEWAYS = 2;
const BURST_READS_PER_SECOND = 300;
const STORE_CAPACITY = 50;

const start = (evaluations: number) =>
  forTest(ChangingSample.start({ gateways: GATEWAYS, evaluations, latencyMs: 20 }));

/** Reads of all calls at all gateways, once each, so that all is cached everywhere. */
async function warm(world: ChangingSample) {
  const load = await forTest(Load.start());
  const targets = [...world.calls.keys()].flatMap((id) =>
    world.gateways.map(({ publicUrl }) => ({ url: `${publicUrl}/v2/calls/${id}`, key: world.key })),
  );
  await load.burst(targets, 1);
  return { load, targets };
}

test('a change that is announced', async (context) => {
  const world = await start(120);
  const ids = [...world.calls.keys()];
  const { load, targets } = await warm(world);
  await load.begin(targets, READS_PER_SECOND);
  const [callsBefore, seen]: [number, number[]] = [world.storeCalls, []];
  for (let round = 0; round < EDITS; round += 1) {
    const sinceMs = performance.now();
    const edited = world.edit(ids[round % ids.length] ?? '', `Edit ${round}`);
    void world.announce([edited], round);
    const fresh = world.gateways.map(async (_, place) => {
      while ((await world.titleAt(place, edited.id)) !== edited.title) {
        if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error(`${edited.title} was not read in time.`);
      }
      seen.push(performance.now() - sinceMs);
    });
    await Promise.all(fresh);
  }
  await load.end();
  const perEdit = (world.storeCalls - callsBefore) / EDITS;
  const slowest = percentile(seen, 0.99);
  prove(
    context,
    {
      name: 'announced change',
      bar: `${count(EDITS)} edits under ${READS_PER_SECOND} reads/s: read fresh from each of ${GATEWAYS} processes, p99 at most 1,000 ms`,
      measured: `p50 ${ms(percentile(seen, 0.5))}, p99 ${ms(slowest)}, longest ${ms(Math.max(...seen))}`,
      ok: slowest <= 1000,
    },
    {
      name: 'announced change, cost',
      bar: 'at most 1.2 calls to the store per edit and record read',
      measured: `${perEdit.toFixed(2)} calls`,
      ok: perEdit <= 1.2,
    },
  );
});

test('ten thousand changes at once', async (context) => {
  // The store takes 20 ms for each call: how much longer its slowest answers take is not the question here.
  const options = { gateways: BURST_GATEWAYS, evaluations: 400, latencyMs: 20, capacity: STORE_CAPACITY };
  const world = await forTest(ChangingSample.start(options));
  const { load, targets } = await warm(world);
  const ids = [...world.calls.keys()];
  const workspace = world.calls.get(ids[0] ?? '') ?? '';
  const changeOf = (id: string): Edited => ({ id, workspace: world.calls.get(id) ?? workspace, title: '' });
  const reads = { perSecond: BURST_READS_PER_SECOND, forMs: 4000 };
  // A process that has just started is slower at all that it does for the first time.
  await world.announce(ids.map(changeOf));
  await load.run(targets, reads);
  const calm = await load.run(targets, reads);
  // Each record once; most of them nobody has read.
  const burst = Array.from({ length: 10 }, (_, page) =>
    Array.from({ length: 1000 }, (__, index) =>
      changeOf(ids[(page * 1000 + index) / 25] ?? `ev_unread_${page}_${index}`),
    ),
  );
  const callsBefore = world.storeCalls;
  const running = load.run(targets, reads);
  const statuses = await Promise.all(burst.map((edited, page) => world.announce(edited, page)));
  const busy = await running;
  const [before, after] = [p99(calm), p99(busy)];
  const failed =
    busy.filter(({ status }) => status !== 200).length - calm.filter(({ status }) => status !== 200).length;
  prove(context, {
    name: 'burst of changes',
    bar: `10,000 changes at once under ${BURST_READS_PER_SECOND} reads/s at ${BURST_GATEWAYS} processes, a store of 20 ms: all taken, reads p99 at most 50 ms more, none failed, one call to the store per record at most`,
    measured: `${statuses.filter((status) => status === 200).length} of 10 taken, p99 ${ms(before)} before and ${ms(after)} after, ${count(Math.max(0, failed))} failed, ${count(world.storeCalls - callsBefore)} calls for ${count(ids.length)} records`,
    ok:
      statuses.every((status) => status === 200) &&
      after - before <= 50 &&
      failed <= 0 &&
      world.storeCalls - callsBefore <= ids.length,
  });
});

test('changes while Redis is away', async (context) => {
  const world = await start(120);
  const ids = [...world.calls.keys()].slice(0, 20);
  for (const id of ids) for (const place of world.gateways.keys()) await world.titleAt(place, id);
  await world.redis.kill();
  const edited = ids.map((id) => world.edit(id, `Away ${id}`));
  const refused = await Promise.all(edited.map((one, place) => world.announce([one], place, `msg_${one.id}`)));
  await world.redis.restart();
  for (const [place, one] of edited.entries()) {
    while ((await world.announce([one], place, `msg_${one.id}`)) !== 200)
      await new Promise((resolve) => setTimeout(resolve, 50));
  }
  let old = 0;
  for (const one of edited) {
    for (const place of world.gateways.keys()) old += Number((await world.titleAt(place, one.id)) !== one.title);
  }
  prove(context, {
    name: 'changes without Redis',
    bar: 'refused with 503, none acknowledged; sent again, all in force in every process',
    measured: `${refused.filter((status) => status === 503).length} of ${refused.length} refused; ${old} old answers after`,
    ok: refused.every((status) => status === 503) && old === 0,
  });
});
