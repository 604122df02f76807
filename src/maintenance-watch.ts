/** The maintenance of this process, among what `/readyz` tells of. */
import { type Maintenance, MaintenanceState } from './cache/maintenance.ts';
import type { Clock } from './clock.ts';
import type { DependencyWatch, Sighting } from './dependencies.ts';

const NAME = 'maintenance';

export function watchMaintenance(dependencies: DependencyWatch, clock: Clock): MaintenanceState {
  const state = new MaintenanceState(clock, () => dependencies.look(NAME));
  dependencies.add({ name: NAME, look: () => sightingOf(state.current()) });
  return state;
}

/** Without who said so: probes need no token. */
function sightingOf(maintenance: Maintenance | null): Sighting {
  if (maintenance === null) return { status: 'ok', detail: 'off' };
  const { sinceMs, untilMs } = maintenance;
  const detail = `the store is asked nothing until ${new Date(untilMs).toISOString()}`;
  return { status: 'degraded', detail, sinceMs };
}
