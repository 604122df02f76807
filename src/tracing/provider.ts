/** OpenTelemetry's SDK with the operator's settings: resource, sampler, exporters, and an end within bounds. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Tracer } from '@opentelemetry/api';
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import type { SamplerSettings } from '../config/tracing-sampler.ts';
import type { TraceExporter, TracingSettings } from '../config/tracing.ts';
import { createOtlpExporter, type DeliveryHooks, type OtlpExporter, ReportingExporter } from './exporter.ts';
import { isSampled } from './spans.ts';

export interface RunningProvider {
  readonly tracer: Tracer;
  /** Sends what waits. Gives up after that time, and then holds the process no longer. Never rejects. */
  close(graceMs: number): Promise<void>;
}

export interface ProviderOptions {
  /** The version of evalgate. */
  readonly version: string;
  readonly hooks: DeliveryHooks;
}

export async function startProvider(settings: TracingSettings, options: ProviderOptions): Promise<RunningProvider> {
  const openExporter = async (kind: TraceExporter): Promise<OtlpExporter> =>
    kind === 'otlp'
      ? await createOtlpExporter(settings.otlp)
      : { exporter: new ConsoleSpanExporter(), abandon: () => {} };
  const open = await Promise.all(settings.exporters.map(openExporter));
  const exporters = open.map(({ exporter }) => new ReportingExporter(exporter, options.hooks));
  const { maxQueue, maxBatch, delayMs, exportTimeoutMs } = settings.batches;
  const batches = {
    maxQueueSize: maxQueue,
    maxExportBatchSize: maxBatch,
    scheduledDelayMillis: delayMs,
    exportTimeoutMillis: exportTimeoutMs,
  };
  const provider = new TracerProvider({
    resource: resourceOf(settings, options.version),
    sampler: createSampler(settings.sampler),
    spanProcessors: exporters.map((exporter) => new BatchSpanProcessor({ exporter, ...batches })),
  });
  return {
    tracer: provider.getTracer('evalgate', options.version),
    close: async (graceMs) => {
      // It ends with the first batch that fails; the others may still be on their way.
      const flushed = provider.shutdown().catch(() => Promise.all(exporters.map((exporter) => exporter.forceFlush())));
      if (!(await isOverWithin(graceMs, flushed))) {
        for (const exporter of exporters) exporter.giveUp(new Error(`They were not taken within ${graceMs} ms.`));
      }
      for (const exporter of open) exporter.abandon();
    },
  };
}

/** Each process is an instance, workers too. The operator's attributes come last, and so override the others. */
function resourceOf({ serviceName, resourceAttributes }: TracingSettings, version: string): Resource {
  return defaultResource().merge(
    resourceFromAttributes({
      [ATTR_SERVICE_VERSION]: version,
      [ATTR_SERVICE_INSTANCE_ID]: randomUUID(),
      'host.name': hostname(),
      'process.pid': process.pid,
      ...resourceAttributes,
      [ATTR_SERVICE_NAME]: serviceName,
    }),
  );
}

/**
 * A request is recorded with all that is done for it, or not at all; a trace of its own, if the linked cause is. Unless
 * callers decide, neither their flag nor their trace's id counts: the usual ratio goes by the id, and a caller could choose
 * ids that are always recorded.
 */
function createSampler({ ratio, isCallerHeeded }: SamplerSettings): Sampler {
  const byId = new TraceIdRatioBasedSampler(ratio);
  const root: Sampler = {
    shouldSample: (...request: Parameters<Sampler['shouldSample']>) => {
      const [context, traceId, , , , [cause]] = request;
      return cause === undefined ? byId.shouldSample(context, traceId) : decisionOf(isSampled(cause.context));
    },
    toString: () => `evalgate{ratio=${ratio}}`,
  };
  if (isCallerHeeded) return new ParentBasedSampler({ root });
  const drawn: Sampler = {
    shouldSample: () => decisionOf(Math.random() < ratio),
    toString: () => `drawn{ratio=${ratio}}`,
  };
  return new ParentBasedSampler({ root, remoteParentSampled: drawn, remoteParentNotSampled: drawn });
}

function decisionOf(isRecorded: boolean): SamplingResult {
  return { decision: isRecorded ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
}

/** Whether the work was over, however it ended, before the time was. */
async function isOverWithin(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  const { promise: expiry, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), limitMs);
  const end = work.then(
    () => true,
    () => true,
  );
  const isOver = await Promise.race([end, expiry]);
  clearTimeout(timer);
  return isOver;
}
