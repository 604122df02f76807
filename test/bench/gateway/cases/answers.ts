/** Every kind of answer in one run, held against bare Koa and against the stack that does the same work for a 200. */
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, micros, named, ratioRow, reported } from '../case.ts';
import type { BenchRequest } from '../../../support/load.ts';
import { WORKSPACE_A } from '../../../support/records.ts';
import { type Subject, timesAsMuch } from '../measure.ts';
import { startOrigin } from '../node-peers.ts';
import { LIST, NEVER_SEEN } from '../paths.ts';
import type { Server } from '../server.ts';

const MANY_KEYS = 64;
export const MAX_TIMES_KOA = 3.1;

export async function answers(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const withoutMemory = await bench.evalgate({ file: 'cache:\n  memory: 0B\n' });
  const keys = await gateway.createKeys(MANY_KEYS);
  const many = keys.map((key): BenchRequest => ({ path: LIST, headers: bearer(key) }));
  const [hot = { path: LIST, headers: {} }] = many;
  const { file: bodyFile } = await bench.bodyOf(gateway, hot);
  const origin = bench.keep(await startOrigin(bodyFile));
  const options = { bodyFile, originUrl: origin.url, keys, workspaceIds: [WORKSPACE_A] };
  const koa = await bench.peer('koa', options);
  const stack = await bench.peer('fastify-full', options);
  const etag = await etagOf(gateway, hot);
  const usedUp = { path: LIST, headers: bearer(await gateway.createKey({ perMinute: 1, perHour: 1 })) };
  // Its first request is answered.
  await fetch(gateway.url + LIST, usedUp);
  const measured = await bench.measure([
    subject('koa', koa, hot),
    subject('fastify-full', stack, hot),
    { name: `fastify-full, ${MANY_KEYS} keys`, server: stack, load: { requests: many } },
    subject('200', gateway, hot),
    { name: `200, ${MANY_KEYS} keys`, server: gateway, load: { requests: many } },
    subject('304', gateway, { path: LIST, headers: { ...hot.headers, 'if-none-match': etag } }, 304),
    subject('429', gateway, usedUp, 429),
    subject('401', gateway, { path: LIST, headers: {} }, 401),
    subject('Redis hit', withoutMemory, hot),
    subject('miss', gateway, { path: NEVER_SEEN, headers: hot.headers }),
  ]);
  const [hit, floor, same] = [named(measured, '200'), named(measured, 'koa'), named(measured, 'fastify-full')];
  const ofMany = (name: string) => named(measured, `${name}, ${MANY_KEYS} keys`);
  const held = (name: string, most: number) => ratioRow(name, [named(measured, name), hit], most);
  const miss = named(measured, 'miss');
  return {
    rows: [
      ratioRow('200', [hit, floor], MAX_TIMES_KOA),
      ratioRow('200', [hit, same], 0.8),
      ratioRow(`200, ${MANY_KEYS} keys in turn`, [ofMany('200'), ofMany('fastify-full')], 0.88),
      held('304', 1),
      held('401', 1),
      held('429', 0.8),
      held('Redis hit', 1.6),
      reported('miss', `${micros(miss)}: ${timesAsMuch(miss, hit).toFixed(2)} × 200`),
    ],
    tables: [comparison('Answers by kind, 32 connections', measured, [floor, same, hit])],
  };
}

function subject(name: string, server: Server, request: BenchRequest, status = 200): Subject {
  return { name, server, load: { requests: [request] }, status };
}

async function etagOf({ url }: Server, { path, headers }: BenchRequest): Promise<string> {
  const response = await fetch(url + path, { headers: { ...headers, 'accept-encoding': 'identity' } });
  await response.arrayBuffer();
  return response.headers.get('etag') ?? '';
}
