/** From an `Authorization` header to a key: who calls, and whether the key may be used now. */
import type { Clock } from '../clock.ts';
import { isActive } from './access.ts';
import { type BearerFault, parseBearer } from './bearer.ts';
import { addressKey } from './client-address.ts';
import type { FailureLimiter } from './failure-limiter.ts';
import { type ApiKey, type KeyHash, type KeyLookup, RegistryUnavailableError } from './key.ts';
import { KnownCredentials } from './known-credentials.ts';
import { LookupGate } from './lookup-gate.ts';
import { hashToken } from './token.ts';

/** `unknown`: no such key was ever issued. `too-many-failures`: the address has used up its failed attempts. */
export type AuthFailure = BearerFault | 'unknown' | 'too-many-failures';

export type AuthResult =
  /** May go on; its quota is to be asked next. */
  | { readonly kind: 'active'; readonly key: ApiKey }
  /** Was issued, and is now deprecated, revoked or expired. Never counted, neither as use nor as a failure. */
  | { readonly kind: 'inactive'; readonly key: ApiKey }
  /** No valid credential. `retryAfterSeconds` is a number exactly where the reason is `too-many-failures`. */
  | { readonly kind: 'unauthenticated'; readonly reason: AuthFailure; readonly retryAfterSeconds: number | null }
  /** Whether it is valid cannot be told at the moment. `cause` is private. */
  | { readonly kind: 'unavailable'; readonly cause: RegistryUnavailableError };

export interface Credentials {
  readonly authorization: string | undefined;
  /** Asked only where authentication fails or a key must be looked up. */
  readonly address: () => string;
}

export interface Authenticator {
  /**
   * Answered at once where the key is at hand. Rejects only with what the registry or the limiter rejects with beyond
   * RegistryUnavailableError.
   */
  authenticate(credentials: Credentials): AuthResult | Promise<AuthResult>;
}

export interface AuthenticatorParts {
  readonly registry: KeyLookup;
  readonly clock: Clock;
  readonly failures: FailureLimiter;
}

class RegistryAuthenticator implements Authenticator {
  readonly #registry: KeyLookup;
  readonly #clock: Clock;
  readonly #failures: FailureLimiter;
  readonly #gate: LookupGate;
  /** A gate of their own, so that what is no key at all takes no place from look-ups. */
  readonly #refusals: LookupGate;
  readonly #credentials = new KnownCredentials();

  constructor({ registry, clock, failures }: AuthenticatorParts) {
    this.#registry = registry;
    this.#clock = clock;
    this.#failures = failures;
    this.#gate = new LookupGate(failures);
    this.#refusals = new LookupGate(failures);
  }

  authenticate({ authorization = '', address }: Credentials): AuthResult | Promise<AuthResult> {
    const nowMs = this.#clock.nowMs();
    const remembered = this.#credentials.hashOf(authorization, nowMs);
    if (remembered !== undefined) return this.#find(remembered, address);
    const bearer = parseBearer(authorization);
    if (bearer.kind === 'none') return this.#refuse(bearer.reason, addressKey(address()));
    const hash = hashToken(bearer.token);
    // Of what is known here alone: made-up keys take no place from others.
    if (this.#registry.peek(hash) !== undefined) this.#credentials.remember(authorization, hash, nowMs);
    return this.#find(hash, address);
  }

  /** A key that is known here is answered for by itself: its address doesn't matter, however many failures it has. */
  #find(hash: KeyHash, address: Credentials['address']): AuthResult | Promise<AuthResult> {
    const known = this.#registry.peek(hash);
    return known === undefined ? this.#lookUp(hash, addressKey(address())) : this.#judge(known);
  }

  async #lookUp(hash: KeyHash, address: string): Promise<AuthResult> {
    // Nobody guesses the hash of an issued key, so its look-up is no failure to come and its address doesn't matter.
    if (this.#registry.isIssued?.(hash) === true) return this.#ask(hash, address);
    const blockedSeconds = await this.#gate.enter(address);
    if (blockedSeconds !== null) {
      // Another request may have made the key known while this one waited.
      const known = this.#registry.peek(hash);
      return known === undefined ? tooManyFailures(blockedSeconds) : this.#judge(known);
    }
    try {
      return await this.#ask(hash, address);
    } finally {
      this.#gate.leave(address);
    }
  }

  async #ask(hash: KeyHash, address: string): Promise<AuthResult> {
    try {
      const key = await this.#registry.find(hash);
      if (key !== null) return this.#judge(key);
      await this.#failures.failed(address);
      return { kind: 'unauthenticated', reason: 'unknown', retryAfterSeconds: null };
    } catch (error) {
      // Not the caller's failure, so it isn't counted as one.
      if (error instanceof RegistryUnavailableError) return { kind: 'unavailable', cause: error };
      throw error;
    }
  }

  async #refuse(reason: BearerFault, address: string): Promise<AuthResult> {
    const blockedSeconds = await this.#refusals.enter(address);
    if (blockedSeconds !== null) return tooManyFailures(blockedSeconds);
    try {
      await this.#failures.failed(address);
      return { kind: 'unauthenticated', reason, retryAfterSeconds: null };
    } finally {
      this.#refusals.leave(address);
    }
  }

  #judge(key: ApiKey): AuthResult {
    if (!isActive(key, this.#clock.nowMs())) return { kind: 'inactive', key };
    this.#registry.touch(key);
    return { kind: 'active', key };
  }
}

function tooManyFailures(seconds: number): AuthResult {
  return { kind: 'unauthenticated', reason: 'too-many-failures', retryAfterSeconds: Math.max(1, seconds) };
}

/**
 * Makes the authenticator. An address with 60 failures within a minute gets no further look-up until the minute is over;
 * the keys that the registry has at hand are served from it all the same.
 */
export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  return new RegistryAuthenticator(parts);
}
