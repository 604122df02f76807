/** Other hot reads: single records, transcript pages, content codings. */
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, named, ratioRow } from '../case.ts';
import type { Evalgate } from '../evalgate.ts';
import type { BenchRequest } from '../../../support/load.ts';
import { MAX_TIMES_KOA } from './answers.ts';
import { LIST, SINGLE, TRANSCRIPT_PAGE } from '../paths.ts';

export async function singles(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const headers = bearer(await gateway.createKey());
  const single = await againstKoa(bench, gateway, { what: 'hot single read', request: { path: SINGLE, headers } });
  const page = await againstKoa(bench, gateway, {
    what: 'hot transcript page out of 2 MB',
    request: { path: TRANSCRIPT_PAGE, headers },
  });
  return { rows: [...single.rows, ...page.rows], tables: [...single.tables, ...page.tables] };
}

async function againstKoa(
  bench: Bench,
  gateway: Evalgate,
  { what, request }: { readonly what: string; readonly request: BenchRequest },
): Promise<CaseResult> {
  const { file, bytes } = await bench.bodyOf(gateway, request);
  const koa = await bench.peer('koa', { bodyFile: file });
  const measured = await bench.measure(
    [koa, gateway].map((server) => ({ name: server.name, server, load: { requests: [request] } })),
  );
  return {
    rows: [ratioRow(what, [named(measured, 'evalgate'), named(measured, 'koa')], MAX_TIMES_KOA)],
    tables: [comparison(`${what}, ${(bytes / 1000).toFixed(1)} kB`, measured)],
  };
}

const CODINGS = ['gzip', 'br', 'zstd'] as const;

export async function codings(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const headers = bearer(await gateway.createKey());
  const measured = await bench.measure(
    ['identity', ...CODINGS].map((coding) => ({
      name: coding,
      server: gateway,
      load: { requests: [{ path: LIST, headers: { ...headers, 'accept-encoding': coding } }] },
    })),
  );
  const identity = named(measured, 'identity');
  return {
    rows: CODINGS.map((coding) => ratioRow(`Accept-Encoding: ${coding}`, [named(measured, coding), identity], 1.2)),
    tables: [comparison('Hot list by content coding', measured)],
  };
}
