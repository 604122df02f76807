/** Tracing is set by OpenTelemetry's own variables. */
import { describe, expect, test } from 'vitest';
import { readTracing, type TracingSettings } from '../../../src/config/tracing.ts';
import { faultsOf, filesOf, load } from './support.ts';

type Env = Readonly<Record<string, string>>;
const ON = { OTEL_TRACES_EXPORTER: 'otlp' };

function settingsOf(env: Env, files: Readonly<Record<string, string>> = {}): TracingSettings | null {
  const { settings, faults } = readTracing(env, filesOf(files));
  expect(faults).toEqual([]);
  return settings;
}

function onWith(env: Env, files: Readonly<Record<string, string>> = {}): TracingSettings {
  const settings = settingsOf({ ...ON, ...env }, files);
  if (settings === null) throw new Error('it is off');
  return settings;
}

describe('whether it is on', () => {
  test.each<Env>([
    {},
    { OTEL_TRACES_EXPORTER: '' },
    { OTEL_TRACES_EXPORTER: 'none' },
    { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318', OTEL_SDK_DISABLED: 'true' },
    { OTEL_SERVICE_NAME: 'a', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'no such' },
    { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://a:4318' },
  ])('off with %o', (env) => {
    expect(settingsOf(env)).toBeNull();
  });

  test.each<[Env, readonly string[]]>([
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, ['otlp']],
    [{ OTEL_TRACES_EXPORTER: 'console' }, ['console']],
    [{ OTEL_TRACES_EXPORTER: 'console, otlp,console' }, ['console', 'otlp']],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318' }, ['otlp']],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a:4318/v1/traces', OTEL_SDK_DISABLED: 'false' }, ['otlp']],
  ])('on with %o', (env, exporters) => {
    expect(settingsOf(env)?.exporters).toEqual(exporters);
  });
});

test('the defaults are those of the specification, but that callers have no say in what is recorded', () => {
  expect(onWith({})).toEqual({
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

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318' }, 'http://a:4318/v1/traces'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a/base/' }, 'https://a/base/v1/traces'],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://a/own' }, 'https://a/own'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a' }, 'http://a/'],
])('spans go with %o to %s', (env, url) => {
  expect(onWith(env).otlp.url).toBe(url);
});

test('what is set for traces comes before what is set for all', () => {
  const { otlp } = onWith(
    {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b = %20x%2Cy',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=2',
      OTEL_EXPORTER_OTLP_TIMEOUT: '1',
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2',
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/ca.pem',
      OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: '/key.pem',
    },
    { '/ca.pem': 'CA', '/key.pem': 'KEY' },
  );

  expect(otlp).toMatchObject({
    protocol: 'http/json',
    headers: { a: '2', b: ' x,y' },
    timeoutMs: 2,
    compression: 'gzip',
    tls: { ca: 'CA', cert: null, key: 'KEY' },
  });
});

test.each<[Env, TracingSettings['sampler']]>([
  [{ OTEL_TRACES_SAMPLER: 'always_on' }, { ratio: 1, isCallerHeeded: false }],
  [{ OTEL_TRACES_SAMPLER: 'always_off' }, { ratio: 0, isCallerHeeded: false }],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, { ratio: 1, isCallerHeeded: false }],
  [
    { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
    { ratio: 0.01, isCallerHeeded: false },
  ],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, { ratio: 1, isCallerHeeded: true }],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, { ratio: 0, isCallerHeeded: true }],
  [
    { OTEL_TRACES_SAMPLER: 'ParentBased_TraceIdRatio', OTEL_TRACES_SAMPLER_ARG: '1e-3' },
    { ratio: 0.001, isCallerHeeded: true },
  ],
])('%o samples %o', (env, sampler) => {
  expect(onWith(env).sampler).toEqual(sampler);
});

test.each([
  ['tracecontext,baggage', true],
  ['tracecontext', true],
  ['baggage', false],
  ['none', false],
])('with OTEL_PROPAGATORS=%s traces go on: %s', (written, is) => {
  expect(onWith({ OTEL_PROPAGATORS: written }).isPropagated).toBe(is);
});

test('the name of the service stands before the one among the attributes', () => {
  const attributes = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=b,team=x%20y' };

  expect(onWith(attributes)).toMatchObject({ serviceName: 'b', resourceAttributes: { team: 'x y' } });
  expect(onWith({ ...attributes, OTEL_SERVICE_NAME: 'a' }).serviceName).toBe('a');
});

test('a batch is never larger than the queue', () => {
  expect(onWith({ OTEL_BSP_MAX_QUEUE_SIZE: '10' }).batches).toMatchObject({ maxQueue: 10, maxBatch: 10 });
});

describe('what cannot be used is refused', () => {
  test.each<[string, string, string]>([
    ['OTEL_TRACES_EXPORTER', 'jaeger', 'otlp, console, none, or several of them with commas'],
    ['OTEL_SDK_DISABLED', 'yes', 'one of true, false'],
    [
      'OTEL_EXPORTER_OTLP_PROTOCOL',
      'grpc',
      'http/protobuf or http/json; a collector takes both, by default on port 4318',
    ],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'thrift', 'one of http/protobuf, http/json'],
    [
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'collector:4317',
      'an address with http:// or https://, such as http://collector:4318',
    ],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s', 'an integer of milliseconds, without a unit, from 1 to 600000'],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'br', 'one of gzip, none'],
    ['OTEL_EXPORTER_OTLP_CERTIFICATE', '/none.pem', 'a file that can be read, in PEM form'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'team', 'pairs like name=value with commas between them, percent-encoded'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'team=%zz', 'pairs like name=value with commas between them, percent-encoded'],
    [
      'OTEL_TRACES_SAMPLER',
      'rate',
      'one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio',
    ],
    ['OTEL_PROPAGATORS', 'tracecontext,b3', 'tracecontext, baggage, none, or several of them with commas'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '0', 'an integer, from 1 to 100000'],
    ['OTEL_BSP_SCHEDULE_DELAY', '-1', 'an integer of milliseconds, without a unit, from 1 to 600000'],
    ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE', '4096', 'at most OTEL_BSP_MAX_QUEUE_SIZE, which is 2048'],
  ])('%s=%s', (name, written, allowed) => {
    expect(faultsOf(() => load('', { ...ON, [name]: written }))).toMatchObject([
      { name, given: JSON.stringify(written), allowed },
    ]);
  });

  test.each(['1.1', '-0.1', 'half', '1%', ''])('OTEL_TRACES_SAMPLER_ARG=%s, unless it is empty', (written) => {
    const env = { ...ON, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: written };

    expect(faultsOf(() => load('', env)).map(({ name }) => name)).toEqual(
      written === '' ? [] : ['OTEL_TRACES_SAMPLER_ARG'],
    );
  });

  test('headers are secrets: what was given is not shown', () => {
    const [fault] = faultsOf(() => load('', { ...ON, OTEL_EXPORTER_OTLP_HEADERS: 'Authorization: Bearer abc' }));

    expect(fault).toMatchObject({ name: 'OTEL_EXPORTER_OTLP_HEADERS', given: '(a secret, not shown)' });
  });

  test('all faults are told at once, with those of the settings', () => {
    const env = { ...ON, PORT: 'x', OTEL_PROPAGATORS: 'b3', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };

    expect(
      faultsOf(() => load('', env))
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_PROPAGATORS', 'PORT']);
  });
});
