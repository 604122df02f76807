/** Refuses requests beyond what a process works on at a time, and beyond one key's share of that (S2: shed load is 500). */
import { addressKey } from '../../keys/client-address.ts';
import { ErrorText, Problem, refuse } from '../problem.ts';
import { Slots } from '../slots.ts';
import type { Middleware, PublicAppOptions } from '../state.ts';

/** Soon: a request in progress takes milliseconds, or at most as long as the store may. */
const RETRY_AFTER_SECONDS = 1;
const OVERLOADED = overloaded('The gateway has as many requests under way as it can serve. Try again later.');
const KEY_OVERLOADED = overloaded(
  'This API key has as many requests under way as the gateway serves for one key. Try again later.',
);

/**
 * Before anything is done for a request. It holds its slot until its response is handed over to be sent, or its client has
 * left. A client that is slow to take its response costs no work, and its connection is bounded by the server.
 */
export function loadShedding({ capacity, access, hooks }: PublicAppOptions): Middleware {
  const slots = new Slots(capacity.maxInFlight, capacity.answerMemory, hooks.onShed);
  return (ctx, next) => {
    ctx.state.slot = slots.enter(addressKey(access.addressOf(ctx)));
    return ctx.state.slot === null ? refuse(ctx.state, OVERLOADED) : next();
  };
}

/**
 * Once the key is known (K8: its request counts; R2: the answer has its limits): it leaves the others their share of the slots.
 */
export function keyShedding(): Middleware {
  return ({ state }, next) => {
    const { apiKey, slot } = state;
    return apiKey === null || slot === null || slot.assign(apiKey.keyId) ? next() : refuse(state, KEY_OVERLOADED);
  };
}

function overloaded(text: string): Problem {
  return new Problem('overloaded', new ErrorText(text), { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
}
