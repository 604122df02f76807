/** The end of the way for a request that matched no endpoint: 405 where the path has one, else 404 (A2). */
import { Problem } from '../problem.ts';
import type { Middleware } from '../state.ts';

/** `hasPath` tells whether any endpoint has that path. */
export function noEndpoint(hasPath: (path: string) => boolean): Middleware {
  return (ctx) => {
    if (hasPath(ctx.path)) throw methodNotAllowed(ctx.method);
    throw new Problem(404, 'There is no such address in this API. GET /docs describes it.');
  };
}

export function methodNotAllowed(method: string): Problem {
  return new Problem(405, `The method ${method} is not allowed here; use GET or HEAD.`, {
    headers: { Allow: 'GET, HEAD' },
  });
}
