/**
 * From an `Authorization` header to an active key (K4: no valid credential is 401; K9: failures are counted per address; K11: a
 * key may be bound to addresses).
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import { FairQueue } from '../shares/shares.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { addressKey, isInSubnets } from './client-address.ts';
import { type ApiKey, isActive, type KeyHash, RegistryUnavailableError } from './key.ts';
import type { KeyLookup } from './registry.ts';
import type { RequestLimiter } from './request-limiter.ts';
import { hashToken, isWellFormed } from './token.ts';

/**
 * Why a request has no valid credential:
 * - `missing`: no header, or an empty one
 * - `not-bearer`: another scheme
 * - `empty`: the scheme without a token
 * - `malformed`: not a token, or one with a wrong checksum (K1: refused without a look-up)
 * - `unknown`: no such key was issued
 * - `too-many-failures`: the address has used up its failed attempts
 */
export type AuthFailure = 'missing' | 'not-bearer' | 'empty' | 'malformed' | 'unknown' | 'too-many-failures';

export type AuthResult =
  | { readonly kind: 'active'; readonly key: ApiKey }
  /** Deprecated, revoked or expired. Counts neither as a use nor as a failure. */
  | { readonly kind: 'inactive'; readonly key: ApiKey }
  /** Active, and bound to other addresses (K11). No use, but a failure of the address. */
  | { readonly kind: 'address-forbidden'; readonly key: ApiKey }
  /** No valid credential. `retryAfterSeconds` is a number only with `too-many-failures`. */
  | {
      readonly kind: 'unauthenticated';
      readonly reason: AuthFailure;
      readonly retryAfterSeconds: number | null;
      /** The key, if it was good within the hour: then it was lost here, and its holder has done nothing wrong. */
      readonly formerKeyId: string | null;
    }
  /** The key cannot be checked at the moment. `cause` is private. */
  | { readonly kind: 'unavailable'; readonly cause: RegistryUnavailableError };

export interface Credentials {
  readonly authorization: string | undefined;
  /** The client's address. Called only if there is no valid token, or its key must be looked up or is bound to addresses. */
  readonly address: () => string;
}

export interface AuthenticatorOptions {
  readonly registry: KeyLookup;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Failed authentications per address. */
  readonly failures: RequestLimiter;
}

/**
 * Keys at a time that are looked up without being known to be issued, and at most 8 of one address: of many at once not all
 * pass before the first has failed, and an address that tries out keys takes no turn from another.
 */
const LOOK_UPS = { capacity: 40, reservePercent: 80, maxWaiting: 2000 };
const LOOK_UP_WAIT_MS = 10_000;
/** Keys that were good lately are remembered for so long, so many of them. */
const GOOD_FOR_MS = 3_600_000;
const MAX_GOOD_KEYS = 10_000;
/** How exactly it is known when a key was good last. */
const GOOD_STEP_MS = 60_000;

/**
 * An address that has used up its failures gets no further look-up until the minute is over. Keys that are known to be
 * issued are served from it all the same (K9: failures are counted per address, and a look-up that succeeds was none), unless
 * they are bound to other addresses (K11).
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #lookUps: FairQueue;
  readonly #good = new LRUCache<KeyHash, { readonly keyId: string; readonly atMs: number }>(atMost(MAX_GOOD_KEYS));

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#lookUps = new FairQueue(LOOK_UPS, options);
  }

  /** At once for a key that this process knows. */
  authenticate({ authorization, address }: Credentials): AuthResult | Promise<AuthResult> {
    const { registry } = this.#options;
    const bearer = parseBearer(authorization);
    if ('fault' in bearer) return this.#countFailure(bearer.fault, addressKey(address()));
    const hash = hashToken(bearer.token);
    const known = registry.peek(hash);
    if (known !== undefined) return this.#accept(known, address);
    // The hash of an issued key cannot be guessed, so its look-up will not be a failure.
    const look = registry.isIssued(hash) ? this.#find(hash, address, false) : this.#lookUp(hash, address);
    return this.#withFormerKey(hash, look);
  }

  /** The key as it is now: at once if this process knows it. One that is gone was lost, which is nobody's failure. */
  renew({ hash }: ApiKey, address: () => string): AuthResult | Promise<AuthResult> {
    const known = this.#options.registry.peek(hash);
    if (known !== undefined) return this.#accept(known, address);
    return this.#withFormerKey(hash, this.#find(hash, address, false));
  }

  /** Looks up a key that may never have been issued, once it is the address's turn. */
  async #lookUp(hash: KeyHash, address: () => string): Promise<AuthResult> {
    const { registry, failures } = this.#options;
    const holder = addressKey(address());
    const release = await this.#lookUps.acquire({ holder, waitMs: LOOK_UP_WAIT_MS });
    if (typeof release === 'string') {
      return { kind: 'unavailable', cause: new RegistryUnavailableError(`Too many keys to look up (${release}).`) };
    }
    try {
      // Another request may have looked the key up meanwhile.
      const known = registry.peek(hash);
      if (known !== undefined) return await this.#accept(known, address);
      const waitSeconds = await failures.wait(holder);
      if (waitSeconds !== null) return unauthenticated('too-many-failures', waitSeconds);
      return await this.#find(hash, address, true);
    } finally {
      release();
    }
  }

  /** `isGuess`: the key may never have been issued, and that is then a failure of the address. */
  async #find(hash: KeyHash, address: () => string, isGuess: boolean): Promise<AuthResult> {
    const { registry } = this.#options;
    try {
      const key = await registry.find(hash);
      if (key !== null) return await this.#accept(key, address);
    } catch (error) {
      // Not the client's failure.
      if (error instanceof RegistryUnavailableError) return { kind: 'unavailable', cause: error };
      throw error;
    }
    return isGuess ? this.#countFailure('unknown', addressKey(address())) : unauthenticated('unknown');
  }

  async #countFailure(reason: AuthFailure, address: string): Promise<AuthResult> {
    const waitSeconds = await this.#options.failures.consume(address);
    return waitSeconds === null ? unauthenticated(reason) : unauthenticated('too-many-failures', waitSeconds);
  }

  #accept(key: ApiKey, address: () => string): AuthResult | Promise<AuthResult> {
    const { registry, clock } = this.#options;
    const { hash, from } = key;
    const nowMs = clock.nowMs();
    if (!isActive(key, nowMs)) return { kind: 'inactive', key };
    if (from !== undefined && !isInSubnets(address(), from)) return this.#refuseAddress(key, address());
    registry.touch(key);
    const atMs = this.#good.get(hash)?.atMs ?? Number.NEGATIVE_INFINITY;
    if (nowMs - atMs >= GOOD_STEP_MS) this.#good.set(hash, { keyId: key.keyId, atMs: nowMs });
    return { kind: 'active', key };
  }

  /** A bound key that is used elsewhere may have been stolen: its user is held to the limit of failures, too. */
  async #refuseAddress(key: ApiKey, address: string): Promise<AuthResult> {
    const waitSeconds = await this.#options.failures.consume(addressKey(address));
    return waitSeconds === null
      ? { kind: 'address-forbidden', key }
      : unauthenticated('too-many-failures', waitSeconds);
  }

  /** The result of a look-up, which names the key if it is not valid now, and was good within the hour. */
  async #withFormerKey(hash: KeyHash, look: Promise<AuthResult>): Promise<AuthResult> {
    const result = await look;
    const good = this.#good.get(hash);
    const isFormer = good !== undefined && this.#options.clock.nowMs() - good.atMs < GOOD_FOR_MS;
    return result.kind === 'unauthenticated' && isFormer ? { ...result, formerKeyId: good.keyId } : result;
  }
}

function unauthenticated(reason: AuthFailure, retryAfterSeconds: number | null = null): AuthResult {
  return { kind: 'unauthenticated', reason, retryAfterSeconds, formerKeyId: null };
}

/** The scheme in any case (RFC 9110, section 11.1), then nothing or at least one space and a token. */
const CREDENTIALS = /^bearer(?: +([^ ].*)?)?$/i;

/**
 * The well-formed token of an `Authorization` value (RFC 6750, section 2.1). The field is single: Node hands over the first
 * of several, and a value that a proxy joined with commas is no token. So it is never a matter of luck which one counts.
 * Node has taken off the white space around it.
 */
function parseBearer(authorization = ''): { readonly token: string } | { readonly fault: AuthFailure } {
  if (authorization === '') return { fault: 'missing' };
  const credentials = CREDENTIALS.exec(authorization);
  if (credentials === null) return { fault: 'not-bearer' };
  const token = credentials[1];
  if (token === undefined) return { fault: 'empty' };
  return isWellFormed(token) ? { token } : { fault: 'malformed' };
}
