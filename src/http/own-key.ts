/** GET /v1/key and GET /v2/key: what a key is allowed, and what is left of its quota, told to its holder at no cost. */
import { toOwnKeyBody } from '../domain/own-key.ts';
import { resetSeconds } from '../quota/headers.ts';
import type { WindowState } from '../quota/quota.ts';
import { type Answer, jsonAnswer, NO_STORE } from './answer.ts';
import { type Context, keyOf } from './state.ts';

/** What both surfaces say of the endpoint. Any active key may ask, whatever its scopes: it is how to find them out. */
export const OWN_KEY = {
  path: '/key',
  forbidden: 'This API key may not be used: it is deprecated, revoked or expired.',
  notFound: 'There is no such key.',
  authorize: () => undefined,
  asks: null,
  isCounted: false,
} as const;

export function answerOwnKey(ctx: Context): Answer {
  const { standing } = ctx.state;
  if (standing === null) throw new Error('A route shows the quota of a key but nobody has looked at it');
  const body = toOwnKeyBody(keyOf(ctx), { minute: windowOf(standing.minute), hour: windowOf(standing.hour) });
  return jsonAnswer(200, NO_STORE, body);
}

function windowOf(state: WindowState): { limit: number; remaining: number; reset: number } {
  return { limit: state.limit, remaining: state.remaining, reset: resetSeconds(state) };
}
