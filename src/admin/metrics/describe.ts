/** What metrics there are, for the documentation. */
import type { Registry } from 'prom-client';

export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
}

/** All that are registered, in that order; those that have no sample yet too. */
export async function describeMetrics(registry: Registry): Promise<readonly MetricDescription[]> {
  const registered = new Map(registry.getMetricsAsArray().map((metric) => [metric.name, metric]));
  const metrics = await registry.getMetricsAsJSON();
  return metrics.map(({ name, type, help }) => ({
    name,
    type: String(type),
    help,
    labels: labelsOf(registered.get(name)),
  }));
}

/** The library's types leave the names of labels out. */
function labelsOf(metric: object | undefined): readonly string[] {
  const names: unknown = metric !== undefined && 'labelNames' in metric ? metric.labelNames : [];
  return Array.isArray(names) ? names.map(String) : [];
}
