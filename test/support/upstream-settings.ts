/** A gateway whose `upstream` settings a test chooses, for the rules of the way to the store. */

import { forTest } from './opened.ts';
import { linesOf, metricOf } from './admin.ts';
import { type Reply, startTestGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { anEvaluation } from './records.ts';

export type UpstreamGateway = Awaited<ReturnType<typeof openUpstreamGateway>>;

/** Closed when the test is over. With a fixed limit, without repetitions and without the breaker, unless `upstream` says otherwise. */
export async function startUpstreamGateway(
  upstream: Readonly<Record<string, unknown>> = {},
  options: TestGatewayOptions = {},
): Promise<UpstreamGateway> {
  const gateway = await forTest(openUpstreamGateway(upstream, options));
  return gateway;
}

/** The same for several tests: whoever opens it closes it. */
export async function openUpstreamGateway(
  upstream: Readonly<Record<string, unknown>> = {},
  options: TestGatewayOptions = {},
) {
  // JSON is YAML.
  const config = JSON.stringify({ upstream: { adaptive: false, breakerPercent: null, retryPercent: 0, ...upstream } });
  const gateway = await startTestGateway({ config, ...options });
  const { token: key, keyId } = await gateway.issue({ perMinute: 1_000_000, perHour: 1_000_000 });
  return {
    ...gateway,
    /** The id of the key that `read` uses. */
    keyId,
    /** Reads that call with a key that no test exhausts. */
    read: (id: string): Promise<Reply> => gateway.get(`/v2/calls/${id}`, { key }),
    /** Why a request failed, as its line of the log says; null if it says nothing. */
    failureOf: async (reply: Reply): Promise<string | null> => {
      // A line is written when the connection has taken the answer; one more exchange later it is there.
      await gateway.admin('GET', '/livez');
      const requestId = reply.headers['x-request-id'];
      const lines = linesOf(gateway).filter((one) => one.requestId === requestId && one.msg !== 'store call');
      const line = lines.find(({ err, failure }) => (err?.message ?? failure ?? null) !== null);
      return line?.err?.message ?? line?.failure ?? null;
    },
    metric: (start: string): Promise<number> => metricOf(gateway, start),
  };
}

/** Puts so many evaluations into the gateway's store; returns their ids. */
export function putCalls(gateway: TestGateway, count: number, prefix = 'call'): readonly string[] {
  const ids = Array.from({ length: count }, (_, index) => `${prefix}_${index}`);
  gateway.store.put({ evaluations: ids.map((id) => anEvaluation({ _id: id })) });
  return ids;
}
