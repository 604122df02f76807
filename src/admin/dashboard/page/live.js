/** The answers that the page shows, fetched again and again while it is on the screen. */
import { call, messageOf, session } from './api.js';
import { Store } from './store.js';

const OFTEN_MS = 2000;
/** For what changes slowly or by hand. It is fetched at once after each change made on this page. */
const SELDOM_MS = 10_000;
const TICK_MS = 250;

/**
 * The last answer, when it was asked for (Unix milliseconds), and why the last call failed, if it did.
 * @template T
 * @typedef {{ readonly data: T | null, readonly atMs: number, readonly error: string | null }} Answer
 */

/**
 * @template T
 * @extends {Store<Answer<T>>}
 */
export class Live extends Store {
  #everyMs;
  #load;
  #startedMs = 0;
  /** @type {Promise<void> | null} */
  #flight = null;

  /**
   * @param {number} everyMs
   * @param {() => Promise<T>} load
   */
  constructor(everyMs, load) {
    super({ data: null, atMs: 0, error: null });
    this.#everyMs = everyMs;
    this.#load = load;
  }

  /**
   * Fetches if it is watched and due. After a failure it is due more often, so that the page recovers with the gateway.
   * @param {number} nowMs
   */
  tick(nowMs) {
    const everyMs = this.value.error === null ? this.#everyMs : OFTEN_MS;
    if (this.isWatched && this.#flight === null && nowMs - this.#startedMs >= everyMs) void this.refresh();
  }

  /** Fetches now. A call in flight may be older than what was just changed, so it is waited for first. */
  async refresh() {
    while (this.#flight !== null) await this.#flight;
    if (!session.value.isOpen) return;
    this.#flight = this.#fetch();
    await this.#flight;
    this.#flight = null;
  }

  async #fetch() {
    const atMs = Date.now();
    this.#startedMs = atMs;
    try {
      this.set({ data: await this.#load(), atMs, error: null });
    } catch (error) {
      // While the page asks for a token this is no news, and due again as soon as there is one.
      if (session.value.isOpen) this.set({ ...this.value, error: messageOf(error) });
      else this.#startedMs = 0;
    }
  }
}

/** Walks the pages, if there is more than one. */
async function loadKeys() {
  /** @type {import('./api.js').Answer<'listKeys'>['keys'][number][]} */
  const keys = [];
  let query = {};
  for (;;) {
    const { keys: page, nextCursor } = await call('listKeys', { query: { limit: '1000', ...query } });
    keys.push(...page);
    // An empty page ends the walk too, whatever it says of a next one.
    if (nextCursor === null || page.length === 0) return keys;
    query = { cursor: nextCursor };
  }
}

/**
 * A what-if of several classes at once: the fresh times that predictions suppose, by class.
 * @type {Store<Record<string, string>>}
 */
export const asIf = new Store({});

export const live = {
  readiness: new Live(OFTEN_MS, () => call('readyz')),
  maintenance: new Live(OFTEN_MS, () => call('showMaintenance')),
  fleet: new Live(OFTEN_MS, () => call('fleet')),
  who: new Live(60_000, () => call('whoAmI')),
  history: new Live(OFTEN_MS, () => call('history')),
  day: new Live(SELDOM_MS, () => call('history', { query: { span: 'day' } })),
  health: new Live(OFTEN_MS, () => call('health')),
  stats: new Live(SELDOM_MS, () => call('cacheStats')),
  advice: new Live(OFTEN_MS, () => call('advice', { query: asIf.value })),
  ttls: new Live(SELDOM_MS, async () => (await call('listTtls')).classes),
  top: new Live(SELDOM_MS, () => call('cacheTop', { query: { limit: '10' } })),
  keys: new Live(SELDOM_MS, loadKeys),
  keyUse: new Live(SELDOM_MS, () => call('keyUse')),
  audit: new Live(SELDOM_MS, () => call('audit')),
};

/** Fetches everything on the screen now: after a change made here, and after signing in. */
export async function refreshAll() {
  const watched = Object.values(live).filter((one) => one.isWatched);
  await Promise.all(watched.map((one) => one.refresh()));
}

function tick() {
  if (document.hidden || !session.value.isOpen) return;
  for (const one of Object.values(live)) one.tick(Date.now());
}

/** Nothing is fetched while the tab is hidden, and all that is due when it is seen again. */
export function startPolling() {
  setInterval(tick, TICK_MS);
  document.addEventListener('visibilitychange', tick);
}

/**
 * Says something to a screen reader without moving the focus.
 * @param {string} message
 */
export function announce(message) {
  const region = document.getElementById('announcements');
  if (region !== null) region.textContent = message;
}

/**
 * Makes a change, announces it, and shows everything on the screen as it is then.
 * @template {import('./api.js').Route} R
 * @param {R} route
 * @param {NonNullable<Parameters<typeof call>[1]>} request
 * @param {string | ((answer: import('./api.js').Answer<R>) => string)} said
 */
export async function change(route, request, said) {
  const answer = await call(route, request);
  announce(typeof said === 'string' ? said : said(answer));
  await refreshAll();
  return answer;
}
