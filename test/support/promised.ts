import type { MaybePromise } from '../../src/maybe-promise.ts';

/** What it comes to, as a promise: also of what is there at once, and of what it throws at once. */
export async function promised<T>(make: () => MaybePromise<T>): Promise<T> {
  return await make();
}
