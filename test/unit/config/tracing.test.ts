/** Tracing is set by OpenTelemetry's own variables, which its SDK reads: here is only whether it is loaded at all. */
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';

test.each<[Readonly<Record<string, string>>, boolean]>([
  [{}, false],
  [{ OTEL_SERVICE_NAME: 'a', OTEL_TRACES_SAMPLER: 'always_on' }, false],
  [{ OTEL_TRACES_EXPORTER: ' ', OTEL_EXPORTER_OTLP_ENDPOINT: '' }, false],
  [{ OTEL_TRACES_EXPORTER: 'console' }, true],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318' }, true],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a:4318/v1/traces', OTEL_SDK_DISABLED: 'false' }, true],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318', OTEL_TRACES_EXPORTER: 'none' }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318', OTEL_SDK_DISABLED: 'true' }, false],
])('%j: %j', (env, isTraced) => {
  expect(loadConfig({ env }).isTraced).toBe(isTraced);
});
