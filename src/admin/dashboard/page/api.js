/** Calls to the admin interface: the token of this tab, a deadline, and errors in plain words. */
import { ROUTES } from './declared.js';
import { Store } from './store.js';

/** @typedef {typeof ROUTES} Declared */
/** @typedef {keyof Declared} Route */
/**
 * The answer of an endpoint, as the gateway declares it.
 * @template {Route} R
 * @typedef {import('../../../operations/api.ts').AnswerOf<Declared[R]>} Answer
 */

const TOKEN_KEY = 'evalgate.admin-token';
const DEADLINE_MS = 5000;

/**
 * Whether calls make sense now: not while the gateway waits for a token. `refusal` says why it asks again.
 * @type {Store<{ readonly isOpen: boolean, readonly refusal: string }>}
 */
export const session = new Store({ isOpen: true, refusal: '' });

/** The token is kept in this tab only, until it is closed. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN_KEY) !== null;
}

/** @param {string} token */
export function signIn(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
  session.set({ isOpen: true, refusal: '' });
}

/** Reloads the page, so that nothing that was read with the token stays behind. */
export function signOut() {
  sessionStorage.removeItem(TOKEN_KEY);
  location.reload();
}

/**
 * `id`: of the key or class in the path. Rejects with an Error whose message is for the person in front of the page.
 * @template {Route} R
 * @param {R} route
 * @param {{ readonly id?: string, readonly query?: Record<string, string>, readonly body?: object }} [request]
 * @returns {Promise<Answer<R>>}
 */
export async function call(route, { id = '', query = {}, body } = {}) {
  const { method, path } = ROUTES[route];
  // Relative, so that the page works behind a prefix.
  const url = new URL(path.slice(1).replace(/\{\w+\}/, encodeURIComponent(id)), location.href);
  url.search = String(new URLSearchParams(query));
  const headers = new Headers();
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token !== null) headers.set('Authorization', `Bearer ${token}`);
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const signal = AbortSignal.timeout(DEADLINE_MS);
  let response;
  try {
    response = await fetch(url, { method, headers, ...content, cache: 'no-store', redirect: 'error', signal });
  } catch (error) {
    const reason = signal.aborted ? `did not answer within ${DEADLINE_MS / 1000} s` : 'can’t be reached';
    const doubt = method === 'GET' ? '' : ' It is not known whether the change was made: look before you repeat it.';
    throw new Error(`The gateway ${reason}.${doubt}`, { cause: error });
  }
  if (response.status === 401) askForToken(token);
  const answer = await answerOf(route, response);
  // Readiness uses 503 to say that the process isn't ready; its body is an answer all the same.
  const isGood = response.ok || (response.status === 503 && route === 'readyz');
  if (isGood && answer !== null) return answer;
  throw new Error(
    answer?.error?.message ?? `The answer was status ${response.status} without a reason. See the gateway’s log.`,
  );
}

/**
 * Not checked: the page comes from the same gateway, and a panel that can't draw its answer says so. Null without JSON.
 * @template {Route} R
 * @param {R} _route
 * @param {Response} response
 * @returns {Promise<Answer<R> & { readonly error?: { readonly message: string } } | null>}
 */
function answerOf(_route, response) {
  return response.json().catch(() => null);
}

/** @param {string | null} refused The token of the call; another one may have been entered meanwhile. */
function askForToken(refused) {
  if (refused !== sessionStorage.getItem(TOKEN_KEY)) return;
  sessionStorage.removeItem(TOKEN_KEY);
  session.set({ isOpen: false, refusal: refused === null ? '' : 'The gateway does not accept this token.' });
}

/**
 * The message to show for anything that was thrown.
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
