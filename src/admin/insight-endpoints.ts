/** What live traffic tells of the cache, and who serves it. */
import { adviceEndpoint, type AdviceEndpointOptions } from './advice-endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import { fleetEndpoint } from './fleet-endpoint.ts';
import { historyEndpoint } from './history-endpoint.ts';
import type { History } from './history.ts';
import type { Instances } from '../redis/instances.ts';

export interface InsightOptions extends Omit<AdviceEndpointOptions, 'clock'> {
  readonly history: Pick<History, 'view'>;
  readonly members: Pick<Instances, 'id' | 'list'>;
}

export function insightEndpoints({
  insight,
  clock,
}: {
  readonly insight: InsightOptions;
  readonly clock: AdviceEndpointOptions['clock'];
}): readonly Endpoint[] {
  return [adviceEndpoint({ ...insight, clock }), historyEndpoint(insight.history), fleetEndpoint(insight.members)];
}
