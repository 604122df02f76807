/** What the middlewares of an admin request leave in `ctx.state`, typed once. */
import type { RouterContext } from '@koa/router';
import type Koa from 'koa';

export interface AdminState {
  /** The name of the caller's token; `anonymous` if the listener has no tokens, null before authentication. */
  who: string | null;
  /** The path template of the matched endpoint; null if none matched. */
  route: string | null;
}

export type AdminContext = Koa.ParameterizedContext<AdminState>;
export type AdminMiddleware = Koa.Middleware<AdminState>;
/** Behind a router, which adds `ctx.params`. */
export type EndpointContext = RouterContext<AdminState>;

/** Where refusals, failures and changes are logged; a pino logger is one. */
export interface AdminLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Who makes the change, for the audit. Throws if a route has no authentication in front of it. */
export function callerOf(ctx: { readonly state: AdminState }): string {
  if (ctx.state.who === null) throw new Error('A route reads the caller without authentication in front of it.');
  return ctx.state.who;
}
