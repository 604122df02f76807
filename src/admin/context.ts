/** What the layers of an admin request share. */
import type Koa from 'koa';

export interface AdminState {
  /** The name of the caller's token; `anonymous` where the listener has no tokens, null before the caller is known. */
  who: string | null;
  /** The matched endpoint's path template; null before routing and where nothing matched. */
  route: string | null;
}

export type AdminContext = Koa.ParameterizedContext<AdminState>;
export type AdminMiddleware = Koa.Middleware<AdminState>;

/** Where refusals, failures and changes are told; a pino logger is one. */
export interface AdminLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Who makes the change, for the audit. Throws where a route was built in front of the authentication. */
export function callerOf(ctx: { readonly state: AdminState }): string {
  if (ctx.state.who === null)
    throw new Error('A route asks who is calling but no authentication stands in front of it');
  return ctx.state.who;
}
