/** KEYS_SOURCE=upstream: a key that the registry does not know is looked up at the store. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { forTest } from '../../support/opened.ts';
import type { ApiKeyRecord } from '../../../src/domain/records.ts';
import { hashToken, newToken } from '../../../src/keys/token.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { anApiKeyRecord, WORKSPACE_A } from '../../support/records.ts';
import { errorText, LIST_CALLS, TEXTS } from './endpoints.ts';
import { importKey } from './keys.ts';
import { newSubject } from './subject.ts';

const GRACE_MS = 600_000;

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: { KEYS_SOURCE: 'upstream', TRUSTED_PROXIES: '127.0.0.1/32' } }));
});

/** Puts a key into the store; returns its token. */
function put(record: Partial<ApiKeyRecord> = {}, token: string = newToken()): string {
  gateway.store.put({ apiKeys: { [hashToken(token)]: anApiKeyRecord(record) } });
  return token;
}

const here = (key: string) => from('203.0.113.9', key);
const from = (address: string, key: string) => gateway.get('/v2/key', { key, headers: { 'x-forwarded-for': address } });
const use = async (key: string): Promise<number> => (await gateway.get('/v2/key', { key })).status;
const lookUps = (): number => gateway.store.calls('apiKey');

describe('permissions of a key of the store', () => {
  test('it has the rights and limits that the store gives, as far as the gateway knows such a scope', async () => {
    const expiresAtMs = gateway.clock.nowMs() + 60_000;
    const limits = { perMinute: 3, perHour: 4 };
    const key = put({ scopes: ['calls.read', 'billing.write'], expiresAtMs, limits });
    const reply = await gateway.get('/v2/key', { key });
    expect(reply.json).toMatchObject({
      key: {
        id: 'key_1',
        name: 'Reporting',
        status: 'active',
        scopes: ['calls.read'],
        workspace_ids: [WORKSPACE_A],
        expires_at: new Date(expiresAtMs).toISOString(),
        rate_limit: { minute: { limit: 3 }, hour: { limit: 4 } },
      },
    });
    expect((await gateway.get(`/v1/workspaces/${WORKSPACE_A}/reports`, { key })).status).toBe(403);
    gateway.clock.advance(60_000);
    expect(await use(key)).toBe(403);
  });

  test.each(['DEPRECATED', 'REVOKED'] as const)('K4: one that is %s is a 403', async (status) => {
    expect(await use(put({ status }))).toBe(403);
  });

  test('K9: first look-ups of good keys are no failed authentications', async () => {
    for (let index = 0; index < 5; index += 1) expect(await use(put({ keyId: `key_${index}` }))).toBe(200);
    const refusals: unknown[] = [];
    for (let index = 0; index < 61; index += 1) {
      const { status, headers } = await gateway.get('/v2/key', { key: 'evg_made-up' });
      refusals.push([status, headers['retry-after'] !== undefined]);
    }
    expect(refusals).toEqual([...Array.from({ length: 60 }, () => [401, false]), [401, true]]);
  });

  test('R1: keys of the store with one id share a quota, and none with a key of the registry', async () => {
    const own = await gateway.issue({ perMinute: 2 });
    const limits = { perMinute: 1, perHour: 50 };
    const keys = [
      put({ keyId: own.keyId, limits }),
      put({ keyId: own.keyId, limits }),
      put({ keyId: 'x'.repeat(64), limits }),
    ];
    const statuses: number[] = [];
    for (const key of [...keys, own.token, own.token, own.token]) {
      statuses.push((await gateway.get('/v2/calls', { key })).status);
    }
    expect(statuses).toEqual([200, 429, 200, 200, 200, 429]);
  });
});

describe('when the store is asked', () => {
  test('K2: by the hash alone, once for many requests, and never for keys of the registry or with a wrong checksum', async () => {
    const key = put();
    expect(await Promise.all(Array.from({ length: 20 }, () => use(key)))).toEqual(
      Array.from({ length: 20 }, () => 200),
    );
    expect([await use(await gateway.issueKey()), await use(`evg_${'a'.repeat(38)}`)]).toEqual([200, 401]);
    expect(gateway.store.requests.map(({ resource, id }) => [resource, id])).toEqual([['apiKey', hashToken(key)]]);
    expect(JSON.stringify(gateway.store.requests)).not.toContain(key);
  });

  test('a key in use is confirmed behind its caller after 30 s', async () => {
    const token = put();
    await use(token);
    gateway.clock.advance(29_999);
    expect([await use(token), lookUps()]).toEqual([200, 1]);
    gateway.clock.advance(1);
    put({ status: 'REVOKED' }, token);
    expect(await use(token)).toBe(200);
    await vi.waitFor(async () => expect(await use(token)).toBe(403));
    expect(lookUps()).toBe(2);
  });

  test('a key that was not used for more than a minute is confirmed before it is used', async () => {
    const token = put();
    await use(token);
    put({ status: 'REVOKED' }, token);
    gateway.clock.advance(60_001);
    expect(await use(token)).toBe(403);
  });

  test('a key that the store does not know is not looked up again for five seconds', async () => {
    const token = newToken();
    const seen: unknown[] = [];
    for (const ms of [0, 5000, 1]) {
      gateway.clock.advance(ms);
      seen.push([await use(token), lookUps()]);
    }
    expect(seen).toEqual([
      [401, 1],
      [401, 1],
      [401, 2],
    ]);
  });

  test('no more than ten look-ups a second that find nothing reach the store; more wait for their turn', async () => {
    const answers = Array.from({ length: 25 }, () => use(newToken()));
    for (const seconds of [1, 2, 3]) {
      await gateway.store.waitForCalls(Math.min(25, 10 * seconds), 'apiKey');
      expect(lookUps()).toBe(Math.min(25, 10 * seconds));
      gateway.clock.advance(1000);
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set([401]));
  });

  test('K9: a hundred good keys at once from one address are all let in, and so are those that follow', async () => {
    const keys = Array.from({ length: 100 }, (_, index) => put({ keyId: `key_${index}` }));
    expect(new Set(await Promise.all(keys.map(use)))).toEqual(new Set([200]));
    expect(new Set(await Promise.all(Array.from({ length: 20 }, () => use(put()))))).toEqual(new Set([200]));
    expect(lookUps()).toBe(120);
  });

  test('K9: an address that tries out keys takes no turn from another', async () => {
    const gate = gateway.store.hold();
    const tried = Array.from({ length: 50 }, () => from('203.0.113.1', newToken()));
    await gateway.store.waitForCalls(8, 'apiKey');
    const good = from('203.0.113.2', put());
    await gateway.store.waitForCalls(9, 'apiKey');
    gate.release();
    expect((await good).status).toBe(200);
    const left = setInterval(() => gateway.clock.advance(1000), 10);
    expect(new Set((await Promise.all(tried)).map(({ status }) => status))).toEqual(new Set([401]));
    clearInterval(left);
  });

  test('confirmations leave half of the look-ups of a second to callers who wait', async () => {
    const keys = Array.from({ length: 10 }, () => put());
    await Promise.all(keys.map(use));
    gateway.clock.advance(40_000);
    const gate = gateway.store.hold();
    await Promise.all(keys.map(use));
    await gateway.store.waitForCalls(15, 'apiKey');
    const made = Array.from({ length: 5 }, () => use(newToken()));
    await gateway.store.waitForCalls(20, 'apiKey');
    expect(lookUps()).toBe(20);
    gate.release();
    expect(await Promise.all(made)).toEqual([401, 401, 401, 401, 401]);
  });

  test('K9: a key that was confirmed before is looked up again from an address whose failures are used up', async () => {
    const known = put();
    expect((await here(known)).status).toBe(200);
    for (let i = 0; i < 60; i += 1) await here('evg_wrong');
    gateway.clock.advance(61_000);
    const before = lookUps();
    expect((await here(newToken())).headers['retry-after']).toBeDefined();
    expect([(await here(known)).status, lookUps()]).toEqual([200, before + 1]);
  });
});

describe('when the store cannot be asked', () => {
  test.each([
    ['is down', () => gateway.store.resetConnections()],
    ['answers 500', () => gateway.store.fail(500)],
    ['refuses its token', () => gateway.store.fail(401)],
    ['answers 404 with another code', () => gateway.store.fail(404)],
    ['sends what is no key', () => gateway.store.answer(/api-keys/, { keyId: 'key_1' })],
  ])('S2: and %s: a key that was never confirmed is neither let in nor refused', async (_what, misbehave) => {
    const [known, unknown] = [put(), put()];
    expect(await use(known)).toBe(200);
    misbehave();
    const reply = await gateway.get('/v2/calls', { key: unknown });
    expect([reply.status, reply.headers['x-error-code']]).toEqual([500, 'keys_unavailable']);
    expect(reply.text).toBe(errorText(LIST_CALLS, 500, TEXTS.cannotCheck));
    gateway.clock.advance(61_000);
    expect(await use(known)).toBe(200);
    for (const key of [known, unknown]) expect(gateway.logLines.join('')).not.toContain(hashToken(key));
  });

  test('C8: a key that was confirmed stays good for the grace, and no longer', async () => {
    const key = put();
    await use(key);
    const end = gateway.store.fail(503);
    gateway.clock.advance(GRACE_MS);
    expect(await use(key)).toBe(200);
    gateway.clock.advance(1);
    expect(await use(key)).toBe(500);
    end();
    gateway.clock.advance(60_000);
    expect(await use(key)).toBe(200);
  });

  test('C8: a key that the store has dropped is not let in again when the store fails', async () => {
    const token = put();
    await use(token);
    gateway.store.apiKeys.clear();
    gateway.clock.advance(60_001);
    expect(await use(token)).toBe(401);
    gateway.store.fail(503);
    gateway.clock.advance(5001);
    expect(await use(token)).toBe(500);
  });

  test('a store that hangs holds up nobody for long whose key was confirmed, and its late word counts', async () => {
    const token = put();
    await use(token);
    gateway.clock.advance(60_001);
    put({ status: 'REVOKED' }, token);
    const gate = gateway.store.hold();
    // The first waits a moment, those after it do not.
    for (let i = 0; i < 5; i += 1) expect(await use(token)).toBe(200);
    expect(lookUps()).toBe(2);
    gate.release();
    await vi.waitFor(async () => expect(await use(token)).toBe(403));
  });
});

describe('the word of the registry', () => {
  test('an operator revokes a key of the store by importing it as revoked', async () => {
    const token = put();
    expect(await use(token)).toBe(200);
    const key = {
      keyId: 'mine',
      hash: hashToken(token),
      name: 'x',
      workspaceIds: [WORKSPACE_A],
      scopes: ['calls.read'],
    };
    await gateway.admin('POST', '/api/keys/import', { keys: [{ ...key, status: 'revoked' }] });
    expect(await use(token)).toBe(403);
  });

  test('uses of its own keys are noted, and none for keys of the store', async () => {
    const subject = newSubject();
    const token = `own-${randomUUID()}`;
    await importKey(gateway, subject, token);
    await use(token);
    await use(put({ keyId: 'of-the-store' }));
    const { text } = await gateway.admin('GET', '/api/keys');
    expect(text).toContain(`"lastUsedAt":"${new Date(gateway.clock.nowMs()).toISOString()}"`);
    expect(text).not.toContain('of-the-store');
  });
});
