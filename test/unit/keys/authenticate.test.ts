import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AuthResult, createAuthenticator } from '../../../src/keys/authenticate.ts';
import {
  createMemoryFailureLimiter,
  type FailureAllowance,
  type FailureLimiter,
} from '../../../src/keys/failure-limiter.ts';
import { type ApiKey, type KeyHash, type KeyRegistry, RegistryUnavailableError } from '../../../src/keys/key.ts';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { hashToken, newToken } from '../../../src/keys/token.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { NEW_KEY } from './fixtures.ts';

const ADDRESS = '203.0.113.9';

/** A limiter whose time the test moves: what is counted ends when `endWindow` is called. */
class ManualLimiter implements FailureLimiter {
  readonly counts = new Map<string, number>();
  retryAfterSeconds = 42;

  async allowance(address: string): Promise<FailureAllowance> {
    const left = Math.max(0, 60 - (this.counts.get(address) ?? 0));
    return { left, retryAfterSeconds: this.retryAfterSeconds };
  }

  async failed(address: string): Promise<void> {
    this.counts.set(address, (this.counts.get(address) ?? 0) + 1);
  }

  endWindow(): void {
    this.counts.clear();
  }
}

/** A registry that knows nothing by itself, as one over a network, and counts how often it is asked. */
class RemoteRegistry {
  readonly inner: KeyRegistry;
  readonly asked: KeyHash[] = [];
  readonly held = new Map<KeyHash, ApiKey>();
  answer: (hash: KeyHash) => Promise<ApiKey | null>;
  readonly registry: KeyRegistry;

  constructor(inner: KeyRegistry) {
    this.inner = inner;
    this.answer = (hash) => inner.find(hash);
    this.registry = {
      find: async (hash) => {
        this.asked.push(hash);
        const key = await this.answer(hash);
        if (key !== null) this.held.set(hash, key);
        return key;
      },
      peek: (hash) => this.held.get(hash),
      list: () => inner.list(),
      get: (keyId) => inner.get(keyId),
      create: (key) => inner.create(key),
      setStatus: (keyId, status) => inner.setStatus(keyId, status),
      rotate: (keyId, overlapMs) => inner.rotate(keyId, overlapMs),
      importKeys: (keys) => inner.importKeys(keys),
      touch: (key) => inner.touch(key),
    };
  }
}

function setUp() {
  const clock = new ManualClock();
  const memory = createMemoryRegistry({ clock });
  const remote = new RemoteRegistry(memory);
  const failures = new ManualLimiter();
  const { authenticate } = bound(createAuthenticator({ registry: remote.registry, clock, failures }));
  return { clock, memory, remote, failures, authenticate };
}

function bound(authenticator: ReturnType<typeof createAuthenticator>) {
  return {
    authenticate: async (token: string | null, address: string = ADDRESS): Promise<AuthResult> =>
      await authenticator.authenticate({
        authorization: token === null ? undefined : `Bearer ${token}`,
        address: () => address,
      }),
  };
}

function unauthenticated(reason: string, retryAfterSeconds: number | null = null) {
  return { kind: 'unauthenticated', reason, retryAfterSeconds };
}

describe('who is let in', () => {
  test('K4: an issued, active key is let in, and its use is noted', async () => {
    const { clock, memory, authenticate } = setUp();
    const { key, token } = await memory.create(NEW_KEY);
    clock.advance(5000);
    expect(await authenticate(token)).toEqual({ kind: 'active', key });
    expect((await memory.get(key.keyId))?.lastUsedAtMs).toBe(clock.nowMs());
  });

  test.each(['deprecated', 'revoked'] as const)('K4: a key that is %s is inactive', async (status) => {
    const { memory, failures, authenticate } = setUp();
    const { key, token } = await memory.create(NEW_KEY);
    await memory.setStatus(key.keyId, status);
    expect(await authenticate(token)).toEqual({ kind: 'inactive', key: { ...key, status } });
    expect((await memory.get(key.keyId))?.lastUsedAtMs).toBeNull();
    expect(failures.counts.size).toBe(0);
  });

  test('K4: a key is inactive from the millisecond of its expiry', async () => {
    const { clock, memory, authenticate } = setUp();
    const { token } = await memory.create({ ...NEW_KEY, expiresAtMs: clock.nowMs() + 1000 });
    clock.advance(999);
    expect((await authenticate(token)).kind).toBe('active');
    clock.advance(1);
    expect((await authenticate(token)).kind).toBe('inactive');
  });

  test('K1: a key of another form is looked up as it is', async () => {
    const { memory, authenticate } = setUp();
    const imported = {
      ...NEW_KEY,
      keyId: 'old-1',
      hash: hashToken('legacy~key=='),
      status: 'active',
      createdAtMs: 1,
    } as const;
    await memory.importKeys([imported]);
    expect(await authenticate('legacy~key==')).toMatchObject({ kind: 'active', key: { keyId: 'old-1' } });
  });

  test('K4: a well-formed key that was never issued is unknown', async () => {
    const { remote, authenticate } = setUp();
    const token = newToken();
    expect(await authenticate(token)).toEqual(unauthenticated('unknown'));
    expect(remote.asked).toEqual([hashToken(token)]);
  });

  test.each([
    [null, 'missing'],
    ['', 'empty'],
    ['evg_wrong', 'malformed'],
    [`${newToken()}x`, 'malformed'],
  ])('K1: %j is refused without a look-up: %s', async (token, reason) => {
    const { remote, failures, authenticate } = setUp();
    expect(await authenticate(token)).toEqual(unauthenticated(reason));
    expect(remote.asked).toEqual([]);
    expect(failures.counts.get(ADDRESS)).toBe(1);
  });

  test('S2: a registry that cannot be asked is neither a yes nor a no, and no failure of the caller', async () => {
    const { remote, failures, authenticate } = setUp();
    const cause = new RegistryUnavailableError('down');
    remote.answer = () => Promise.reject(cause);
    expect(await authenticate(newToken())).toEqual({ kind: 'unavailable', cause });
    expect(failures.counts.size).toBe(0);
  });

  test('an error that is no outage is passed on', async () => {
    const { remote, authenticate } = setUp();
    remote.answer = () => Promise.reject(new TypeError('a fault of ours'));
    await expect(authenticate(newToken())).rejects.toThrow(new TypeError('a fault of ours'));
  });

  test('the address of a caller whose key is known is never asked for', async () => {
    const clock = new ManualClock();
    const registry = createMemoryRegistry({ clock });
    const authenticator = createAuthenticator({ registry, clock, failures: new ManualLimiter() });
    const { token } = await registry.create(NEW_KEY);
    const credentials = {
      authorization: `Bearer ${token}`,
      address: (): string => {
        throw new Error('asked for the address');
      },
    };
    expect((await authenticator.authenticate(credentials)).kind).toBe('active');
  });
});

describe('credentials that come again', () => {
  test.each(['Bearer %', 'bearer %', 'BEARER %', 'Bearer    %', ' Bearer %\t', 'Bearer %   '])(
    'K4: a known key is let in however its header is written: "%s"',
    async (written) => {
      const { memory, tell } = onOneAuthenticator();
      const { key, token } = await memory.create(NEW_KEY);
      const other = await memory.create(NEW_KEY);
      for (const { key: expected, token: given } of [{ key, token }, other, { key, token }]) {
        expect(await tell(written.replace('%', given))).toEqual(['active', expected.keyId]);
      }
    },
  );

  test('K4: a key that is revoked is refused, though its credentials were good a moment ago', async () => {
    const { memory, tell } = onOneAuthenticator();
    const { key, token } = await memory.create(NEW_KEY);
    expect(await tell(`Bearer ${token}`)).toEqual(['active', key.keyId]);
    await memory.setStatus(key.keyId, 'revoked');
    expect(await tell(`Bearer ${token}`)).toEqual(['inactive', key.keyId]);
  });

  test('K4: whatever came before, each request is answered for by its own credentials', async () => {
    const { memory, clock, tell } = onOneAuthenticator();
    const issued = await Promise.all([NEW_KEY, NEW_KEY].map((wanted) => memory.create(wanted)));
    const credentials = [
      ...issued.map(({ token }) => `Bearer ${token}`),
      `Bearer ${newToken()}`,
      'Bearer evg_wrong',
      '',
    ];
    const expected = await Promise.all(credentials.map((one) => onOneAuthenticator(memory).tell(one)));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(4), fc.nat(90_000)), { maxLength: 12 }), async (requests) => {
        for (const [which, afterMs] of requests) {
          clock.advance(afterMs);
          expect(await tell(credentials[which] ?? '')).toEqual(expected[which]);
        }
      }),
    );
  });
});

describe('too many failures', () => {
  test('K9: of failures that come all at once no more than 60 are answered without a time to wait', async () => {
    const clock = new ManualClock();
    const registry = createMemoryRegistry({ clock });
    const authenticator = createAuthenticator({ registry, clock, failures: createMemoryFailureLimiter() });
    const refused = await Promise.all(
      Array.from({ length: 200 }, () => bound(authenticator).authenticate('evg_wrong', ADDRESS)),
    );
    const reasons = refused.map((result) => ('reason' in result ? result.reason : result.kind));
    expect(reasons.filter((reason) => reason === 'malformed')).toHaveLength(60);
    expect(reasons.filter((reason) => reason === 'too-many-failures')).toHaveLength(140);
  });

  test('K9: after 60 failures further ones answer with a time to wait and cost no look-up', async () => {
    const { remote, authenticate } = setUp();
    for (let i = 0; i < 60; i += 1) expect(await authenticate(newToken())).toEqual(unauthenticated('unknown'));
    expect(await authenticate(newToken())).toEqual(unauthenticated('too-many-failures', 42));
    expect(await authenticate(null)).toEqual(unauthenticated('too-many-failures', 42));
    expect(await authenticate('evg_wrong')).toEqual(unauthenticated('too-many-failures', 42));
    expect(remote.asked).toHaveLength(60);
  });

  test('K9: failures of every kind count together, and those beyond the limit don’t prolong it', async () => {
    const { failures, authenticate } = setUp();
    for (let i = 0; i < 20; i += 1) {
      await authenticate(null);
      await authenticate('evg_wrong');
      await authenticate(newToken());
    }
    await authenticate(newToken());
    await authenticate(null);
    expect(failures.counts).toEqual(new Map([[ADDRESS, 60]]));
    failures.endWindow();
    expect(await authenticate(newToken())).toEqual(unauthenticated('unknown'));
  });

  test('K9: a key known to be good is let in from a blocked address, one known to be revoked is still told so', async () => {
    const { memory, remote, authenticate } = setUp();
    const good = await memory.create(NEW_KEY);
    const revoked = await memory.create(NEW_KEY);
    await memory.setStatus(revoked.key.keyId, 'revoked');
    for (const { token } of [good, revoked]) await authenticate(token, '198.51.100.1');
    for (let i = 0; i < 61; i += 1) await authenticate(newToken());
    const asked = remote.asked.length;
    expect((await authenticate(good.token)).kind).toBe('active');
    expect((await authenticate(revoked.token)).kind).toBe('inactive');
    expect(remote.asked).toHaveLength(asked);
  });

  test('K9: another address is not held back, but the rest of an IPv6 /64 is', async () => {
    const { authenticate } = setUp();
    for (let i = 0; i < 60; i += 1) await authenticate(newToken(), `2001:db8:1:2::${i.toString(16)}`);
    expect(await authenticate(newToken(), '2001:db8:1:2:ffff::1')).toEqual(unauthenticated('too-many-failures', 42));
    expect(await authenticate(newToken(), '2001:db8:1:3::1')).toEqual(unauthenticated('unknown'));
  });

  test('K9: an IPv4-mapped address is the IPv4 address', async () => {
    const { authenticate } = setUp();
    for (let i = 0; i < 60; i += 1) await authenticate(newToken(), '::ffff:203.0.113.9');
    expect(await authenticate(newToken(), '203.0.113.9')).toEqual(unauthenticated('too-many-failures', 42));
  });

  test('K9: of 300 made-up keys at once 60 are looked up', async () => {
    const { remote, authenticate } = setUp();
    const results = await Promise.all(Array.from({ length: 300 }, () => authenticate(newToken())));
    expect(remote.asked).toHaveLength(60);
    expect(results.filter((result) => result.kind === 'unauthenticated' && result.reason === 'unknown')).toHaveLength(
      60,
    );
    expect(
      results.filter((result) => result.kind === 'unauthenticated' && result.retryAfterSeconds === 42),
    ).toHaveLength(240);
  });

  test('K9: of 300 good keys at once, none of them known yet, all are let in', async () => {
    const { memory, authenticate } = setUp();
    const issued = await Promise.all(Array.from({ length: 300 }, () => memory.create(NEW_KEY)));
    const results = await Promise.all(issued.map(({ token }) => authenticate(token)));
    expect(results.filter((result) => result.kind === 'active')).toHaveLength(300);
  });

  test('K9: a good key that became known while it waited is let in though its address is blocked by then', async () => {
    const { memory, remote, authenticate } = setUp();
    const { key, token } = await memory.create(NEW_KEY);
    const release = Promise.withResolvers<null>();
    remote.answer = () => release.promise;
    const madeUp = Array.from({ length: 60 }, () => authenticate(newToken()));
    await Promise.resolve();
    const waiting = authenticate(token);
    remote.held.set(key.hash, key);
    release.resolve(null);
    await Promise.all(madeUp);
    expect((await waiting).kind).toBe('active');
  });

  test('K9: a key that is known to be issued, though not yet here, is looked up from an address that is blocked', async () => {
    const { memory, remote, failures, authenticate } = setUp();
    const good = await memory.create(NEW_KEY);
    const revoked = await memory.create(NEW_KEY);
    await memory.setStatus(revoked.key.keyId, 'revoked');
    const issued = new Set([good.key.hash, revoked.key.hash]);
    remote.registry.isIssued = (hash) => issued.has(hash);
    for (let i = 0; i < 60; i += 1) await authenticate(newToken());
    remote.asked.length = 0;
    expect((await authenticate(good.token)).kind).toBe('active');
    expect((await authenticate(revoked.token)).kind).toBe('inactive');
    expect(await authenticate(newToken())).toEqual(unauthenticated('too-many-failures', 42));
    expect(remote.asked).toEqual([good.key.hash, revoked.key.hash]);
    expect(failures.counts.get(ADDRESS)).toBe(60);
  });

  test('an outage gives the place in the queue back', async () => {
    const { remote, authenticate } = setUp();
    remote.answer = () => Promise.reject(new RegistryUnavailableError('down'));
    const results = await Promise.all(Array.from({ length: 200 }, () => authenticate(newToken())));
    expect(results.filter((result) => result.kind === 'unavailable')).toHaveLength(200);
  });

  test('S2: a lost answer of the limiter is passed on and leaves nobody waiting', async () => {
    const { failures, authenticate } = setUp();
    failures.failed = () => Promise.reject(new Error('limiter'));
    await expect(authenticate(newToken())).rejects.toThrow('limiter');
    failures.failed = () => Promise.resolve();
    expect(await authenticate(newToken())).toEqual(unauthenticated('unknown'));
  });

  test('K9: with the limiter in use, the 61st failure is told to wait up to a minute', async () => {
    const clock = new ManualClock();
    const registry = createMemoryRegistry({ clock });
    const { token } = await registry.create(NEW_KEY);
    const failures = createMemoryFailureLimiter();
    const { authenticate } = bound(createAuthenticator({ registry, clock, failures }));
    const results = await Promise.all(Array.from({ length: 60 }, () => authenticate(newToken())));
    expect(new Set(results.map((result) => JSON.stringify(result)))).toEqual(
      new Set([JSON.stringify(unauthenticated('unknown'))]),
    );
    const blocked = await authenticate(newToken());
    expect(blocked).toMatchObject({ kind: 'unauthenticated', reason: 'too-many-failures' });
    const seconds = blocked.kind === 'unauthenticated' ? blocked.retryAfterSeconds : null;
    expect(seconds).toBeGreaterThanOrEqual(50);
    expect(seconds).toBeLessThanOrEqual(60);
    expect((await authenticate(token)).kind).toBe('active');
  });
});

function told(result: AuthResult): readonly unknown[] {
  return [result.kind, 'key' in result ? result.key.keyId : 'reason' in result ? result.reason : null];
}

/** What requests with these `Authorization` values are told, one after another, however many of them fail. */
function onOneAuthenticator(registry?: KeyRegistry) {
  const clock = new ManualClock();
  const memory = registry ?? createMemoryRegistry({ clock });
  const failures = { allowance: async () => ({ left: 60, retryAfterSeconds: 0 }), failed: async () => {} };
  const authenticator = createAuthenticator({ registry: memory, clock, failures });
  const tell = async (authorization: string): Promise<readonly unknown[]> =>
    told(await authenticator.authenticate({ authorization, address: () => ADDRESS }));
  return { clock, memory, tell };
}
