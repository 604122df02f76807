/** The cost of tracing while it is on; off, none of it is loaded. */
import { createServer } from 'node:http';
import { listenOnLoopback } from '../../../support/loopback.ts';
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, type Table } from '../case.ts';
import type { LoadOptions } from '../load.ts';
import { LIST, NEVER_SEEN } from '../paths.ts';

const RATE = 2000;

type Environment = Readonly<Record<string, string>>;

export async function tracing(bench: Bench): Promise<CaseResult> {
  const collector = bench.keep(await startCollector());
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const sampled = { ...on, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' };
  const start = async (name: string, env: Environment) => {
    const server = await bench.evalgate({ env });
    return { name, server, headers: bearer(await server.createKey()) };
  };
  const gateways = [await start('off', {}), await start('1 % recorded', sampled), await start('all recorded', on)];
  const table = async (
    title: string,
    path: string,
    load: Omit<LoadOptions, 'requests' | 'seconds'>,
  ): Promise<Table> => {
    const subjects = gateways.map(({ name, server, headers }) => ({
      name,
      server,
      load: { ...load, requests: [{ path, headers }] },
    }));
    return comparison(title, await bench.measure(subjects));
  };
  return {
    rows: [],
    tables: [
      await table('Tracing: hot list, as fast as it goes', LIST, {}),
      await table(`Tracing: hot list, ${RATE.toLocaleString('en')} requests/s`, LIST, { rate: RATE }),
      await table('Tracing: single reads that nobody has made before', NEVER_SEEN, {}),
    ],
  };
}

/** Takes whatever it is sent. */
async function startCollector(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const collector = await listenOnLoopback(
    createServer((request, response) => {
      request.resume();
      request.on('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
    }),
  );
  return { url: collector.url, stop: () => collector.close() };
}
