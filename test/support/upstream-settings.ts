/** A gateway whose `upstream` settings a test chooses, for the rules of the way to the store. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { type Reply, startTestGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { anEvaluation } from './records.ts';

const lineSchema = z.looseObject({
  msg: z.string(),
  requestId: z.string().optional(),
  failure: z.string().optional(),
  err: z.looseObject({ message: z.string() }).optional(),
});

export interface UpstreamGateway extends TestGateway {
  /** Reads that call with a key that no test exhausts. */
  read(id: string): Promise<Reply>;
  /** Why a request failed, as its line of the log says; null if it says nothing. */
  failureOf(reply: Reply): Promise<string | null>;
  /** The samples of a metric whose name and labels begin with that text, added up. */
  metric(start: string): Promise<number>;
}

/** Closed when the test is over. Without repetitions and without the breaker, unless `upstream` says otherwise. */
export async function startUpstreamGateway(
  upstream: Readonly<Record<string, unknown>> = {},
  options: TestGatewayOptions = {},
): Promise<UpstreamGateway> {
  const gateway = await openUpstreamGateway(upstream, options);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The same for several tests: whoever opens it closes it. */
export async function openUpstreamGateway(
  upstream: Readonly<Record<string, unknown>> = {},
  options: TestGatewayOptions = {},
): Promise<UpstreamGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-upstream-'));
  const file = join(folder, 'config.yaml');
  // JSON is YAML.
  await writeFile(file, JSON.stringify({ upstream: { breakerPercent: null, retryPercent: 0, ...upstream } }));
  const gateway = await startTestGateway({ ...options, env: { CONFIG_FILE: file, ...options.env } });
  await rm(folder, { recursive: true });
  const key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
  return Object.assign(gateway, {
    read: (id: string) => gateway.get(`/v2/calls/${id}`, { key }),
    failureOf: (reply: Reply) => failureOf(gateway, reply),
    metric: (start: string) => metricOf(gateway, start),
  });
}

/** Puts so many evaluations into the gateway's store; returns their ids. */
export function putCalls(gateway: TestGateway, count: number, prefix = 'call'): readonly string[] {
  const ids = Array.from({ length: count }, (_, index) => `${prefix}_${index}`);
  gateway.store.put({ evaluations: ids.map((id) => anEvaluation({ _id: id })) });
  return ids;
}

export function linesOf(gateway: TestGateway): readonly z.output<typeof lineSchema>[] {
  return gateway.logLines.map((line) => lineSchema.parse(JSON.parse(line)));
}

async function failureOf(gateway: TestGateway, reply: Reply): Promise<string | null> {
  // A line is written when the connection has taken the answer; one more exchange later it is there.
  await gateway.admin('GET', '/livez');
  const requestId = reply.headers['x-request-id'];
  const line = linesOf(gateway).find((one) => one.msg === 'request' && one.requestId === requestId);
  return line?.err?.message ?? line?.failure ?? null;
}

async function metricOf(gateway: TestGateway, start: string): Promise<number> {
  const { text } = await gateway.admin('GET', '/metrics');
  const samples = text.split('\n').filter((line) => line.startsWith(start));
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
