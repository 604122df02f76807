/** Thousands of connections that send a request a byte at a time: nobody else notices, and they are closed. */
import { type FaultsWorld, withFaultsWorld } from '../../support/faults-world.ts';
import { Load } from '../../support/load.ts';
import type { Sample, Target } from '../../support/load-commands.ts';
import { count, ms, percentile, type Row, type Scale, loadSlackMs } from '../row.ts';

const PER_SECOND = 100;
const ADDED_MS = 20;
const CLOSED_WITHIN_MS = 15_000;

export async function run(scale: Scale): Promise<readonly Row[]> {
  const sockets = scale === 'whole' ? 2000 : 200;
  return [await withFaultsWorld({}, (world) => slowloris(world, sockets, scale))];
}

async function slowloris(world: FaultsWorld, sockets: number, scale: Scale): Promise<Row> {
  const { first, load } = world;
  const key = await first.issueKey();
  const targets: readonly Target[] = Array.from({ length: 10 }, (_, index) => ({
    url: `${first.publicUrl}/v2/calls/warm_${index}`,
    key,
    tag: 'read',
  }));
  await load.run(targets, { perSecond: PER_SECOND, forMs: 1500 });
  const before = await load.run(targets, { perSecond: PER_SECOND, forMs: scale === 'whole' ? 10_000 : 2000 });
  const slow = await Load.start();
  try {
    first.forgetPeaks();
    await load.begin(targets, PER_SECOND);
    const closed = await slow.slowloris(first.publicUrl, sockets);
    const during = await load.end();
    const { heldCpuMs } = first.hold();
    const longestMs = Math.max(...closed.map(({ afterMs }) => afterMs));
    const [p99Before, p99During] = [p99(before), p99(during)];
    const answered = during.filter(({ status }) => status === 200);
    return {
      name: 'slow clients',
      bar: `${count(sockets)} connections that send a byte a second, and ${PER_SECOND} requests/s: p99 of these at most ${ms(ADDED_MS + loadSlackMs(scale))} more than without; slow ones closed within ${ms(CLOSED_WITHIN_MS + loadSlackMs(scale))}`,
      measured: `p99 ${p99Before.toFixed(1)} ms without, ${p99During.toFixed(1)} ms with them; ${count(answered.length)} of ${count(during.length)} answered 200; ${count(closed.length)} closed after ${ms(longestMs)} at most, ${count(closed.filter(({ status }) => status === 400).length)} of them with a 400; event loop held ${ms(heldCpuMs)} of its CPU at most`,
      ok:
        p99During - p99Before <= ADDED_MS + loadSlackMs(scale) &&
        answered.length === during.length &&
        closed.length === sockets &&
        longestMs <= CLOSED_WITHIN_MS + loadSlackMs(scale),
    };
  } finally {
    await slow.close();
  }
}

function p99(samples: readonly Sample[]): number {
  return percentile(
    samples.map(({ tookMs }) => tookMs),
    0.99,
  );
}
