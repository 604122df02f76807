/**
 * OpenTelemetry's SDK, set by its own variables (`OTEL_*`), which it reads itself. Loaded only if tracing is on, since what
 * it needs takes its time to load. A collector in trouble is no request's trouble.
 */
import { hostname } from 'node:os';
import * as api from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  ExportResultCode,
  getNumberFromEnv,
  getStringFromEnv,
  getStringListFromEnv,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type BatchSpanProcessorOptions,
  ConsoleSpanExporter,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from '../log/logger.ts';
import { systemTimers, withDeadline } from '../time/timers.ts';
import { TRACES_GRACE_MS } from '../server/server.ts';
import { VERSION } from '../version.ts';
import { useOpenTelemetry } from './spans.ts';

const { context, diag, DiagLogLevel, propagation, trace } = api;

/**
 * Tracing for the whole process. Returns a function that ends it: it sends what waits, within `TRACES_GRACE_MS`, and never
 * rejects.
 */
export async function startTracing(logger: Logger): Promise<() => Promise<void>> {
  // An address that cannot be used may hold a password.
  const warn = (message: string): void => logger.warn(`tracing: ${message.replace(/\/\/[^/\s"']*@/g, '//***@')}`);
  // A variable that cannot be used is a warning, and its default counts.
  diag.setLogger({ error: warn, warn, info: warn, debug: warn, verbose: warn }, DiagLogLevel.WARN);
  const exporters = (await openExporters()).map((exporter) => reporting(exporter, logger));
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'evalgate', 'service.version': VERSION }))
      .merge(resourceFromAttributes({ 'host.name': hostname(), 'process.pid': process.pid }))
      .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })),
    sampler: createSampler(),
    spanProcessors: exporters.map(({ exporter }) => new BatchSpanProcessor({ exporter, ...batchOptions() })),
  });
  useOpenTelemetry(api);
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const propagators = getStringListFromEnv('OTEL_PROPAGATORS') ?? ['tracecontext'];
  if (propagators.includes('tracecontext')) propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  // From now on the exporters report what happens.
  diag.disable();
  logger.info({ exporters: getStringListFromEnv('OTEL_TRACES_EXPORTER') ?? ['otlp'] }, 'tracing is on');
  return async () => {
    const sent = Promise.allSettled([provider.shutdown()]);
    await withDeadline(sent, TRACES_GRACE_MS, systemTimers, () => {
      for (const { giveUp } of exporters) giveUp();
    });
    trace.disable();
    context.disable();
    propagation.disable();
  };
}

/** Loads no more than the protocol needs. The exporters read `OTEL_EXPORTER_OTLP_*`. */
async function openExporters(): Promise<readonly SpanExporter[]> {
  const names = new Set(getStringListFromEnv('OTEL_TRACES_EXPORTER') ?? ['otlp']);
  const exporters: SpanExporter[] = [];
  if (names.delete('console')) exporters.push(new ConsoleSpanExporter());
  if (names.delete('otlp')) exporters.push(await openOtlpExporter());
  if (names.size > 0) diag.warn(`OTEL_TRACES_EXPORTER: there is no ${[...names].join(', ')}; use otlp or console`);
  return exporters;
}

async function openOtlpExporter(): Promise<SpanExporter> {
  const protocol =
    getStringFromEnv('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? getStringFromEnv('OTEL_EXPORTER_OTLP_PROTOCOL');
  if (protocol === 'http/json') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
    return new OTLPTraceExporter();
  }
  if (protocol !== undefined && protocol !== 'http/protobuf') {
    diag.warn(`OTEL_EXPORTER_OTLP_PROTOCOL: spans go as http/protobuf, since ${protocol} is not spoken here`);
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

function batchOptions(): Omit<BatchSpanProcessorOptions, 'exporter'> {
  return {
    maxQueueSize: getNumberFromEnv('OTEL_BSP_MAX_QUEUE_SIZE') ?? 2048,
    maxExportBatchSize: getNumberFromEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE') ?? 512,
    scheduledDelayMillis: getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? 5000,
    exportTimeoutMillis: getNumberFromEnv('OTEL_BSP_EXPORT_TIMEOUT') ?? 30_000,
  };
}

/**
 * Callers are not trusted with what is recorded, so the SDK's samplers cannot be used as they are: by default every request
 * is recorded, and a share is drawn, but the SDK heeds the caller's flag, or its trace's id, which can be chosen too. A
 * request is recorded with all that is done for it, or not at all; a trace of its own (`links`) always, as only recorded
 * requests cause one.
 */
function createSampler(): Sampler {
  const name = getStringFromEnv('OTEL_TRACES_SAMPLER')?.trim() ?? 'always_on';
  const [, parentBased, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (kind === undefined) diag.warn(`OTEL_TRACES_SAMPLER: there is no ${name}, so every request is recorded`);
  const share = kind === 'traceidratio' ? (getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG') ?? 1) : 1;
  const ratio = kind === 'always_off' ? 0 : share;
  const root: Sampler = {
    shouldSample: (...[, , , , , links]: Parameters<Sampler['shouldSample']>) => {
      const isRecorded = links.length > 0 || Math.random() < ratio;
      return { decision: isRecorded ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
    },
  };
  if (parentBased !== undefined) return new ParentBasedSampler({ root });
  return new ParentBasedSampler({ root, remoteParentSampled: root, remoteParentNotSampled: root });
}

/** The log has one line when spans begin to be lost, and one when they arrive again. */
function reporting(exporter: SpanExporter, logger: Logger) {
  /** How many were not taken, beside those that found no place in the queue; null while they arrive. */
  let lost: number | null = null;
  const onLost = (count: number, error: Error): void => {
    if (lost === null) logger.warn({ err: error }, 'spans are lost: they cannot be delivered');
    lost = (lost ?? 0) + count;
  };
  const reported: SpanExporter = {
    export: (spans, onResult) =>
      exporter.export(spans, (result) => {
        if (result.code !== ExportResultCode.SUCCESS) {
          onLost(spans.length, result.error ?? new Error('The exporter gave no reason.'));
        } else if (lost !== null) {
          logger.info({ lost }, 'spans are delivered again');
          lost = null;
        }
        onResult(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
  /** Spans that are still on their way are lost. */
  const giveUp = (): void => onLost(0, new Error(`They were not taken within ${TRACES_GRACE_MS} ms.`));
  return { exporter: reported, giveUp };
}
