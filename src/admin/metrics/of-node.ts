/** What the Prometheus client for Node.js tells of the process and of Node.js, and how long garbage is collected. */
import { Gauge, type Registry } from 'prom-client';
import eventLoopLag from 'prom-client/lib/metrics/eventLoopLag.js';
import heapSizeAndUsed from 'prom-client/lib/metrics/heapSizeAndUsed.js';
import heapSpacesSizeAndUsed from 'prom-client/lib/metrics/heapSpacesSizeAndUsed.js';
import osMemoryHeap from 'prom-client/lib/metrics/osMemoryHeap.js';
import processCpuTotal from 'prom-client/lib/metrics/processCpuTotal.js';
import processHandles from 'prom-client/lib/metrics/processHandles.js';
import processMaxFileDescriptors from 'prom-client/lib/metrics/processMaxFileDescriptors.js';
import processOpenFileDescriptors from 'prom-client/lib/metrics/processOpenFileDescriptors.js';
import processRequests from 'prom-client/lib/metrics/processRequests.js';
import processResources from 'prom-client/lib/metrics/processResources.js';
import processStartTime from 'prom-client/lib/metrics/processStartTime.js';
import version from 'prom-client/lib/metrics/version.js';
import { GcWatch } from './gc-watch.ts';

/** All of the client's but `nodejs_gc_duration_seconds`, for what it costs; see `GcWatch`. */
const OF_THE_CLIENT = [
  processCpuTotal,
  processStartTime,
  osMemoryHeap,
  processOpenFileDescriptors,
  processMaxFileDescriptors,
  eventLoopLag,
  processResources,
  processHandles,
  processRequests,
  heapSizeAndUsed,
  heapSpacesSizeAndUsed,
  version,
];

const EVENT_LOOP_PRECISION_MS = 10;

/** Registers them. What is returned ends what runs in the background. */
export function nodeMetrics(registry: Registry): () => void {
  for (const register of OF_THE_CLIENT) register(registry, { eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  const watch = new GcWatch();
  const share = new Gauge({
    name: 'evalgate_gc_time_ratio',
    help: 'Share of the time that went into collecting garbage, in the second after the scrape before; 0 at the first.',
    aggregator: 'average',
    registers: [],
    collect() {
      this.set(watch.ratio);
      watch.begin();
    },
  });
  registry.registerMetric(share);
  return () => watch.end();
}
