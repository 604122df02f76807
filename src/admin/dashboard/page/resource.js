/** What the page shows of the gateway, asked for again and again while somebody can see it. */
import { wordsOf } from './api.js';

/** Older than this, what is shown is marked as stale. */
export const STALE_AFTER_MS = 5000;

/**
 * One answer of the gateway and what is known of its age.
 * @template T
 */
export class Resource {
  /** @type {T | null} */
  value = null;
  /** When `value` was asked for, Unix milliseconds. */
  atMs = 0;
  /** Why the last call failed; null where it did not.
   * @type {string | null}
   */
  error = null;
  #startedMs = 0;
  /** @type {Promise<void> | null} */
  #flight = null;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  #api;
  #path;
  #read;
  #everyMs;

  /**
   * @param {import('./api.js').Api} api
   * @param {{ readonly path: string, readonly read: import('./read.js').Reader<T>, readonly everyMs: number }} options
   */
  constructor(api, { path, read, everyMs }) {
    this.#api = api;
    this.#path = path;
    this.#read = read;
    this.#everyMs = everyMs;
  }

  /**
   * Whether what is shown is so old that nobody should rely on it. What is only asked for every so often may be as old
   * as that, and 5 s more.
   * @param {number} nowMs
   */
  isStale(nowMs) {
    const isFrequent = this.#everyMs < STALE_AFTER_MS;
    return this.value !== null && nowMs - this.atMs > STALE_AFTER_MS + (isFrequent ? 0 : this.#everyMs);
  }

  /** @param {() => void} listener Called after each answer, good or bad. */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  /**
   * Asks where it is time to.
   * @param {number} nowMs
   */
  tick(nowMs) {
    if (this.#flight === null && nowMs - this.#startedMs >= this.#everyMs) void this.refresh();
  }

  /** Asks now. A call that is on its way already may be older than what was just changed: it is waited for first. */
  async refresh() {
    while (this.#flight !== null) await this.#flight;
    if (!this.#api.isOpen) return;
    this.#flight = this.#ask();
    try {
      await this.#flight;
    } finally {
      this.#flight = null;
    }
  }

  async #ask() {
    const startedMs = Date.now();
    this.#startedMs = startedMs;
    try {
      this.value = await this.#api.call(this.#path, this.#read);
      this.atMs = startedMs;
      this.error = null;
    } catch (error) {
      this.error = wordsOf(error);
    }
    if (this.#api.isOpen) for (const listener of this.#listeners) listener();
  }
}

/**
 * Drives resources: none is asked while the tab is hidden, all at once when it is seen again.
 * @param {readonly Pick<Resource<unknown>, 'tick'>[]} resources
 * @param {import('./api.js').Api} api
 */
export function poll(resources, api) {
  const tick = () => {
    if (document.hidden || !api.isOpen) return;
    const nowMs = Date.now();
    for (const resource of resources) resource.tick(nowMs);
  };
  setInterval(tick, 250);
  document.addEventListener('visibilitychange', tick);
  tick();
  return tick;
}
