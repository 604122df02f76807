/** Reads that the cache can't answer, and requests over the limit. */
import { withClient } from '../../../support/redis/client.ts';
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, micros, named, reported } from '../case.ts';
import { timesAsMuch } from '../measure.ts';
import { LIST, NEVER_SEEN } from '../paths.ts';

/** The gateway asks the store by got; the peer forwards the same call by `node:http` and does nothing else. */
export async function miss(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const headers = bearer(await gateway.createKey());
  const peer = await bench.peer('forwarder', { originUrl: bench.store.url, token: bench.store.token });
  const request = { path: NEVER_SEEN, headers };
  const measured = await bench.measure(
    [peer, gateway].map((server) => ({ name: server.name, server, load: { requests: [request] } })),
  );
  const [one, bare] = [named(measured, 'evalgate'), named(measured, 'forwarder')];
  return {
    rows: [
      reported(
        'miss to the store, the gateway process only',
        `${micros(one)} against ${micros(bare)} of a bare node:http forwarder: ${timesAsMuch(one, bare).toFixed(2)} ×`,
      ),
    ],
    tables: [comparison('Single reads that nobody has made before', measured)],
  };
}

export async function overLimit(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const headers = bearer(await gateway.createKey({ perMinute: 1, perHour: 1 }));
  await fetch(gateway.url + LIST, { headers });
  const before = await scriptCalls(bench);
  const refused = { name: '429', server: gateway, load: { requests: [{ path: LIST, headers }] }, status: 429 };
  const [{ requestsPerSecond } = { requestsPerSecond: 0 }] = await bench.measure([refused]);
  const calls = (await scriptCalls(bench)) - before;
  const requests = requestsPerSecond * bench.effort.seconds * bench.effort.rounds;
  const row = {
    name: '429, calls to Redis',
    bar: 'none a request',
    measured: `${calls} scripts (heartbeats) while some ${Math.round(requests).toLocaleString('en')} requests were refused`,
    ok: calls < requests / 100,
  };
  return { rows: [row], tables: [] };
}

/** How many scripts Redis has run so far, for whatever purpose. */
async function scriptCalls(bench: Bench): Promise<number> {
  const stats = await withClient(bench.redis.url, (client) => client.info('commandstats'));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}
