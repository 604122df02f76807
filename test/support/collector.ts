/** A collector of spans: takes what an OTLP exporter posts, as JSON, and shows it as trees. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { listenOnLoopback, type RunningServer } from './loopback.ts';

const valueSchema = z.union([
  z.object({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
  z.object({ boolValue: z.boolean() }).transform(({ boolValue }) => boolValue),
  z.object({ intValue: z.union([z.number(), z.string()]) }).transform(({ intValue }) => Number(intValue)),
  z.object({ doubleValue: z.number() }).transform(({ doubleValue }) => doubleValue),
]);
const attributesSchema = z
  .array(z.object({ key: z.string(), value: valueSchema }))
  .transform((pairs) => Object.fromEntries(pairs.map(({ key, value }) => [key, value])));
const spanSchema = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: attributesSchema,
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })),
  status: z.object({ code: z.number(), message: z.string().optional() }),
});
const postSchema = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: attributesSchema }),
      scopeSpans: z.array(z.object({ spans: z.array(spanSchema) })),
    }),
  ),
});

export interface ReceivedSpan extends z.output<typeof spanSchema> {
  readonly resource: Readonly<Record<string, string | number | boolean>>;
}

export interface Post {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** `hangs`: takes the request and never answers. */
type Manner = 'takes' | 'refuses' | 'hangs';

const KINDS = ['', 'internal', 'server', 'client', 'producer', 'consumer'];

export class Collector {
  manner: Manner = 'takes';
  readonly posts: Post[] = [];
  readonly spans: ReceivedSpan[] = [];
  readonly #running: RunningServer;
  #arrivals: (() => void)[] = [];

  private constructor(running: RunningServer) {
    this.#running = running;
  }

  static async start(): Promise<Collector> {
    const server = createServer();
    const collector = new Collector(await listenOnLoopback(server));
    server.on('request', (request, response) => void collector.#take(request, response));
    return collector;
  }

  get url(): string {
    return this.#running.url;
  }

  /** Variables that send a gateway's spans here, soon. */
  get env(): Readonly<Record<string, string>> {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '10',
    };
  }

  /** Resolves once it is so; looks at each arrival. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        this.#arrivals.push(resolve);
      });
    }
  }

  /** The trees of that many traces, in order of their beginnings, once all of them have arrived with that many spans. */
  async trees(count: number, spans: number): Promise<readonly string[]> {
    await this.until(() => this.spans.length >= spans);
    const ids = new Set<string | undefined>(this.spans.map(({ spanId }) => spanId));
    const roots = this.spans.filter(({ parentSpanId }) => !ids.has(parentSpanId)).toSorted(byStart);
    const trees = roots.map((root) => this.#draw(root, ''));
    if (trees.length !== count || this.spans.length !== spans) {
      throw new Error(`there are ${trees.length} traces of ${this.spans.length} spans:\n${trees.join('\n')}`);
    }
    return trees;
  }

  span(name: string): ReceivedSpan {
    const [span, other] = this.spans.filter((one) => one.name === name);
    if (span === undefined || other !== undefined) throw new Error(`not one span ${name}`);
    return span;
  }

  clear(): void {
    this.spans.length = 0;
    this.posts.length = 0;
  }

  async close(): Promise<void> {
    await this.#running.close();
  }

  /** A line a span: its kind, its name, and those below it. */
  #draw(span: ReceivedSpan, indent: string): string {
    const below = this.spans.filter(({ parentSpanId }) => parentSpanId === span.spanId).toSorted(byStart);
    const failed = span.status.code === 2 ? ' (failed)' : '';
    const line = `${indent}${KINDS[span.kind] ?? ''} ${span.name}${failed}`;
    return [line, ...below.map((child) => this.#draw(child, `${indent}  `))].join('\n');
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    this.posts.push({ path: request.url ?? '', headers: request.headers, body });
    if (this.manner === 'takes') {
      this.#read(request.headers, body);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    }
    // One that isn't tried again.
    if (this.manner === 'refuses') response.writeHead(400).end();
    const arrivals = this.#arrivals;
    this.#arrivals = [];
    for (const arrival of arrivals) arrival();
  }

  #read(headers: IncomingHttpHeaders, body: Buffer): void {
    if (headers['content-type'] !== 'application/json') return;
    const text = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    for (const { resource, scopeSpans } of postSchema.parse(JSON.parse(text.toString())).resourceSpans) {
      for (const { spans } of scopeSpans) {
        this.spans.push(...spans.map((span) => ({ ...span, resource: resource.attributes })));
      }
    }
  }
}

function byStart(a: ReceivedSpan, b: ReceivedSpan): number {
  return Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano));
}
