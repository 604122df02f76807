/** OpenTelemetry's SDK, put together as the operator has set it. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Tracer } from '@opentelemetry/api';
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, ConsoleSpanExporter, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import type { TraceExporter, TracingSettings } from '../config/tracing.ts';
import { createOtlpExporter, type DeliveryHooks, ToldExporter } from './exporter.ts';
import { createSampler } from './sampler.ts';

export interface RunningProvider {
  readonly tracer: Tracer;
  /** Sends what waits. Gives up after that time, and then holds the process no longer. Never rejects. */
  close(graceMs: number): Promise<void>;
}

export interface ProviderOptions {
  /** Of evalgate. */
  readonly version: string;
  readonly hooks: DeliveryHooks;
}

export async function startProvider(settings: TracingSettings, options: ProviderOptions): Promise<RunningProvider> {
  const open = await Promise.all(settings.exporters.map((kind) => openExporter(kind, settings)));
  const told = open.map(({ exporter }) => new ToldExporter(exporter, options.hooks));
  const { maxQueue, maxBatch, delayMs, exportTimeoutMs } = settings.batches;
  const provider = new TracerProvider({
    resource: resourceOf(settings, options.version),
    sampler: createSampler(settings.sampler),
    spanProcessors: told.map(
      (exporter) =>
        new BatchSpanProcessor({
          exporter,
          maxQueueSize: maxQueue,
          maxExportBatchSize: maxBatch,
          scheduledDelayMillis: delayMs,
          exportTimeoutMillis: exportTimeoutMs,
        }),
    ),
  });
  return {
    tracer: provider.getTracer('evalgate', options.version),
    close: async (graceMs) => {
      // It ends with the first batch that fails; the others may still be on their way.
      const flushed = provider.shutdown().catch(() => Promise.all(told.map((exporter) => exporter.forceFlush())));
      if (!(await isOverWithin(graceMs, flushed))) {
        for (const exporter of told) exporter.giveUp(new Error(`They were not taken within ${graceMs} ms.`));
      }
      for (const exporter of open) exporter.abandon();
    },
  };
}

interface OpenExporter {
  readonly exporter: SpanExporter;
  abandon(): void;
}

async function openExporter(kind: TraceExporter, { otlp }: TracingSettings): Promise<OpenExporter> {
  return kind === 'otlp' ? await createOtlpExporter(otlp) : { exporter: new ConsoleSpanExporter(), abandon: () => {} };
}

/** Each process is an instance: workers too. What the operator says comes last, and so counts. */
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
