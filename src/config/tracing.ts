/**
 * Tracing, by the standard variables of OpenTelemetry (`OTEL_*`) and by nothing of the configuration file: whoever runs a
 * collector sets them for all programs alike. Off unless one of them says where spans are to go.
 */
import type { Environment } from './environment.ts';
import type { ConfigFault } from './errors.ts';
import type { ReadFile } from './layer.ts';
import { OtelVariables } from './otel-variables.ts';
import { readOtlp, type OtlpSettings } from './tracing-otlp.ts';
import { readSampler, type SamplerSettings } from './tracing-sampler.ts';

export type TraceExporter = 'otlp' | 'console';

export interface TracingSettings {
  /** At least one. */
  readonly exporters: readonly TraceExporter[];
  readonly otlp: OtlpSettings;
  readonly sampler: SamplerSettings;
  /** Whether `traceparent` is read from requests and sent to the store. */
  readonly isPropagated: boolean;
  /** The name of the service; by default `evalgate`. */
  readonly serviceName: string;
  /** What else the operator says of where it runs. */
  readonly resourceAttributes: Readonly<Record<string, string>>;
  readonly batches: BatchSettings;
}

export interface BatchSettings {
  /** Spans that may wait to be sent; further ones are dropped. */
  readonly maxQueue: number;
  readonly maxBatch: number;
  /** How long spans wait for others to go with. */
  readonly delayMs: number;
  readonly exportTimeoutMs: number;
}

export interface ReadTracing {
  /** Null where it is off. */
  readonly settings: TracingSettings | null;
  readonly faults: readonly ConfigFault[];
}

const OFF: ReadTracing = { settings: null, faults: [] };

/** Where tracing is off nothing else of `OTEL_*` is looked at: the variables may be there for other programs. */
export function readTracing(env: Environment, readFile: ReadFile): ReadTracing {
  const variables = new OtelVariables(env, readFile);
  if (variables.given('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return OFF;
  const exporters = readExporters(variables);
  if (exporters.length === 0) return { settings: null, faults: variables.faults };
  variables.oneOf('OTEL_SDK_DISABLED', ['true', 'false']);
  const settings = {
    exporters,
    otlp: readOtlp(variables),
    sampler: readSampler(variables),
    isPropagated: readPropagators(variables),
    ...readResource(variables),
    batches: readBatches(variables),
  };
  return variables.faults.length > 0 ? { settings: null, faults: variables.faults } : { settings, faults: [] };
}

function readExporters(variables: OtelVariables): readonly TraceExporter[] {
  const name = 'OTEL_TRACES_EXPORTER';
  const named = variables.listOf(name, ['otlp', 'console', 'none']);
  if (named !== null) return [...new Set(named)].filter((exporter) => exporter !== 'none');
  if (variables.given(name) !== null) return [];
  const hasEndpoint = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].some(
    (endpoint) => variables.given(endpoint) !== null,
  );
  return hasEndpoint ? ['otlp'] : [];
}

/** `baggage` stands in the usual list and is neither read nor sent: it is text of the caller's choosing. */
function readPropagators(variables: OtelVariables): boolean {
  const named = variables.listOf('OTEL_PROPAGATORS', ['tracecontext', 'baggage', 'none']);
  return named === null || named.includes('tracecontext');
}

function readResource(variables: OtelVariables): Pick<TracingSettings, 'serviceName' | 'resourceAttributes'> {
  const attributes = variables.pairs('OTEL_RESOURCE_ATTRIBUTES', { secret: false }) ?? {};
  const { 'service.name': named = 'evalgate', ...resourceAttributes } = attributes;
  return { serviceName: variables.given('OTEL_SERVICE_NAME') ?? named, resourceAttributes };
}

function readBatches(variables: OtelVariables): BatchSettings {
  const maxQueue = variables.integer('OTEL_BSP_MAX_QUEUE_SIZE', { min: 1, max: 100_000 }) ?? 2048;
  const maxBatch = variables.integer('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', { min: 1, max: 100_000 });
  if (maxBatch !== null && maxBatch > maxQueue) {
    variables.fault('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', {
      problem: 'more than may wait can never be sent together',
      allowed: `at most OTEL_BSP_MAX_QUEUE_SIZE, which is ${maxQueue}`,
    });
  }
  return {
    maxQueue,
    maxBatch: maxBatch ?? Math.min(512, maxQueue),
    delayMs: variables.integer('OTEL_BSP_SCHEDULE_DELAY', { min: 1, max: 600_000, unit: 'ms' }) ?? 5000,
    exportTimeoutMs: variables.integer('OTEL_BSP_EXPORT_TIMEOUT', { min: 1, max: 600_000, unit: 'ms' }) ?? 30_000,
  };
}
