/** Whether the store announces its changes, for `/readyz` and the metrics. Silence alone is no fault: nothing may have changed. */
import type { AnnouncementRate } from '../changes/recent.ts';
import type { ChangesRoom } from '../changes/open.ts';
import type { DependencyState, Health } from './health.ts';
import type { Metrics } from './metrics.ts';

/** A dependency only if the store announces all changes. */
export function trackChanges(
  { health, metrics }: { readonly health: Health; readonly metrics: Metrics },
  { announcements, recentChanges, feed }: ChangesRoom,
): void {
  metrics.addChanges(
    () => announcements.taken,
    () => recentChanges.rate().lastAtMs,
  );
  if (feed === null) return;
  health.add({
    name: 'changes',
    okMessage: 'the store announces its changes',
    check: () => stateOf(recentChanges.rate()),
  });
}

function stateOf({ lastAtMs, inLastHour }: AnnouncementRate): DependencyState {
  if (lastAtMs === null)
    return { status: 'unknown', detail: 'the store has announced nothing since this process started' };
  const last = new Date(lastAtMs).toISOString();
  const heard = `this process heard of ${inLastHour} in the last hour`;
  return { status: 'ok', detail: `the store announced a change last at ${last}; ${heard}` };
}
