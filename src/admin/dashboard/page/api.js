/** Calls to the gateway's admin interface: with the token where one is needed, with a deadline, and errors in plain words. */
import { readFailure } from './shapes.js';

const TOKEN_KEY = 'evalgate.admin-token';
const DEADLINE_MS = 8000;

/** A call that failed; its message is for the person in front of the page. */
export class CallError extends Error {
  /**
   * @param {string} message
   * @param {number} status 0 where no answer came.
   */
  constructor(message, status) {
    super(message);
    this.name = 'CallError';
    this.status = status;
  }
}

/**
 * @typedef {object} Call
 * @property {'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} [method]
 * @property {object} [body]
 */

export class Api {
  /** Whether calls make sense: not while the gateway waits for a token. */
  isOpen = true;
  /** @type {(reason: string) => void} */
  #refused;

  /** @param {(reason: string) => void} refused Told when the gateway wants a token, or another one. */
  constructor(refused) {
    this.#refused = refused;
  }

  /** Whether a token is kept; only for as long as the tab is open. */
  get hasToken() {
    return sessionStorage.getItem(TOKEN_KEY) !== null;
  }

  /** @param {string} token */
  signIn(token) {
    sessionStorage.setItem(TOKEN_KEY, token);
    this.isOpen = true;
  }

  signOut() {
    sessionStorage.removeItem(TOKEN_KEY);
  }

  /**
   * @template T
   * @param {string} path Relative to the page.
   * @param {import('./read.js').Reader<T>} read
   * @param {Call} [call]
   * @returns {Promise<T>} Rejects with CallError or ShapeError.
   */
  async call(path, read, { method = 'GET', body } = {}) {
    const answer = await this.#send(path, method, body);
    const content = await contentOf(answer);
    // Readiness tells by 503 that it isn't; its body is the answer all the same.
    if (answer.ok || (answer.status === 503 && path === 'readyz')) return read(content, path);
    const message = messageOf(content, answer.status);
    if (answer.status === 401) {
      const given = this.hasToken;
      this.isOpen = false;
      this.signOut();
      this.#refused(given ? 'The gateway does not take this token.' : '');
    }
    throw new CallError(message, answer.status);
  }

  /**
   * @param {string} path
   * @param {string} method
   * @param {object | undefined} body
   * @returns {Promise<Response>}
   */
  async #send(path, method, body) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = new Headers();
    if (token !== null) headers.set('Authorization', `Bearer ${latin1(token)}`);
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    try {
      return await fetch(path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        cache: 'no-store',
        redirect: 'error',
        signal: AbortSignal.timeout(DEADLINE_MS),
      });
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === 'TimeoutError';
      const change = method === 'GET' ? '' : ' Whether the change was made is not known: look before you repeat it.';
      throw new CallError(
        (isLate
          ? `The gateway gave no answer within ${DEADLINE_MS / 1000} s.`
          : 'The gateway can’t be reached from here: it is down, or the connection to it is.') + change,
        0,
      );
    }
  }
}

/**
 * A header's characters are bytes: a token with other letters than ASCII's goes out as its UTF-8, as other clients send it.
 * @param {string} token
 */
function latin1(token) {
  return Array.from(new TextEncoder().encode(token), (byte) => String.fromCharCode(byte)).join('');
}

/**
 * @param {Response} answer
 * @returns {Promise<unknown>}
 */
async function contentOf(answer) {
  try {
    return await answer.json();
  } catch {
    return null;
  }
}

/**
 * @param {unknown} content
 * @param {number} status
 */
function messageOf(content, status) {
  try {
    return readFailure(content, 'error').error.message;
  } catch {
    return `The answer was status ${status} without a reason. The gateway’s log tells more.`;
  }
}

/**
 * What to show of anything that was thrown.
 * @param {unknown} error
 */
export function wordsOf(error) {
  return error instanceof Error ? error.message : String(error);
}
