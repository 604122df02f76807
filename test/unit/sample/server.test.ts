import { createServer } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createSampleUpstream } from '../../../src/sample/index.ts';
import type { SampleCallLog } from '../../../src/sample/index.ts';
import { drawLatencyMs } from '../../../src/sample/latency.ts';
import { createRandom } from '../../../src/sample/random.ts';
import { get, json } from '../../contract/upstream-interface/http-get.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import { startSample } from './rig.ts';

describe('the sample upstream over HTTP', () => {
  test('answers every read of the example ids', async () => {
    const { read, ids } = await startSample();
    const paths = [
      `/evaluations?workspaceId=${ids.workspaceId}`,
      ...[ids.reportId, ids.callId].flatMap((id) => [
        `/evaluations/${id}`,
        `/evaluations/${id}/transcript`,
        `/evaluations/${id}/scorecard`,
        `/evaluations/${id}/deal-insights`,
      ]),
      `/scorecards/${ids.scorecardId}`,
    ];
    const statuses = await Promise.all(paths.map(async (path) => (await read(path)).status));
    expect(statuses).toEqual(paths.map(() => 200));
  });

  test('sends the record of its data', async () => {
    const { read, data, ids } = await startSample();
    expect(json(await read(`/evaluations/${ids.callId}`))).toEqual(data.evaluation(ids.callId));
    expect(json(await read(`/scorecards/${ids.scorecardId}`))).toEqual(data.rubric(ids.scorecardId));
  });

  test('sends lone surrogates as escapes, which JSON allows', async () => {
    const { read, data, ids } = await startSample();
    const body = 'half \uD83D';
    const broken = { ...data, transcript: () => ({ evaluationId: ids.callId, body }) };
    const other = await startSample({ data: broken });
    const response = await other.read(`/evaluations/${ids.callId}/transcript`);
    expect(response.body.toString()).toContain(String.raw`half \ud83d`);
    expect(json(response)).toEqual({ evaluationId: ids.callId, body });
    expect((await read(`/evaluations/${ids.callId}/transcript`)).status).toBe(200);
  });

  test('compresses bodies of more than 1 kB where gzip is accepted, and no others', async () => {
    const { read, ids } = await startSample();
    const large = `/evaluations/${ids.callId}/transcript`;
    const small = `/evaluations?workspaceId=00000000-0000-4000-8000-000000000000`;
    const codingOf = async (path: string, accept?: string): Promise<string | undefined> =>
      (await read(path, accept === undefined ? {} : { 'accept-encoding': accept })).headers['content-encoding'];
    expect(await codingOf(large, 'gzip, deflate, br')).toBe('gzip');
    expect(await codingOf(large, 'br;q=1, GZIP;q=0.5')).toBe('gzip');
    expect(await codingOf(large, '*')).toBe('gzip');
    expect(await codingOf(large, 'gzip;q=0, *')).toBeUndefined();
    expect(await codingOf(large, 'br')).toBeUndefined();
    expect(await codingOf(large)).toBeUndefined();
    expect(await codingOf(small, 'gzip')).toBeUndefined();
  });

  test('gives compressed bodies a weak ETag that both forms answer to', async () => {
    const { read, ids } = await startSample();
    const path = `/evaluations/${ids.callId}/transcript`;
    const plain = await read(path);
    const zipped = await read(path, { 'accept-encoding': 'gzip' });
    expect(zipped.headers.etag).toBe(`W/${plain.headers.etag}`);
    expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true);
    for (const etag of [plain.headers.etag, zipped.headers.etag, '*']) {
      const again = await read(path, { 'if-none-match': etag, 'accept-encoding': 'gzip' });
      expect([again.status, again.headers.etag]).toEqual([304, zipped.headers.etag]);
    }
  });

  test('sends no ETag with errors', async () => {
    const { read } = await startSample();
    const response = await read('/evaluations/nobody');
    expect([response.status, response.headers.etag]).toEqual([404, undefined]);
  });

  test.each(['/', '/internal/v1', '/internal/v1/evaluations/a/b', '/internal/v2/evaluations', '//', '/%zz?%'])(
    'does not mistake the address %s for a record that is absent',
    async (path) => {
      const { url } = await startSample();
      const response = await get(url + path, { authorization: 'Bearer a-token' });
      expect(response.status).toBe(404);
      expect(json(response)).toMatchObject({ code: 'UNKNOWN_ROUTE' });
    },
  );

  test('is read with GET only', async () => {
    const { url, ids } = await startSample();
    const response = await get(
      `${url}/internal/v1/scorecards/${ids.scorecardId}`,
      { authorization: 'Bearer a-token' },
      'POST',
    );
    expect([response.status, response.headers.allow]).toEqual([405, 'GET']);
  });

  test('takes the scheme of the token in either case, and says which one it wants', async () => {
    const { url, ids } = await startSample();
    const path = `${url}/internal/v1/scorecards/${ids.scorecardId}`;
    expect((await get(path, { authorization: 'bearer a-token' })).status).toBe(200);
    const refused = await get(path, { authorization: 'Bearer a-token2' });
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, 'Bearer']);
  });

  test('counts authorized calls by resource, until it is told to begin again', async () => {
    const { read, upstream, url, ids } = await startSample();
    await read(`/evaluations?workspaceId=${ids.workspaceId}`);
    await read('/evaluations?limit=0');
    await read(`/evaluations/${ids.callId}`);
    await read('/evaluations/nobody/transcript');
    await read('/scorecards/nobody');
    await read('/api-keys/00');
    await read('/elsewhere');
    await get(`${url}/internal/v1/evaluations`, {});
    const none = {
      evaluation: 0,
      transcript: 0,
      scorecard: 0,
      dealInsights: 0,
      rubric: 0,
      apiKey: 0,
      other: 0,
      list: 0,
    };
    const before = upstream.counts;
    expect(before).toEqual({ ...none, list: 2, evaluation: 1, transcript: 1, rubric: 1, apiKey: 1, other: 1 });
    upstream.resetCounts();
    expect(upstream.counts).toEqual(none);
    expect(before.list).toBe(2);
  });

  test('tells who called for what and how it ended', async () => {
    const calls: SampleCallLog[] = [];
    const { read, ids } = await startSample({ log: (call) => calls.push(call) });
    const response = await read(`/evaluations/${ids.callId}?x=1`, { 'x-request-id': 'r-1', traceparent: '00-a-b-01' });
    await read('/evaluations/nobody');
    expect(response.headers['x-request-id']).toBe('r-1');
    const path = `/internal/v1/evaluations/${ids.callId}?x=1`;
    const common = { method: 'GET', resource: 'evaluation', finished: true };
    expect(calls).toEqual([
      { ...common, requestId: 'r-1', traceparent: '00-a-b-01', url: path, status: 200 },
      { ...common, requestId: null, traceparent: null, url: '/internal/v1/evaluations/nobody', status: 404 },
    ]);
  });

  test('says so when its port is taken', async () => {
    const taken = await listenOnLoopback(createServer());
    const { data } = await startSample();
    const upstream = createSampleUpstream({ data, token: 'x' });
    await expect(upstream.listen(taken.port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await taken.close();
  });

  test('goes on serving after a caller left while it waited', async () => {
    const waiting = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const { read, url, upstream, ids } = await startSample({
      latency: 100,
      sleep: (_ms, signal) => {
        waiting.resolve();
        signal.addEventListener('abort', () => left.resolve());
        return upstream.counts.rubric > 1
          ? Promise.resolve()
          : left.promise.then(() => Promise.reject(new Error('left')));
      },
    });
    const controller = new AbortController();
    const { signal } = controller;
    const headers = { authorization: 'Bearer a-token' };
    const call = fetch(`${url}/internal/v1/scorecards/${ids.scorecardId}`, { headers, signal });
    await waiting.promise;
    controller.abort();
    await expect(call).rejects.toThrow('aborted');
    await left.promise;
    expect((await read(`/scorecards/${ids.scorecardId}`)).status).toBe(200);
  });
});

describe('the latency of the sample', () => {
  test('is that of real stores: with a median of 120 ms the 99th percentile is 1.5 s', () => {
    const sorted = draws(120);
    expect(sorted[10_000]).toBeGreaterThan(117);
    expect(sorted[10_000]).toBeLessThan(123);
    expect(sorted[19_800]).toBeGreaterThan(1350);
    expect(sorted[19_800]).toBeLessThan(1650);
    expect(sorted[0]).toBeGreaterThan(0);
    expect(sorted.at(-1)).toBeLessThanOrEqual(6000);
  });

  test('is none where the median is 0', () => {
    expect(new Set(draws(0))).toEqual(new Set([0]));
  });

  test('is waited for before every answer, the same in every run', async () => {
    const waits = await waitsOfFiveCalls();
    expect(waits).toHaveLength(5);
    expect(new Set(waits).size).toBe(5);
    expect(await waitsOfFiveCalls()).toEqual(waits);
  });
});

/** 20,000 latencies in ascending order, in milliseconds. */
function draws(median: number): number[] {
  const random = createRandom(1, 'latency');
  return Array.from({ length: 20_000 }, () => drawLatencyMs(median, random)).toSorted((a, b) => a - b);
}

async function waitsOfFiveCalls(): Promise<number[]> {
  const waits: number[] = [];
  const { read } = await startSample({
    latency: 120,
    sleep: (ms) => {
      waits.push(ms);
      return Promise.resolve();
    },
  });
  for (let i = 0; i < 5; i += 1) await read('/evaluations/nobody');
  return waits;
}
