/** The end of the way for a request that no route took: 405 if a route has its path, else 404 (A2). */
import type { RouterContext } from '@koa/router';
import { methodNotAllowed, Problem } from '../problem.ts';
import type { Middleware } from '../state.ts';

export function notFound(): Middleware<Partial<Pick<RouterContext, 'matched'>>> {
  return (ctx) => {
    if ((ctx.matched?.length ?? 0) > 0) throw methodNotAllowed(ctx.method);
    throw new Problem('path_unknown', 'There is no such address in this API. GET /docs describes it.');
  };
}
