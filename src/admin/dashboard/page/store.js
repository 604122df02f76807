/** A value that components follow. */
import { useEffect, useState } from 'preact/hooks';

/** @template T */
export class Store {
  /** @type {Set<() => void>} */
  #listeners = new Set();

  /** @param {T} value */
  constructor(value) {
    this.value = value;
  }

  get isWatched() {
    return this.#listeners.size > 0;
  }

  /** @param {T} value */
  set(value) {
    this.value = value;
    for (const listener of this.#listeners) listener();
  }

  /**
   * @param {() => void} listener
   * @returns {() => void} Ends it.
   */
  watch(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/**
 * The store's value, drawn anew with each change.
 * @template T
 * @param {Store<T>} store
 * @returns {T}
 */
export function useStore(store) {
  const [, redraw] = useState({});
  useEffect(() => store.watch(() => redraw({})), [store]);
  return store.value;
}
