/** Metrics of the process and of Node.js: prom-client's own, and the share of time that garbage collection takes. */
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';

const EVENT_LOOP_PRECISION_MS = 10;
/** One of prom-client's: a histogram of each collection's duration, by its kind. */
const GC_DURATIONS = 'nodejs_gc_duration_seconds';

export function nodeMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  const last = { atMs: performance.now(), gcSeconds: 0 };
  const ratio = new Gauge({
    name: 'evalgate_gc_time_ratio',
    help: 'Share of the time since the scrape before that went into collecting garbage.',
    aggregator: 'average',
    registers: [registry],
    collect: async () => {
      const atMs = performance.now();
      const gcSeconds = await gcSecondsOf(registry);
      const seconds = (atMs - last.atMs) / 1000;
      ratio.set(seconds > 0 ? Math.min(1, (gcSeconds - last.gcSeconds) / seconds) : 0);
      Object.assign(last, { atMs, gcSeconds });
    },
  });
}

/** Spent on garbage collection since the start. */
async function gcSecondsOf(registry: Registry): Promise<number> {
  const durations = await registry.getSingleMetric(GC_DURATIONS)?.get();
  const sums = durations?.values.filter((value) => 'metricName' in value && value.metricName === `${GC_DURATIONS}_sum`);
  return (sums ?? []).reduce((total, { value }) => total + value, 0);
}
