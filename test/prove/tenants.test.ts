/** A tenant's bad day is its own: what one key, or a client without one, costs another key's reads from memory. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { fileOf } from '../support/files.ts';
import { Load, type Sample, type Target } from '../support/load.ts';
import { percentile } from '../support/percentile.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation, aTranscript } from '../support/records.ts';
import { createStoreServer, sendJson, type StoreServer } from '../support/store-server.ts';
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

async function attackWithTranscripts(world: World, { bytes, calls, coding, path }: LargeAnswers) {
  const { gateway, store, load, attack, victim, key } = world;
  enlarge(store, bytes);
  gateway.forgetPeaks();
  const url = `${gateway.publicUrl}${path}/large-{n}/transcript`;
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
  readonly path: string;
}

/** Both are answered with a transcript: one with all of it, the other with a page. */
const SURFACES = {
  v1: '/v1/workspaces/11111111-1111-4111-8111-111111111111/reports',
  v2: '/v2/calls',
};

test('large answers, and a small heap', async (context) => {
  const attack = { bytes: 7 * MEGABYTE, calls: 40, coding: null, path: SURFACES.v2 };
  const world = await startWorld({ NODE_OPTIONS: '--max-old-space-size=256' });
  const { answers, reads, peakBytes } = await attackWithTranscripts(world, attack);
  prove(context, {
    name: 'tenants: large answers',
    bar: `${attack.calls} transcripts of 7 MB at once from one key, heap of 256 MB: nothing but 200 and 500, no abort`,
    measured: `${withStatus(answers, 200)} × 200, ${withStatus(answers, 500)} × 500, ${withStatus(answers, 0)} lost; resident at most ${Math.round(peakBytes / MEGABYTE)} MB; victim p99 ${ms(p99(reads))}`,
    ok: withStatus(answers, 200) > 0 && withStatus(answers, 0) === 0 && withStatus(reads, 200) === reads.length,
  });
});

test('large answers, and cold reads of small ones', async (context) => {
  const [calls, rounds, perSecond, maxMs] = [20, 4, 10, 1000];
  const { gateway, store, load, attack, victim, key } = await startWorld();
  enlarge(store, 7 * MEGABYTE);
  const medium = aTranscript({ body: 'Ann Lee: We met.\n'.repeat(6000) });
  store.override(/\/medium-\d+\/transcript$/, (request, response) => {
    const evaluationId = /medium-\d+/.exec(request.url ?? '')?.[0] ?? '';
    sendJson(request, response, { ...medium, evaluationId });
  });
  const url = `${gateway.publicUrl}/v2/calls`;
  const cold = ['?search={n}', '/medium-{n}/transcript'].map((path) => ({ ...victim, url: url + path }));
  const alone = await load.run(cold, { perSecond, forMs: 2000 });
  const greedy = [key, await gateway.issueKey()];
  gateway.forgetPeaks();
  await load.begin(cold, perSecond);
  let answered = 0;
  for (let round = 0; round < rounds; round += 1) {
    const large = greedy.map((one, at) => ({ url: `${url}/large-${round}-${at}-{n}/transcript`, key: one }));
    answered += withStatus(await attack.burst(large, calls), 200);
  }
  const reads = await load.end();
  prove(context, {
    name: 'tenants: cold reads',
    bar: `${rounds} times ${2 * calls} transcripts of 7 MB at once from two keys: cold reads of lists, and of transcripts of 100 kB, by another are all 200, 99 of 100 within ${ms(maxMs)}`,
    measured: `${answered} × 200 of the large ones; ${withStatus(reads, 200)} of ${reads.length} of the others, p50 ${took(reads, 0.5)} (${took(alone, 0.5)} alone), p90 ${took(reads, 0.9)}, p99 ${ms(p99(reads))}, longest ${took(reads, 1)}; event loop held ${ms(gateway.hold().heldCpuMs)} of its CPU at most`,
    ok: p99(reads) <= maxMs && withStatus(reads, 200) === reads.length,
  });
});

function took(samples: readonly Sample[], share: number): string {
  return ms(
    percentile(
      samples.map(({ tookMs }) => tookMs),
      share,
    ),
  );
}

test.for(['v1', 'v2'] as const)('large answers of %s, compressed', async (surface, context) => {
  const attack = { bytes: 4 * MEGABYTE, calls: 100, coding: 'br', path: SURFACES[surface] };
  const [maxBytes, maxMs] = [450 * MEGABYTE, 100];
  const { answers, reads, peakBytes } = await attackWithTranscripts(await startWorld(), attack);
  prove(context, {
    name: `tenants: large answers of ${surface}, br`,
    bar: `${attack.calls} transcripts of 4 MB at once from one key, with br: resident below 450 MB, victim p99 at most ${ms(maxMs)}`,
    measured: `${withStatus(answers, 200)} × 200, ${withStatus(answers, 500)} × 500; resident at most ${Math.round(peakBytes / MEGABYTE)} MB; victim p99 ${ms(p99(reads))} of ${count(reads.length)}`,
    ok: peakBytes < maxBytes && p99(reads) <= maxMs && withStatus(reads, 200) === reads.length,
  });
});

test('large records, and copies in memory', async (context) => {
  const [records, transcripts, bytes] = [200, 40, 6 * MEGABYTE];
  const { gateway, store, load, attack, victim, key } = await startWorld();
  const copies = Array.from({ length: records }, (_, n) => ({
    ...victim,
    url: `${gateway.publicUrl}/v2/calls/own-${n}`,
  }));
  await load.burst(copies, 1);
  enlarge(store, bytes);
  let answered = 0;
  // One after another: more at once would wait for the memory of answers under way.
  for (let n = 0; n < transcripts; n += 1) {
    const url = `${gateway.publicUrl}/v2/calls/large-${n}/transcript`;
    answered += withStatus(await attack.burst([{ url, key }], 1), 200);
  }
  const [hits, calls] = [await memoryHits(gateway), store.calls()];
  const reads = await load.burst(copies, 1);
  const fromMemory = (await memoryHits(gateway)) - hits;
  prove(context, {
    name: 'tenants: copies in memory',
    bar: `${transcripts} transcripts of 6 MB from one key, ${records} copies of another in use: its reads are all still from memory, without a call to the store`,
    measured: `${answered} × 200 of ${transcripts}; ${fromMemory} of ${records} from memory, ${store.calls() - calls} calls`,
    ok: answered === transcripts && fromMemory === records && withStatus(reads, 200) === records,
  });
});

function memoryHits(gateway: GatewayProcess): Promise<number> {
  return gateway.metric('evalgate_cache_reads_total', 'outcome="hit",tier="memory"');
}

test('readers who wait for a slow call', async (context) => {
  const [readers, reads, maxMs] = [1000, 200, 50];
  const { gateway, store, load, attack, victim, key } = await startWorld();
  const hold = store.hold(/\/evaluations$/);
  const before = store.calls();
  const waiting = attack.burst([{ url: `${gateway.publicUrl}/v2/calls`, key }], readers);
  while ((await gateway.metric('evalgate_http_connections', 'public')) < readers) await sleep(50);
  const served = withStatus(await load.run([victim], { perSecond: reads / 2, forMs: 2000 }), 200);
  const calls = store.calls() - before;
  await load.begin([victim], 100);
  hold.release();
  const answered = withStatus(await waiting, 200);
  await sleep(500);
  const meanwhile = await load.end();
  prove(context, {
    name: 'tenants: waiting readers',
    bar: `${count(readers)} readers of one key wait for one slow list: all of the victim's reads are 200, and so are theirs; when it comes, victim p99 at most ${ms(maxMs)}`,
    measured: `${served} of ${reads} of the victim's, ${count(answered)} of ${count(readers)} of theirs, ${calls} call to the store; then p99 ${ms(p99(meanwhile))}`,
    ok: served >= reads - 2 && answered === readers && calls === 1 && p99(meanwhile) <= maxMs,
  });
});

/** Connections that send this at once, and read nothing. */
async function dialAll(url: string, sockets: number, bytes: string): Promise<readonly Socket[]> {
  const { hostname, port } = new URL(url);
  const all = Array.from({ length: sockets }, () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined).pause();
    socket.write(bytes);
    return socket;
  });
  onTestFinished(() => all.forEach((socket) => void socket.destroy()));
  await Promise.all(all.map((socket) => new Promise((resolve) => void socket.once('connect', resolve))));
  return all;
}

test('clients that take nothing of a large answer', async (context) => {
  const [clients, allowedMs, maxBytes, maxMs] = [137, 45_000, 256 * MEGABYTE, 100];
  const world = await startWorld();
  const { gateway, store, load, victim, key } = world;
  enlarge(store, 7 * MEGABYTE);
  const path = `${SURFACES.v1}/large/transcript`;
  await (await gateway.get(path, key)).arrayBuffer();
  gateway.forgetPeaks();
  await load.begin([victim], 50);
  const beganMs = performance.now();
  await dialAll(gateway.publicUrl, clients, `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  let most = 0;
  let left = 1;
  while (left > 0 && performance.now() - beganMs < 3 * allowedMs) {
    await sleep(500);
    left = await gateway.metric('evalgate_http_unsent_bytes');
    most = Math.max(most, left);
  }
  const tookMs = performance.now() - beganMs;
  const reads = await load.end();
  const cut = await gateway.metric('evalgate_http_connections_cut_total', 'reason="unsent"');
  const { heldCpuMs } = gateway.hold();
  prove(context, {
    name: 'tenants: answers that are not taken',
    bar: `${clients} clients of one key take nothing of 7 MB: at most ${maxBytes / MEGABYTE} MB unsent, all connections closed within ${ms(allowedMs)}, the victim's reads 200, event loop held ${ms(maxMs)} of its CPU at most`,
    measured: `at most ${Math.round(most / MEGABYTE)} MB; ${cut} cut at once, the rest after ${ms(tookMs)}; ${withStatus(reads, 200)} of ${reads.length} of the victim's, p99 ${ms(p99(reads))}; held ${ms(heldCpuMs)}`,
    ok:
      most > 0 &&
      most <= maxBytes &&
      tookMs <= allowedMs &&
      withStatus(reads, 200) === reads.length &&
      heldCpuMs <= maxMs,
  });
});

test('pipelined requests without a key', async (context) => {
  const [sockets, requests, maxMs, maxLiveMs] = [100, 2500, 50, 100];
  const { gateway, load, attack, victim } = await startWorld();
  const live: Target = { url: `${gateway.adminUrl}/livez`, key: 'none' };
  const before = await load.run([victim], { perSecond: 100, forMs: 3000 });
  gateway.forgetPeaks();
  await load.begin([victim], 100);
  await attack.begin([live], 20);
  await dialAll(gateway.publicUrl, sockets, 'GET /v2/calls HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(requests));
  await sleep(10_000);
  const [reads, lives] = [await load.end(), await attack.end()];
  const longestMs = Math.max(...lives.map(({ tookMs }) => tookMs));
  prove(context, {
    name: 'tenants: pipelining',
    bar: `${sockets} connections of ${count(requests)} pipelined requests without a key, answers unread: victim p99 at most ${ms(maxMs)}, /livez within ${ms(maxLiveMs)}`,
    measured: `victim p99 ${ms(p99(reads))} (${ms(p99(before))} before), longest ${ms(Math.max(...reads.map(({ tookMs }) => tookMs)))}; /livez ${ms(longestMs)}; ${await gateway.metric('evalgate_http_connections_cut_total', 'pipelined')} connections closed; event loop held ${ms(gateway.hold().heldCpuMs)} of its CPU at most`,
    ok: p99(reads) <= maxMs && longestMs <= maxLiveMs && withStatus(reads, 200) === reads.length,
  });
});

test('scrapes of the metrics', async (context) => {
  const [sockets, requests, maxMs] = [99, 20, 100];
  const { gateway, load, victim } = await startWorld();
  gateway.forgetPeaks();
  await load.begin([victim], 100);
  await dialAll(gateway.adminUrl, sockets, 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(requests));
  await sleep(4000);
  const reads = await load.end();
  prove(context, {
    name: 'tenants: scrapes',
    bar: `${sockets} connections of ${requests} pipelined scrapes, answers unread: victim p99 at most ${ms(maxMs)}`,
    measured: `victim p99 ${ms(p99(reads))}, longest ${ms(Math.max(...reads.map(({ tookMs }) => tookMs)))}; event loop held ${ms(gateway.hold().heldCpuMs)} of its CPU at most`,
    ok: p99(reads) <= maxMs && withStatus(reads, 200) === reads.length,
  });
});

test('idle connections of one address', async (context) => {
  const [most, clients, maxMs] = [500, 50, 1000];
  const file = fileOf(`server: { maxConnections: ${most} }`);
  const { gateway, load, victim } = await startWorld({ CONFIG_FILE: file });
  await dialAll(gateway.publicUrl, 2 * most, 'GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n');
  await sleep(1000);
  const reads = await load.burst([victim], clients);
  const dropped = await gateway.metric('evalgate_http_connections_dropped_total');
  prove(context, {
    name: 'tenants: idle connections',
    bar: `one address holds all ${most} connections: ${clients} new clients are served, each within ${ms(maxMs)}`,
    measured: `${withStatus(reads, 200)} of ${clients}, the longest ${ms(Math.max(...reads.map(({ tookMs }) => tookMs)))}; ${dropped} connections refused`,
    ok: withStatus(reads, 200) === clients && Math.max(...reads.map(({ tookMs }) => tookMs)) <= maxMs,
  });
});
