/** Load by wrk, which takes little more than half of what autocannon takes, and so leaves more of the core to Redis. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get, IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { programOnPath } from '../../support/process.ts';
import type { BenchRequest } from '../../support/load.ts';
import type { DriverOptions } from './load.ts';
import { launch, OTHER_CORE } from './processes.ts';

/** Whether wrk is installed. */
export const HAS_WRK = programOnPath('wrk') !== null;

const resultSchema = z.object({
  requests: z.number(),
  /** Requests answered with 400 or more. */
  failed: z.number(),
  unanswered: z.number(),
  micros: z.number(),
  bytes: z.number(),
  percentilesMicros: z.tuple([z.number(), z.number(), z.number(), z.number()]),
});

/**
 * The results, in the form of every driver's. wrk tells failures from the rest and no more: a request that is sent
 * beforehand says which status the one or the other is taken for.
 */
export async function loadByWrk(url: string, { requests, connections, seconds, firstNumber }: DriverOptions) {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-wrk-'));
  try {
    const script = join(folder, 'load.lua');
    await writeFile(script, luaOf(requests, firstNumber));
    const status = await probe(url, firstNumber, requests[0]);
    const counts = ['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`];
    const command = ['wrk', ...counts, '--timeout', '20s', '--script', script, url];
    const { child } = launch({ core: OTHER_CORE, command });
    if (child.stdout === null) throw new Error('wrk has no standard output to read');
    const printed = (await text(child.stdout)).split('\n').find((line) => line.startsWith('{')) ?? 'null';
    const { micros, percentilesMicros, failed, unanswered, ...result } = resultSchema.parse(JSON.parse(printed));
    const [p50, p90, p99, max] = percentilesMicros.map((value) => value / 1000);
    const asProbed = status >= 400 ? failed : result.requests - failed;
    const others = result.requests - asProbed;
    return {
      ...result,
      statuses: { [status]: asProbed, ...(others > 0 && { others }) },
      errors: unanswered,
      seconds: micros / 1_000_000,
      latencyMs: { p50, p90, p99, max },
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** By `node:http`, since `fetch` adds fields of its own that make it another request. */
async function probe(url: string, number: number, request: BenchRequest | undefined): Promise<number> {
  if (request === undefined) throw new Error('there is nothing to send');
  const { path, headers } = request;
  const sent = get(new URL(path.replace('{n}', String(number).padStart(12, '0')), url), { headers, agent: false });
  const [response] = z.tuple([z.instanceof(IncomingMessage)]).parse(await once(sent, 'response'));
  response.resume();
  return response.statusCode ?? 0;
}

/** Requests in turn; `{n}` in a path is another number each time. */
function luaOf(requests: readonly BenchRequest[], firstNumber: number): string {
  const made = requests.map(({ path, headers }) => {
    const table = Object.entries(headers).map(
      ([name, value]) => `[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
    );
    return `  made[#made + 1] = wrk.format("GET", ${JSON.stringify(path)}, {${table.join(', ')}})`;
  });
  const isNumbered = requests.some(({ path }) => path.includes('{n}'));
  return `
local made, count = {}, ${firstNumber}
function init()
${made.join('\n')}
end
function request()
  count = count + 1
  local one = made[count % #made + 1]
  return ${isNumbered ? "(one:gsub('{n}', string.format('%012d', count), 1))" : 'one'}
end
function done(summary, latency)
  local errors = summary.errors
  local unanswered = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format(
    '{"requests":%d,"failed":%d,"unanswered":%d,"micros":%d,"bytes":%d,"percentilesMicros":[%d,%d,%d,%d]}\\n',
    summary.requests, errors.status, unanswered, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max))
end
`;
}
