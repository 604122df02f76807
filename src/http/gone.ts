/** Clients that go away before they are answered: what only they would have had is not made. */
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

/** What the work comes to, where its client has waited for it. Rejects with a ClientGoneError otherwise. */
export async function whileThere<T>(ctx: Context, work: Promise<T>): Promise<T> {
  const result = await work;
  throwIfGone(ctx);
  return result;
}
