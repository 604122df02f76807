/** Reads that the memory tier can't answer, and requests over the limit. */
import { withClient } from '../../../support/redis/client.ts';
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, KOA_MICROS_THERE, micros, named, ratioRow } from '../case.ts';
import { timesAsMuch } from '../measure.ts';
import { LIST, NEVER_SEEN } from '../paths.ts';

export async function redisHit(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate({ file: 'cache:\n  memory: 0B\n' });
  const request = { path: LIST, headers: bearer(await gateway.createKey()) };
  const { file } = await bench.bodyOf(gateway, request);
  const koa = await bench.peer('koa', { bodyFile: file });
  const measured = await bench.measure(
    [koa, gateway].map((server) => ({ name: server.name, server, load: { requests: [request] } })),
  );
  return {
    rows: [ratioRow('memory-tier miss, Redis hit', [named(measured, 'evalgate'), named(measured, 'koa')], 3)],
    tables: [comparison('Hot list from Redis, without a memory tier', measured)],
  };
}

const MOST_MISS_MICROS = 400;
const MOST_MISS_RATIO = MOST_MISS_MICROS / KOA_MICROS_THERE;

export async function miss(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const headers = bearer(await gateway.createKey());
  const hot = { path: LIST, headers };
  const { file } = await bench.bodyOf(gateway, hot);
  const koa = await bench.peer('koa', { bodyFile: file });
  const measured = await bench.measure([
    { name: 'koa, hot list', server: koa, load: { requests: [hot] } },
    { name: 'evalgate', server: gateway, load: { requests: [{ path: NEVER_SEEN, headers }] } },
  ]);
  const one = named(measured, 'evalgate');
  const ratio = timesAsMuch(one, named(measured, 'koa, hot list'));
  return {
    rows: [
      {
        name: 'miss to the store, the gateway process alone',
        bar: `at most ${MOST_MISS_MICROS} µs where Koa takes ${KOA_MICROS_THERE} for a hot list: ${MOST_MISS_RATIO} ×`,
        measured: `${micros(one)}: ${ratio.toFixed(1)} ×`,
        ok: ratio <= MOST_MISS_RATIO,
      },
    ],
    tables: [comparison('Single reads that nobody has made before', measured)],
  };
}

export async function overLimit(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const headers = bearer(await gateway.createKey({ perMinute: 1, perHour: 1 }));
  const request = { path: LIST, headers };
  const { file } = await bench.bodyOf(gateway, request);
  const koa = await bench.peer('koa', { bodyFile: file });
  const before = await scriptCalls(bench);
  const measured = await bench.measure([
    { name: 'koa', server: koa, load: { requests: [request] } },
    { name: 'evalgate', server: gateway, load: { requests: [request] }, status: 429 },
  ]);
  const calls = (await scriptCalls(bench)) - before;
  const requests = named(measured, 'evalgate').requestsPerSecond * bench.effort.seconds * bench.effort.rounds;
  const ratio = ratioRow(
    '429 for a client that keeps hammering',
    [named(measured, 'evalgate'), named(measured, 'koa')],
    1.2,
  );
  return {
    rows: [
      ratio,
      {
        name: '429, calls to Redis',
        bar: 'none a request',
        measured: `${calls} scripts (heartbeats) while some ${Math.round(requests).toLocaleString('en')} requests were refused`,
        ok: calls < requests / 100,
      },
    ],
    tables: [comparison('Requests over the limit', measured)],
  };
}

/** How many scripts Redis has run so far, for whatever purpose. */
async function scriptCalls(bench: Bench): Promise<number> {
  const stats = await withClient(bench.redis.url, (client) => client.info('commandstats'));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}
