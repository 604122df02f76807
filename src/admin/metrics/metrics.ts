/**
 * The gateway's metrics, for Prometheus. The other rooms do not know of them: they get the recorders as hooks. No key, id
 * or workspace is ever a label. Each group of metrics is one file of this folder.
 */
import { Gauge, Registry } from 'prom-client';
import { cacheRecorders } from './cache.ts';
import { describeMetrics } from './describe.ts';
import { guardRecorders } from './guard.ts';
import { nodeMetrics } from './of-node.ts';
import type { Metrics } from './recorders.ts';
import { redisRecorders } from './redis.ts';
import { reloadRecorders } from './reloads.ts';
import { requestRecorders } from './requests.ts';
import { stateGauges } from './state.ts';
import { storeRecorders } from './store.ts';

/** Metrics in a registry of their own, so that several gateways can live in one process. `version` is the gateway's. */
export function createMetrics({ version }: { readonly version: string }): Metrics {
  const registry = new Registry();
  nodeMetrics(registry);
  const build = new Gauge({
    name: 'evalgate_build_info',
    help: 'Always 1; the labels tell which evalgate runs on which Node.js.',
    labelNames: ['version', 'node'],
    aggregator: 'first',
    registers: [registry],
  });
  build.set({ version, node: process.versions.node }, 1);
  return {
    contentType: registry.contentType,
    render: () => registry.metrics(),
    values: () => registry.getMetricsAsJSON(),
    describe: () => describeMetrics(registry),
    close: () => registry.clear(),
    ...requestRecorders(registry),
    ...storeRecorders(registry),
    ...cacheRecorders(registry),
    ...guardRecorders(registry),
    ...redisRecorders(registry),
    ...reloadRecorders(registry),
    ...stateGauges(registry),
  };
}
