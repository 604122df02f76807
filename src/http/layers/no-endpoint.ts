/** The end of the way for a request that matched no endpoint: 405 where the path has one, else 404 (A2). */
import { Problem } from '../problem.ts';
import type { Context } from '../state.ts';

/** `hasPath`: whether any endpoint has the request's path. */
export function noEndpoint(ctx: Context, hasPath: boolean): Problem {
  if (hasPath) return methodNotAllowed(ctx.method);
  return new Problem(404, 'There is no such address in this API. GET /docs describes it.');
}

export function methodNotAllowed(method: string): Problem {
  return new Problem(405, `The method ${method} is not allowed here; use GET or HEAD.`, {
    headers: { Allow: 'GET, HEAD' },
  });
}
