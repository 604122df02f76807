/**
 * What is mostly at hand and must be waited for otherwise. A promise costs a turn of the microtask queue and some garbage
 * even where there was nothing to wait for, and a request that is answered from memory passes a dozen such places.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Goes on with the value, at once where it is there. What `proceed` throws is thrown or rejected with, accordingly. */
export function whenThere<T, R>(value: MaybePromise<T>, proceed: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(proceed) : proceed(value);
}
