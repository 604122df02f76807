/** Where spans go. What becomes of them is no request's trouble: it is told in the log, when it begins and when it ends. */
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { OtlpSettings } from '../config/tracing-otlp.ts';

export interface DeliveryHooks {
  /** Spans were lost; told once until they arrive again. */
  readonly onLost: (error: Error) => void;
  /** `lost`: how many were not taken, beside those that found no place in the queue. */
  readonly onArriving: (report: { readonly lost: number }) => void;
}

export class ToldExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #hooks: DeliveryHooks;
  /** Null while they arrive. */
  #lost: number | null = null;
  #isOver = false;

  constructor(exporter: SpanExporter, hooks: DeliveryHooks) {
    this.#exporter = exporter;
    this.#hooks = hooks;
  }

  export(spans: ReadableSpan[], onResult: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) this.#arrived();
      else this.#failed(spans.length, result.error ?? new Error('The exporter gave no reason.'));
      onResult(result);
    });
  }

  /** What is still on its way is taken for lost, and nothing more is told. */
  giveUp(error: Error): void {
    if (this.#lost === null) this.#hooks.onLost(error);
    this.#isOver = true;
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  async shutdown(): Promise<void> {
    await this.#exporter.shutdown();
  }

  #arrived(): void {
    if (this.#isOver) return;
    const lost = this.#lost;
    this.#lost = null;
    if (lost !== null) this.#hooks.onArriving({ lost });
  }

  #failed(count: number, error: Error): void {
    if (this.#isOver) return;
    if (this.#lost === null) this.#hooks.onLost(error);
    this.#lost = (this.#lost ?? 0) + count;
  }
}

export interface OtlpExporter {
  readonly exporter: SpanExporter;
  /** Gives up what is still being sent, so that it doesn't hold the process. */
  abandon(): void;
}

/** Loads no more than the protocol needs. */
export async function createOtlpExporter(settings: OtlpSettings): Promise<OtlpExporter> {
  const { protocol, url, headers, timeoutMs, compression, tls } = settings;
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const { CompressionAlgorithm } = await import('@opentelemetry/otlp-exporter-base');
  const agent = url.startsWith('https:')
    ? new TlsAgent({ keepAlive: true, ...givenOf(tls) })
    : new Agent({ keepAlive: true });
  const exporter = new OTLPTraceExporter({
    url,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    compression: compression === 'gzip' ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
    httpAgentOptions: () => agent,
  });
  return { exporter, abandon: () => close(agent) };
}

function givenOf({ ca, cert, key }: OtlpSettings['tls']) {
  return { ...(ca === null ? {} : { ca }), ...(cert === null ? {} : { cert }), ...(key === null ? {} : { key }) };
}

/** The exporter tries again by itself what was cut off: it gets no further connection. */
function close(agent: Agent): void {
  agent.createConnection = () => {
    throw new Error('The gateway stops.');
  };
  agent.destroy();
}
