/** Calls to the admin interface: the token of this tab, a deadline, and errors in plain words. */
import { readFailure } from './answers.js';
import { Store } from './store.js';

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
 * @typedef {object} Request
 * @property {'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} [method]
 * @property {object} [body]
 */

/**
 * Rejects with an Error whose message is for the person in front of the page.
 * @template T
 * @param {string} path Relative to the page.
 * @param {import('./read.js').Reader<T>} read
 * @param {Request} [request]
 * @returns {Promise<T>}
 */
export async function call(path, read, request = {}) {
  const response = await send(path, request);
  /** @type {unknown} */
  const content = await response.json().catch(() => null);
  return read(content, path);
}

/**
 * The same for an answer that is not JSON.
 * @param {string} path
 */
export async function callText(path) {
  return (await send(path, {})).text();
}

/**
 * @param {string} path
 * @param {Request} request
 */
async function send(path, { method = 'GET', body }) {
  const headers = new Headers();
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token !== null) headers.set('Authorization', `Bearer ${bytesOf(token)}`);
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const signal = AbortSignal.timeout(DEADLINE_MS);
  let response;
  try {
    response = await fetch(path, { method, headers, ...content, cache: 'no-store', redirect: 'error', signal });
  } catch (error) {
    const reason = signal.aborted ? `did not answer within ${DEADLINE_MS / 1000} s` : 'can’t be reached';
    const doubt = method === 'GET' ? '' : ' It is not known whether the change was made: look before you repeat it.';
    throw new Error(`The gateway ${reason}.${doubt}`, { cause: error });
  }
  // Readiness uses 503 to say that the process isn't ready; its body is an answer all the same.
  if (response.ok || (response.status === 503 && path === 'readyz')) return response;
  if (response.status === 401) askForToken(token);
  throw new Error(await reasonOf(response));
}

/** @param {string | null} refused The token of the call; another one may have been entered meanwhile. */
function askForToken(refused) {
  if (refused !== sessionStorage.getItem(TOKEN_KEY)) return;
  sessionStorage.removeItem(TOKEN_KEY);
  session.set({ isOpen: false, refusal: refused === null ? '' : 'The gateway does not accept this token.' });
}

/** @param {Response} response */
async function reasonOf(response) {
  try {
    return readFailure(await response.json(), 'error').error.message;
  } catch {
    return `The answer was status ${response.status} without a reason. See the gateway’s log.`;
  }
}

/**
 * Header values are bytes: a token with letters outside ASCII is sent as UTF-8, as other clients do.
 * @param {string} token
 */
function bytesOf(token) {
  return Array.from(new TextEncoder().encode(token), (byte) => String.fromCharCode(byte)).join('');
}

/**
 * The message to show for anything that was thrown.
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
