/** Refuses requests beyond what a process works on at a time, before anything is done for them (S2: shed load is 500). */
import { Problem } from '../problem.ts';
import type { Middleware, PublicAppOptions } from '../state.ts';

/** Soon: a request in progress takes milliseconds, or at most as long as the store may. */
const RETRY_AFTER_SECONDS = 1;
const OVERLOADED = 'The gateway has as many requests under way as it can serve. Try again later.';

/**
 * A request counts until its response is handed over to be sent, or its client has left. A client that is slow to take its
 * response costs no work, and its connection is bounded by the server.
 */
export function loadShedding({ maxInFlight, hooks }: PublicAppOptions): Middleware {
  let inFlight = 0;
  return async (ctx, next) => {
    if (inFlight >= maxInFlight) {
      hooks.onShed();
      throw new Problem('overloaded', OVERLOADED, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
    }
    inFlight += 1;
    let isCounted = true;
    const leave = (): void => {
      if (isCounted) inFlight -= 1;
      isCounted = false;
    };
    ctx.res.once('close', leave);
    try {
      await next();
    } finally {
      leave();
    }
  };
}
