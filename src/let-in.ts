/** Before a server stops listening: what clients have sent by then must not be lost. */
import type { Server } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A turn of the event loop accepts a connection, the next one reads from it. */
const QUIET_TURNS = 3;
const AT_MOST_MS = 2000;

/**
 * Resolves once all connections that wait at the system have been accepted, and the requests on them begun. The system
 * resets those that are left when a server stops listening, and Node takes a connection that nothing was read from yet
 * for an idle one. On a busy machine many can wait, as the process is late for them and for its own timers alike.
 */
export async function letIn(server: Server): Promise<void> {
  const untilMs = performance.now() + AT_MOST_MS;
  let hasArrived = false;
  const notice = (): void => {
    hasArrived = true;
  };
  server.on('connection', notice).on('request', notice);
  for (let quiet = 0; quiet < QUIET_TURNS && performance.now() < untilMs;) {
    hasArrived = false;
    await nextTurn();
    quiet = hasArrived ? 0 : quiet + 1;
  }
  server.off('connection', notice).off('request', notice);
}
