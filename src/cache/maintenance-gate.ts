/** Keeps everything from the store while it is under maintenance. Nothing in front of it has to know. */
import type { Clock } from '../clock.ts';
import type { Fetch } from '../upstream/store.ts';
import { type MaintenanceWatch, pausedError } from './maintenance.ts';

/** Runs a call, unless it must not be sent: then it rejects at once with a StoreError of kind `paused`. */
export type Gate = <T>(call: () => Promise<T>) => Promise<T>;

export function maintenanceGate(maintenance: MaintenanceWatch, clock: Clock): Gate {
  return async (call) => {
    const current = maintenance.current();
    if (current !== null) throw pausedError(current, clock);
    return await call();
  };
}

/** The store behind the gate. It goes innermost, so that no call that waited for its turn slips through. */
export function gated(send: Fetch, gate: Gate): Fetch {
  return (resource, params, options) => gate(() => send(resource, params, options));
}
