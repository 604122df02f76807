/** A tenant's bad day is its own: what one key, or a client without one, costs another key's reads from memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { Load, type Sample, type Target } from '../support/load.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation, aTranscript } from '../support/records.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';
import { count, ms, p99, prove } from './bar.ts';

const MEGABYTE = 1_000_000;

interface World {
  readonly gateway: GatewayProcess;
  readonly store: StoreServer;
  readonly load: Load;
  readonly attack: Load;
  /** Another tenant's read from memory. */
  readonly victim: Target;
  readonly key: string;
}

/** A gateway with default settings in a process of its own, and a victim whose record it holds. */
async function startWorld(env: Readonly<Record<string, string>> = {}): Promise<World> {
  const store = await createStoreServer();
  store.evaluations.make = (id) => anEvaluation({ _id: id });
  onTestFinished(() => store.close());
  const [load, attack] = [await Load.start(), await Load.start()];
  onTestFinished(async () => void (await Promise.all([load.close(), attack.close()])));
  const own = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, LOG_LEVEL: 'fatal', ...env };
  const gateway = await GatewayProcess.start({ env: own, isProbed: true });
  onTestFinished(() => gateway.kill());
  const victim = { url: `${gateway.publicUrl}/v2/calls/victim`, key: await gateway.issueKey() };
  // Code is loaded and connections stand.
  await load.run([victim], { perSecond: 100, forMs: 1500 });
  return { gateway, store, load, attack, victim, key: await gateway.issueKey() };
}

function withStatus(samples: readonly Sample[], status: number): number {
  return samples.filter((sample) => sample.status === status).length;
}

/** Every transcript of the store has that many bytes. */
function enlarge(store: StoreServer, bytes: number): void {
  const line = 'Ann Lee: We “met” in Zürich — and said 😀 little more than that, as far as I know.\n';
  const body = line.repeat(Math.ceil(bytes / Buffer.byteLength(line)));
  const text = JSON.stringify(aTranscript({ evaluationId: 'ID', body }));
  const [before = '', after = ''] = text.split('"ID"');
  const tail = Buffer.from(after);
  store.override(/\/transcript$/, (request, response) => {
    const id = /evaluations\/([^/]+)\//.exec(request.url ?? '')?.[1] ?? '';
    const head = Buffer.from(`${before}"${id}"`);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': head.length + tail.length });
    response.write(head);
    response.end(tail);
  });
}

async function attackWithTranscripts(world: World, { bytes, calls, coding }: LargeAnswers) {
  const { gateway, store, load, attack, victim, key } = world;
  enlarge(store, bytes);
  gateway.forgetPeaks();
  const url = `${gateway.publicUrl}/v2/calls/large-{n}/transcript`;
  const headers = coding === null ? {} : { 'accept-encoding': coding };
  await load.begin([victim], 100);
  const answers = await attack.burst([{ url, key, headers }], calls);
  await sleep(500);
  const reads = await load.end();
  return { answers, reads, peakBytes: gateway.memory().peakBytes };
}

interface LargeAnswers {
  readonly bytes: number;
  readonly calls: number;
  readonly coding: string | null;
}

test('large answers, and a small heap', async (context) => {
  const attack = { bytes: 7 * MEGABYTE, calls: 40, coding: null };
  const world = await startWorld({ NODE_OPTIONS: '--max-old-space-size=256' });
  const { answers, reads, peakBytes } = await attackWithTranscripts(world, attack);
  prove(context, {
    name: 'tenants: large answers',
    bar: `${attack.calls} transcripts of 7 MB at once from one key, heap of 256 MB: nothing but 200 and 500, no abort`,
    measured: `${withStatus(answers, 200)} × 200, ${withStatus(answers, 500)} × 500, ${withStatus(answers, 0)} lost; resident at most ${Math.round(peakBytes / MEGABYTE)} MB; victim p99 ${ms(p99(reads))}`,
    ok: withStatus(answers, 200) > 0 && withStatus(answers, 0) === 0 && withStatus(reads, 200) === reads.length,
  });
});

test('large answers, compressed', async (context) => {
  const attack = { bytes: 4 * MEGABYTE, calls: 100, coding: 'br' };
  const [maxBytes, maxMs] = [450 * MEGABYTE, 100];
  const { answers, reads, peakBytes } = await attackWithTranscripts(await startWorld(), attack);
  prove(context, {
    name: 'tenants: large answers, br',
    bar: `${attack.calls} transcripts of 4 MB at once from one key, with br: resident below 450 MB, victim p99 at most ${ms(maxMs)}`,
    measured: `${withStatus(answers, 200)} × 200, ${withStatus(answers, 500)} × 500; resident at most ${Math.round(peakBytes / MEGABYTE)} MB; victim p99 ${ms(p99(reads))} of ${count(reads.length)}`,
    ok: peakBytes < maxBytes && p99(reads) <= maxMs && withStatus(reads, 200) === reads.length,
  });
});
