/** A gateway that is one of several workers: what its admin listener tells is of all of them. */
import { z } from 'zod';
import type { Dependency, Readiness } from './admin/readiness.ts';
import type { Siblings } from './cluster/member.ts';
import type { Metrics, MetricsSource } from './telemetry/metrics.ts';

/** What the workers are asked about. */
export const METRICS_TOPIC = 'metrics';

const textSchema = z.string();

/** Whichever worker is asked, the metrics are those of all. */
export function metricsOfAll(own: Metrics, siblings: Siblings): MetricsSource {
  siblings.answer(METRICS_TOPIC, () => own.registry.getMetricsAsJSON());
  return {
    contentType: own.registry.contentType,
    render: async () => textSchema.parse(await siblings.ask(METRICS_TOPIC)),
  };
}

/**
 * Requests can be served as soon as one worker can, so one that starts in the place of another changes nothing. How many
 * there are is one of the dependencies.
 */
export function readinessOfAll(own: Readiness, siblings: Siblings | null): Readiness {
  if (siblings === null) return own;
  const { ready, wanted, sinceMs } = siblings.standing();
  const workers: Dependency = {
    name: 'workers',
    status: ready < wanted ? 'degraded' : 'ok',
    since: new Date(sinceMs).toISOString(),
    detail: `${ready} of ${wanted} are ready`,
  };
  const status = own.status === 'starting' && ready > 0 ? 'ready' : own.status;
  return { ...own, status, dependencies: [...own.dependencies, workers] };
}
