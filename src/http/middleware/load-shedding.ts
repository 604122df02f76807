/** Refuses requests beyond what a process works on at a time, before anything is done for them (S2). */
import { Problem } from '../problem.ts';
import type { Middleware } from '../state.ts';

export interface LoadSheddingOptions {
  /** Most requests in progress at a time. */
  readonly maxInFlight: number;
  /** Called for each request that is refused. */
  readonly onShed: () => void;
}

/** Soon: a request in progress takes milliseconds, or at most as long as the store may. */
const RETRY_AFTER_SECONDS = 1;
const OVERLOADED = 'The gateway has as many requests under way as it can serve. Try again later.';

export class OverloadedError extends Problem {
  constructor() {
    super('overloaded', OVERLOADED, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
  }
}

/**
 * A request counts until its response is handed over to be sent, or its client has left. A client that is slow to take its
 * response costs no work, and its connection is bounded by the server.
 */
export function loadShedding({ maxInFlight, onShed }: LoadSheddingOptions): Middleware {
  let inFlight = 0;
  return async (ctx, next) => {
    if (inFlight >= maxInFlight) {
      onShed();
      throw new OverloadedError();
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
