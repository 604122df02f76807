/** `GET /v1/key` and `GET /v2/key`: what a key may do and what is left of its quota, shown to its holder at no cost (K8a). */
import { currentKeyBodySchema, toCurrentKeyBody } from '../domain/current-key.ts';
import { resetSeconds } from '../quota/headers.ts';
import type { WindowState } from '../quota/limiter.ts';
import type { Route } from './route.ts';
import { apiKeyOf, type Context } from './state.ts';

/** What both surfaces declare. Any active key may ask, whatever its scopes: this is how to find them out. */
export const currentKeyRoute = {
  path: '/key',
  scope: null,
  quota: 'none',
  forbidden: 'This API key may not be used: it is deprecated, revoked or expired.',
  notFound: 'There is no such key.',
  parseRequest: null,
  summary: 'Get the key in use',
  description:
    'The API key that the request is made with: its scopes, workspaces and expiry, and both windows of its quota. It costs nothing: the request counts in neither window, and is answered even if the quota is used up; it has a limit of its own, 60 a minute.',
  parameters: [],
  failures: [400, 401, 403, 429, 500],
  response: currentKeyBodySchema,
  success: 'The key, and how its quota stands.',
} satisfies Partial<Route>;

export function respondWithKey(ctx: Context): void {
  const { usage } = ctx.state;
  if (usage === null) throw new Error('A route shows the usage of a quota that nobody looked up.');
  ctx.set('Cache-Control', 'no-store');
  ctx.body = toCurrentKeyBody(apiKeyOf(ctx), { minute: windowOf(usage.minute), hour: windowOf(usage.hour) });
}

function windowOf(state: WindowState): { limit: number; remaining: number; reset: number } {
  return { limit: state.limit, remaining: state.remaining, reset: resetSeconds(state) };
}
