/** The maintenance of this process, among what `/readyz` tells of. */
import { type Maintenance, MaintenanceState } from './cache/maintenance.ts';
import type { Clock } from './clock.ts';
import type { DependencyWatch, Sighting } from './dependencies.ts';
import type { Timers } from './timers.ts';

const NAME = 'maintenance';
/** Whatever is said, a timer can't wait longer than some weeks. */
const LONGEST_WAIT_MS = 86_400_000;

/** Its end is noticed when it comes, by this process's clock, although nobody says anything then. */
export function watchMaintenance(dependencies: DependencyWatch, clock: Clock, timers: Timers): MaintenanceState {
  /** The last that was on; null where somebody has ended it. */
  let last: Maintenance | null = null;
  let cancel: (() => void) | null = null;
  const look = (): void => {
    cancel?.();
    cancel = null;
    dependencies.look(NAME);
    const on = state.current();
    // A timer may go off a moment before the clock has come so far; then it is armed again.
    if (on !== null) cancel = timers.after(Math.min(LONGEST_WAIT_MS, on.untilMs - clock.nowMs()), look);
  };
  const state = new MaintenanceState(clock, () => {
    last = state.current();
    look();
  });
  dependencies.add({ name: NAME, look: () => sightingOf(state.current(), last) });
  return state;
}

/** Without who said so: probes need no token. */
function sightingOf(maintenance: Maintenance | null, last: Maintenance | null): Sighting {
  if (maintenance === null) {
    const off: Sighting = { status: 'ok', detail: 'off' };
    return last === null ? off : { ...off, sinceMs: last.untilMs };
  }
  const { sinceMs, untilMs } = maintenance;
  const detail = `the store is asked nothing until ${new Date(untilMs).toISOString()}`;
  return { status: 'degraded', detail, sinceMs };
}
