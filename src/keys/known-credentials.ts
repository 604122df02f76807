/**
 * Credentials that were good a moment ago, and the hashes of their keys, so that not each request needs a digest of its
 * own. Connections of a proxy bring another key with each request, so they are no connection's.
 */
import type { KeyHash } from './key.ts';

/** Of each generation. */
const MOST_CREDENTIALS = 2048;
/** Of one: with white space around it, a good key could be written in as many ways, and as long, as somebody likes. */
const MOST_CHARACTERS = 256;
const GENERATION_MS = 60_000;

/**
 * Two generations: what wasn't used in one of them goes with the next. So a key is kept in the clear for one to two minutes
 * after its last use, on a process that is asked anything at all, and there are never more than twice `most` of them.
 */
export class KnownCredentials {
  readonly #most: number;
  #current = new Map<string, KeyHash>();
  #previous = new Map<string, KeyHash>();
  #sinceMs = 0;

  constructor(most: number = MOST_CREDENTIALS) {
    this.#most = most;
  }

  get size(): number {
    return this.#current.size + this.#previous.size;
  }

  /** The hash of the key in that `Authorization` value; undefined where it must be taken out and hashed. */
  hashOf(authorization: string, nowMs: number): KeyHash | undefined {
    this.#age(nowMs);
    const known = this.#current.get(authorization);
    if (known !== undefined) return known;
    const older = this.#previous.get(authorization);
    if (older === undefined) return undefined;
    this.#previous.delete(authorization);
    this.remember(authorization, older, nowMs);
    return older;
  }

  /** For credentials whose key is known to have been issued: nobody else's are worth a place. */
  remember(authorization: string, hash: KeyHash, nowMs: number): void {
    if (authorization.length > MOST_CHARACTERS) return;
    this.#age(nowMs);
    if (this.#current.size >= this.#most) this.#turn(nowMs);
    this.#current.set(authorization, hash);
  }

  /** A clock that goes back makes all of it old: nothing is kept for longer than it should be. */
  #age(nowMs: number): void {
    const ageMs = Math.abs(nowMs - this.#sinceMs);
    if (ageMs < GENERATION_MS) return;
    if (ageMs >= 2 * GENERATION_MS) this.#current = new Map();
    this.#turn(nowMs);
  }

  #turn(nowMs: number): void {
    this.#previous = this.#current;
    this.#current = new Map();
    this.#sinceMs = nowMs;
  }
}
