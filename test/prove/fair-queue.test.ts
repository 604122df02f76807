/** One key that asks for more than the store bears, and another: what the other still gets. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { Load, type Sample, type Target } from '../support/load.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation } from '../support/records.ts';
import { createStoreServer } from '../support/store-server.ts';
import { count, percent, prove } from './bar.ts';

const BEARS = 50;

/** A gateway with the settings that it has unless told otherwise, and two keys, in front of a store of that latency. */
async function startWorld(latencyMs: number) {
  const store = await createStoreServer({ latencyMs });
  store.evaluations.make = (id) => anEvaluation({ _id: id });
  // Above its capacity it would become slower: below it, each call takes just that time.
  store.setFaults({ capacity: BEARS });
  onTestFinished(() => store.close());
  const load = await forTest(Load.start());
  const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, LOG_LEVEL: 'fatal' };
  const gateway = await GatewayProcess.start({ env });
  onTestFinished(() => gateway.kill());
  const target = async (name: string): Promise<Target> => ({
    url: `${gateway.publicUrl}/v2/calls/${name}-{n}`,
    key: await gateway.issueKey(),
  });
  const [busy, quiet, warm] = [await target('busy'), await target('quiet'), await target('warm')];
  // Code is loaded and connections stand.
  await load.burst([warm], 20);
  return { load, busy, quiet };
}

function served(samples: readonly Sample[]): number {
  return samples.filter(({ status }) => status === 200).length;
}

test.for([
  [120, 0],
  [600, 15],
  [1500, 40],
] as const)('a store of %i ms: at most %i of the other reads fail', async ([latencyMs, mayFail], context) => {
  const [flood, reads, laterMs] = [119, 50, 100];
  const { load, busy, quiet } = await startWorld(latencyMs);
  const flooding = load.burst([busy], flood);
  await sleep(laterMs);
  const failed = reads - served(await load.burst([quiet], reads));
  const answered = served(await flooding);
  prove(context, {
    name: `fair queue: store of ${latencyMs} ms`,
    bar: `one key asks for ${flood} unknown ids at once, ${laterMs} ms later another for ${reads}: of these at most ${mayFail} fail`,
    measured: `${failed} of ${reads} failed; the first key got ${answered} of ${flood}`,
    ok: failed <= mayFail,
  });
});

test('two keys that both ask for more than their half', async (context) => {
  const [latencyMs, forMs] = [600, 20_000];
  const bearsPerSecond = BEARS / (latencyMs / 1000);
  const { load, busy, quiet } = await startWorld(latencyMs);
  const [ofBusy, ofQuiet] = await Promise.all([
    load.run([busy], { perSecond: 3 * bearsPerSecond, forMs }),
    load.run([quiet], { perSecond: bearsPerSecond, forMs }),
  ]);
  const [first, second] = [served(ofBusy), served(ofQuiet)];
  const share = second / (first + second);
  prove(context, {
    name: 'fair queue: two steady keys',
    bar: `store that bears ${count(Math.round(bearsPerSecond))}/s; one key asks for 3 × that, the other for 1 ×, ${forMs / 1000} s: each gets half, within a tenth`,
    measured: `${count(first)} and ${count(second)} served: ${percent(share)} for the second`,
    ok: Math.abs(share - 0.5) <= 0.05,
  });
});
