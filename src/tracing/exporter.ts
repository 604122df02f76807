/** Where spans go. A collector in trouble is no request's trouble: the log has one line when it begins and one when it ends. */
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { OtlpSettings } from '../config/tracing-otlp.ts';

export interface DeliveryHooks {
  /** Spans were lost; called once until they arrive again. */
  readonly onLost: (error: Error) => void;
  /** `lost`: how many were not taken, beside those that found no place in the queue. */
  readonly onArriving: (report: { readonly lost: number }) => void;
}

export class ReportingExporter implements SpanExporter {
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
      if (!this.#isOver) this.#note(result, spans.length);
      onResult(result);
    });
  }

  /** Counts what is still on its way as lost, and reports nothing more. */
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

  #note({ code, error }: ExportResult, count: number): void {
    const lost = this.#lost;
    if (code === ExportResultCode.SUCCESS) {
      this.#lost = null;
      if (lost !== null) this.#hooks.onArriving({ lost });
    } else {
      this.#lost = (lost ?? 0) + count;
      if (lost === null) this.#hooks.onLost(error ?? new Error('The exporter gave no reason.'));
    }
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
  const abandon = (): void => {
    // The exporter retries what was cut off: it gets no further connection.
    agent.createConnection = () => {
      throw new Error('The gateway stops.');
    };
    agent.destroy();
  };
  return { exporter, abandon };
}

function givenOf({ ca, cert, key }: OtlpSettings['tls']) {
  return { ...(ca === null ? {} : { ca }), ...(cert === null ? {} : { cert }), ...(key === null ? {} : { key }) };
}
