/** From an `Authorization` header to a key: who calls, and whether the key may be used now. */
import type { Clock } from '../clock.ts';
import { isActive } from './access.ts';
import { type BearerFault, parseBearer } from './bearer.ts';
import { addressKey } from './client-address.ts';
import { type ApiKey, type KeyHash, type KeyLookup, RegistryUnavailableError } from './key.ts';
import type { RequestLimiter } from './request-limiter.ts';
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
  /** Called only if authentication fails or a key must be looked up. */
  readonly address: () => string;
}

export interface Authenticator {
  /** Rejects only with what the registry or the limiter rejects with beyond RegistryUnavailableError. */
  authenticate(credentials: Credentials): Promise<AuthResult>;
}

export interface AuthenticatorParts {
  readonly registry: KeyLookup;
  readonly clock: Clock;
  /** Failed authentications per address, 60 a minute (K9). */
  readonly failures: RequestLimiter;
}

/**
 * An address that has used up its failures gets no further look-up until the minute is over; keys that the registry knows
 * are served from it all the same.
 */
export function createAuthenticator({ registry, clock, failures }: AuthenticatorParts): Authenticator {
  const judge = (key: ApiKey): AuthResult => {
    if (!isActive(key, clock.nowMs())) return { kind: 'inactive', key };
    registry.touch(key);
    return { kind: 'active', key };
  };

  async function lookUp(hash: KeyHash, address: string): Promise<AuthResult> {
    // Nobody guesses the hash of an issued key, so its look-up is no failure to come.
    const isCounted = registry.isIssued?.(hash) !== true;
    // Counted before the look-up, so that many at once do not all pass before the first has failed.
    const waitSeconds = isCounted ? await failures.consume(address) : null;
    // Another request may have made the key known meanwhile.
    const known = registry.peek(hash);
    if (known !== undefined) return judge(known);
    if (waitSeconds !== null) return tooManyFailures(waitSeconds);
    try {
      const key = await registry.find(hash);
      if (key === null) return { kind: 'unauthenticated', reason: 'unknown', retryAfterSeconds: null };
      if (isCounted) await failures.giveBack(address);
      return judge(key);
    } catch (error) {
      if (!(error instanceof RegistryUnavailableError)) throw error;
      // Not the client's failure, so it is not counted as one.
      if (isCounted) await failures.giveBack(address);
      return { kind: 'unavailable', cause: error };
    }
  }

  return {
    authenticate: async ({ authorization = '', address }) => {
      const bearer = parseBearer(authorization);
      if (bearer.kind === 'none') {
        const waitSeconds = await failures.consume(addressKey(address()));
        if (waitSeconds !== null) return tooManyFailures(waitSeconds);
        return { kind: 'unauthenticated', reason: bearer.reason, retryAfterSeconds: null };
      }
      const hash = hashToken(bearer.token);
      const known = registry.peek(hash);
      return known === undefined ? lookUp(hash, addressKey(address())) : judge(known);
    },
  };
}

function tooManyFailures(retryAfterSeconds: number): AuthResult {
  return { kind: 'unauthenticated', reason: 'too-many-failures', retryAfterSeconds };
}
