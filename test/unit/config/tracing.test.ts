/** Tracing is set by OpenTelemetry's own variables. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';

type Env = Readonly<Record<string, string>>;
const ON = { OTEL_TRACES_EXPORTER: 'otlp' };
const tracingOf = (env: Env) => loadConfig({ env }).tracing;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'evalgate-tracing-'));
});
afterAll(() => rm(folder, { recursive: true }));

test.each<[Env, readonly string[] | undefined]>([
  [{}, undefined],
  [{ OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318' }, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318', OTEL_SDK_DISABLED: 'true' }, undefined],
  [{ OTEL_SERVICE_NAME: 'a', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'no such' }, undefined],
  [{ OTEL_TRACES_EXPORTER: 'console, otlp,console' }, ['console', 'otlp']],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318' }, ['otlp']],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a:4318/v1/traces', OTEL_SDK_DISABLED: 'false' }, ['otlp']],
])('with %j spans go to %j', (env, exporters) => {
  expect(tracingOf(env)?.exporters).toEqual(exporters);
});

test('the defaults are those of the specification, but that callers have no say in what is recorded', () => {
  expect(tracingOf(ON)).toEqual({
    exporters: ['otlp'],
    otlp: {
      protocol: 'http/protobuf',
      url: 'http://localhost:4318/v1/traces',
      headers: {},
      timeoutMs: 10_000,
      compression: 'none',
      tls: { ca: null, cert: null, key: null },
    },
    sampler: { ratio: 1, isCallerHeeded: false },
    isPropagated: true,
    serviceName: 'evalgate',
    resourceAttributes: {},
    batches: { maxQueue: 2048, maxBatch: 512, delayMs: 5000, exportTimeoutMs: 30_000 },
  });
});

test('what is set for traces comes before what is set for all', async () => {
  const [ca, key] = [join(folder, 'ca.pem'), join(folder, 'key.pem')];
  await writeFile(ca, 'CA');
  await writeFile(key, 'KEY');
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://a/own',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b = %20x%2Cy',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=2',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1',
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_CERTIFICATE: ca,
    OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: key,
  };
  expect(tracingOf({ ...ON, ...env })?.otlp).toEqual({
    protocol: 'http/json',
    url: 'https://a/own',
    headers: { a: '2', b: ' x,y' },
    timeoutMs: 2,
    compression: 'gzip',
    tls: { ca: 'CA', cert: null, key: 'KEY' },
  });
});

test.each<[Env, object]>([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a/base/' }, { otlp: { url: 'https://a/base/v1/traces' } }],
  [{ OTEL_TRACES_SAMPLER: 'always_off' }, { sampler: { ratio: 0, isCallerHeeded: false } }],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, { sampler: { ratio: 1, isCallerHeeded: false } }],
  [
    { OTEL_TRACES_SAMPLER: 'ParentBased_TraceIdRatio', OTEL_TRACES_SAMPLER_ARG: '1e-3' },
    { sampler: { ratio: 0.001, isCallerHeeded: true } },
  ],
  [{ OTEL_PROPAGATORS: 'tracecontext,baggage' }, { isPropagated: true }],
  [{ OTEL_PROPAGATORS: 'none' }, { isPropagated: false }],
  [
    { OTEL_RESOURCE_ATTRIBUTES: 'service.name=b,team=x%20y' },
    { serviceName: 'b', resourceAttributes: { team: 'x y' } },
  ],
  [{ OTEL_RESOURCE_ATTRIBUTES: 'service.name=b', OTEL_SERVICE_NAME: 'a' }, { serviceName: 'a' }],
  [{ OTEL_BSP_MAX_QUEUE_SIZE: '10' }, { batches: { maxQueue: 10, maxBatch: 10 } }],
])('%j sets %j', (env, settings) => {
  expect(tracingOf({ ...ON, ...env })).toMatchObject(settings);
});

const HEADERS = 'names and values that a header field may have';
const PAIRS = 'pairs like name=value with commas between them, percent-encoded';
test.each([
  ['OTEL_TRACES_EXPORTER', 'jaeger', '"jaeger" is none; allowed: otlp, console, none, or several of them with commas'],
  ['OTEL_SDK_DISABLED', 'yes', 'allowed: one of true, false'],
  [
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'grpc',
    'gRPC is not spoken here; allowed: http/protobuf or http/json; a collector takes both, by default on port 4318',
  ],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'thrift', 'allowed: one of http/protobuf, http/json'],
  [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'collector:4317',
    'allowed: an address with http:// or https://, such as http://collector:4318',
  ],
  ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s', 'allowed: an integer of milliseconds, without a unit, from 1 to 600000'],
  ['OTEL_EXPORTER_OTLP_COMPRESSION', 'br', 'allowed: one of gzip, none'],
  [
    'OTEL_EXPORTER_OTLP_CERTIFICATE',
    '/none.pem',
    'it cannot be read: there is no such file; allowed: a file that can be read, in PEM form',
  ],
  ['OTEL_RESOURCE_ATTRIBUTES', 'team', `allowed: ${PAIRS}`],
  ['OTEL_RESOURCE_ATTRIBUTES', 'team=%zz', `allowed: ${PAIRS}`],
  ['OTEL_TRACES_SAMPLER_ARG', '1.1', 'allowed: a share from 0 to 1, such as 0.01 for one request of a hundred'],
  [
    'OTEL_PROPAGATORS',
    'tracecontext,b3',
    '"b3" is none; allowed: tracecontext, baggage, none, or several of them with commas',
  ],
  ['OTEL_BSP_MAX_QUEUE_SIZE', '0', 'allowed: an integer, from 1 to 100000'],
  [
    'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
    '4096',
    'more than may wait can never be sent together; allowed: at most OTEL_BSP_MAX_QUEUE_SIZE, which is 2048',
  ],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'Authorization: Bearer abc', `allowed: ${PAIRS}`],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=b%0Ac', `allowed: ${HEADERS}`],
])('%s=%s is refused', (name, written, why) => {
  const env = { ...ON, OTEL_TRACES_SAMPLER: 'traceidratio', [name]: written };
  const given = name.endsWith('HEADERS') ? '(a secret, not shown)' : JSON.stringify(written);
  expect(() => loadConfig({ env })).toThrow(`The configuration has a fault:\n  ${name}: given ${given}; ${why}`);
});

test('a sampler that there is none of is refused with those that there are', () => {
  expect(() => loadConfig({ env: { ...ON, OTEL_TRACES_SAMPLER: 'rate' } })).toThrow(
    'OTEL_TRACES_SAMPLER: given "rate"; allowed: one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio',
  );
});
