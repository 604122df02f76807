/**
 * What is mostly at hand and must be waited for otherwise. A promise costs a turn of the microtask queue and some garbage
 * even where there was nothing to wait for, and a request that is answered from memory passes a dozen such places.
 */
export type MaybePromise<T> = T | Promise<T>;
