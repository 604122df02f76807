/**
 * Drives load at one server and prints what came back, as JSON.
 * Usage: node load.js, with a JSON object in OPTIONS: {url, requests: [{path, headers}], connections, seconds, rate, isUnique, firstNumber}.
 * Without `rate` each connection sends its next request once it has its answer; with it, requests are sent at that rate a
 * second in all, and latencies are counted from when each should have been sent.
 */
import autocannon from 'autocannon';

const {
  url,
  requests,
  connections,
  seconds,
  rate,
  isUnique = false,
  firstNumber,
} = JSON.parse(process.env.OPTIONS ?? '{}');
let next = firstNumber;
const result = await autocannon({
  url,
  connections,
  duration: seconds,
  requests: requests.map(({ path, headers }) => ({
    method: 'GET',
    path,
    headers,
    // Each time another path, for load that no cache has seen.
    ...(isUnique && { setupRequest: (request) => ({ ...request, path: path.replace('{n}', String(next++)) }) }),
  })),
  ...(rate === undefined ? {} : { overallRate: rate }),
  timeout: 20,
});
const { latency } = result;
process.stdout.write(
  JSON.stringify({
    requests: result.requests.total,
    statuses: Object.fromEntries(
      Object.entries(result.statusCodeStats ?? {}).map(([status, { count }]) => [status, count]),
    ),
    errors: result.errors + result.timeouts,
    seconds: result.duration,
    bytes: result.throughput.total,
    latencyMs: { p50: latency.p50, p90: latency.p90, p99: latency.p99, max: latency.max },
  }),
);
