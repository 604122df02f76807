/** Clients that go away before they are answered: what only they would have had is not made. */
import { type MaybePromise, whenThere } from '../maybe-promise.ts';
import type { Context } from './state.ts';

export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';

  constructor() {
    super('the client went away before its answer was made');
  }
}

/** Whether the connection that the answer would be sent on is closed. */
export function isGone(ctx: Context): boolean {
  // A response that waits behind another on its connection has no socket yet; its request has.
  return ctx.req.socket.destroyed;
}

/** Ends the request's way where nobody is left to be answered. Throws a ClientGoneError. */
export function throwIfGone(ctx: Context): void {
  if (isGone(ctx)) throw new ClientGoneError();
}

/** Goes on with what the work comes to, where its client has waited for it. Throws or rejects with a ClientGoneError. */
export function whileThere<T, R>(
  ctx: Context,
  work: MaybePromise<T>,
  next: (result: T) => MaybePromise<R>,
): MaybePromise<R> {
  return whenThere(work, (result) => {
    throwIfGone(ctx);
    return next(result);
  });
}
