/** Tracing that is on. Only loaded where it is, since what it needs takes its time to load. */
import type { TracingSettings } from '../config/tracing.ts';
import { TRACES_GRACE_MS } from '../server.ts';
import type { Logger } from '../log/logger.ts';
import { FlightSpans } from './flight-spans.ts';
import { startProvider } from './provider.ts';
import { RedisSpans } from './redis-spans.ts';
import { ServerSpans } from './server-spans.ts';
import { Spans } from './spans.ts';
import { StoreSpans } from './store-spans.ts';
import type { Tracing } from './tracing.ts';

export interface TracingOptions {
  readonly logger: Logger;
  /** Of evalgate. */
  readonly version: string;
}

export async function startTracing(settings: TracingSettings, { logger, version }: TracingOptions): Promise<Tracing> {
  const { exporters, sampler, isPropagated } = settings;
  const provider = await startProvider(settings, {
    version,
    hooks: {
      onLost: (error) => logger.warn({ err: error }, 'spans are lost: they cannot be delivered'),
      onArriving: (report) => logger.info(report, 'spans are delivered again'),
    },
  });
  const spans = new Spans(provider.tracer);
  const server = new ServerSpans(spans, isPropagated);
  const flights = new FlightSpans(spans);
  const store = new StoreSpans(spans, isPropagated);
  const redis = new RedisSpans(spans);
  logger.info({ exporters, sampler }, 'tracing is on');
  return {
    handler: (handler) => server.handler(handler),
    http: (hooks) => server.http(hooks),
    cache: (hooks) => flights.cache(hooks),
    flight: (task, run) => flights.flight(task, run),
    store: (inner) => store.store(inner),
    storeHooks: (hooks) => store.hooks(hooks),
    quota: (quota) => redis.quota(quota),
    keys: (keys) => redis.keys(keys),
    sharedCache: (cache) => redis.sharedCache(cache),
    close: () => provider.close(TRACES_GRACE_MS),
  };
}
