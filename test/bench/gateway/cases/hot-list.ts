/** A hot list read with all that it entails, beside what others make of the same bytes. */
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, named, ratioRow } from '../case.ts';
import type { BenchRequest } from '../../../support/load.ts';
import { WORKSPACE_A } from '../../../support/records.ts';
import type { Measured, Subject } from '../measure.ts';
import { startOrigin } from '../node-peers.ts';
import { LIST } from '../paths.ts';
import { startNginx, startVarnish } from '../proxies.ts';
import type { Server } from '../server.ts';

const MANY_KEYS = 64;
export const MAX_TIMES_KOA = 3.1;

export async function hotList(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const keys = await gateway.createKeys(MANY_KEYS);
  const requests = keys.map((key): BenchRequest => ({ path: LIST, headers: bearer(key) }));
  const { file, bytes } = await bench.bodyOf(gateway, requests[0] ?? { path: LIST, headers: {} });
  const servers = await peers(bench, file, keys);
  const one = await bench.measure([...servers, gateway].map((server) => subject(server, requests.slice(0, 1))));
  const many = await bench.measure(
    [...servers.filter(({ name }) => name === 'koa' || name === 'fastify-full'), gateway].map((server) =>
      subject(server, requests),
    ),
  );
  const kilobytes = (bytes / 1000).toFixed(1);
  return {
    rows: [
      ratioRow('hot list, one key', pair(one, 'koa'), MAX_TIMES_KOA),
      ratioRow(`hot list, ${MANY_KEYS} keys in turn`, pair(many, 'koa'), MAX_TIMES_KOA),
      ratioRow('hot list, one key', pair(one, 'fastify-full'), 0.8),
      ratioRow(`hot list, ${MANY_KEYS} keys in turn`, pair(many, 'fastify-full'), 0.88),
    ],
    tables: [
      comparison(`Hot list of ${kilobytes} kB, one key, 32 connections`, one),
      comparison(`The same, ${MANY_KEYS} keys in turn`, many),
    ],
  };
}

async function peers(bench: Bench, bodyFile: string, keys: readonly string[]): Promise<readonly Server[]> {
  const origin = bench.keep(await startOrigin(bodyFile));
  const options = { bodyFile, originUrl: origin.url, keys, workspaceIds: [WORKSPACE_A] };
  const proxies = [await startNginx(options), await startVarnish(options)].filter((server) => server !== null);
  for (const proxy of proxies) bench.keep(proxy);
  return [
    await bench.peer('koa', options),
    await bench.peer('node-http', options),
    ...proxies,
    await bench.peer('fastify', options),
    await bench.peer('fastify-full', options),
    await bench.peer('express', options),
  ];
}

function subject(server: Server, requests: readonly BenchRequest[]): Subject {
  return { name: server.name, server, load: { requests } };
}

function pair(measured: readonly Measured[], reference: string): readonly [Measured, Measured] {
  return [named(measured, 'evalgate'), named(measured, reference)];
}
