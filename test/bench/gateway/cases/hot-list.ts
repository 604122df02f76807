/** A hot list read with all that it entails, beside what others make of the same bytes. `answers` has the bars. */
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison } from '../case.ts';
import type { BenchRequest } from '../../../support/load.ts';
import { WORKSPACE_A } from '../../../support/records.ts';
import { startOrigin } from '../node-peers.ts';
import { LIST } from '../paths.ts';
import { startNginx, startVarnish } from '../proxies.ts';
import type { Server } from '../server.ts';

export async function hotList(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const key = await gateway.createKey();
  const request: BenchRequest = { path: LIST, headers: bearer(key) };
  const { file, bytes } = await bench.bodyOf(gateway, request);
  const measured = await bench.measure(
    [...(await peers(bench, file, key)), gateway].map((server) => ({
      name: server.name,
      server,
      load: { requests: [request] },
    })),
  );
  const kilobytes = (bytes / 1000).toFixed(1);
  return { rows: [], tables: [comparison(`Hot list of ${kilobytes} kB, one key, 32 connections`, measured)] };
}

async function peers(bench: Bench, bodyFile: string, key: string): Promise<readonly Server[]> {
  const origin = bench.keep(await startOrigin(bodyFile));
  const options = { bodyFile, originUrl: origin.url, keys: [key], workspaceIds: [WORKSPACE_A] };
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
