import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hashToken } from '../../../src/keys/token.ts';
import { forTest } from '../../support/opened.ts';
import { auditOf, faults, keysSchema, messageOf, START, TOKENS } from '../../support/admin.ts';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const WANTED = { name: 'CRM sync', workspaceIds: [WORKSPACE_A], scopes: ['reports.read'] };
const HASH = hashToken('legacy-key');
const IMPORTED = { keyId: 'legacy_1', hash: HASH, name: 'Legacy', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };
const NO_LIMITS = { perMinute: null, perHour: null };

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: TOKENS }));
});

const call = (method: string, path: string, body?: unknown): Promise<Reply> => gateway.admin(method, path, body);
const importKeys = (...keys: unknown[]): Promise<Reply> => call('POST', '/api/keys/import', { keys });
const ids = (count: number): string[] => Array.from({ length: count }, () => WORKSPACE_A);

const issuedSchema = z.strictObject({ key: z.looseObject({ keyId: z.string() }), token: z.string() });

async function create(body: object = WANTED): Promise<{ readonly keyId: string; readonly token: string }> {
  const { key, token } = issuedSchema.parse((await call('POST', '/api/keys', body)).json);
  return { keyId: key.keyId, token };
}

async function listed(): Promise<readonly string[]> {
  return keysSchema.parse((await call('GET', '/api/keys')).json).keys.map(({ keyId }) => keyId);
}

/** The status that the public API answers to a key. */
async function statusWith(key: string): Promise<number> {
  return (await gateway.get('/v2/calls', { key })).status;
}

describe('POST /api/keys', () => {
  test('issues a key with the defaults of what is left out, and it works', async () => {
    const answer = await call('POST', '/api/keys', { ...WANTED, scopes: ['calls.read'] });
    expect(answer.status).toBe(201);
    const { key, token } = issuedSchema.parse(answer.json);
    expect(token).toMatch(/^evg_[0-9A-Za-z]{38}$/);
    expect(answer.headers['location']).toBe(`/api/keys/${key.keyId}`);
    const decided = {
      name: 'CRM sync',
      status: 'active',
      workspaceIds: [WORKSPACE_A],
      scopes: ['calls.read'],
      expiresAt: null,
      limits: NO_LIMITS,
      from: null,
    };
    expect(key).toEqual({ ...decided, keyId: key.keyId, createdAt: START, quotaId: key.keyId, lastUsedAt: null });
    expect(await statusWith(token)).toBe(200);
    expect(await auditOf(gateway)).toEqual([
      { at: START, who: 'alice', action: 'key.create', target: key.keyId, from: null, to: decided },
    ]);
  });

  test('takes limits and an expiry, and makes workspaces lower case and nothing double', async () => {
    const answer = await call('POST', '/api/keys', {
      name: '👩‍🚀'.repeat(33) + 'x',
      workspaceIds: [WORKSPACE_A.toUpperCase(), WORKSPACE_B, WORKSPACE_A],
      scopes: ['calls.read', 'coaching.read', 'calls.read'],
      perMinute: 1,
      perHour: 1_000_000_000,
      expiresAt: '2026-01-15T13:00:00.001+01:00',
    });
    expect([answer.status, answer.json]).toMatchObject([
      201,
      {
        key: {
          workspaceIds: [WORKSPACE_A, WORKSPACE_B],
          scopes: ['calls.read', 'coaching.read'],
          limits: { perMinute: 1, perHour: 1_000_000_000 },
          expiresAt: '2026-01-15T12:00:00.001Z',
        },
      },
    ]);
  });

  test.each([
    [
      { ...NO_LIMITS, expiresAt: null },
      { limits: NO_LIMITS, expiresAt: null },
    ],
    [{ expiresAt: '9999-12-31T23:59:59.999Z' }, { expiresAt: '9999-12-31T23:59:59.999Z' }],
    [{ workspaceIds: ids(50) }, { workspaceIds: [WORKSPACE_A] }],
    [{ from: null }, { from: null }],
    [
      { from: ['203.0.113.7', '203.0.113.7/32', '2001:DB8:0::/32', '::ffff:10.0.0.0/104'] },
      { from: ['203.0.113.7/32', '2001:db8::/32', '10.0.0.0/8'] },
    ],
  ])('takes %j', async (change, expected) => {
    expect((await call('POST', '/api/keys', { ...WANTED, ...change })).json).toMatchObject({ key: expected });
  });

  const NAME = 'a text of 1 to 100 characters that is not blank and has no control characters';
  const LIMIT = "an integer from 1 to 10^9, or null for the gateway's own";
  const EXPIRY = `a time in ISO 8601 with its offset, after ${START} and at most in the year 9999, or null for never`;
  const SCOPES = 'reports.read, calls.read, coaching.read';
  const SUBNETS = '203.0.113.0/24, 2001:db8::/32 or 203.0.113.7';
  const SUBNET = `a subnet or an address, such as ${SUBNETS}`;
  const FROM = `an array of 1 to 50 subnets or addresses, such as ${SUBNETS}, or null for any address`;
  test.each([
    [{ name: '' }, `name: given ""; allowed: ${NAME}`],
    [{ name: ' \u00a0' }, `name: given " \u00a0"; allowed: ${NAME}`],
    [{ name: 'x'.repeat(101) }, `name: given "${'x'.repeat(60)}..."; allowed: ${NAME}`],
    [{ name: 'a\u001b[2J' }, `name: given "a\\u001b[2J"; allowed: ${NAME}`],
    [{ name: 7 }, `name: given 7; allowed: ${NAME}`],
    [{ name: undefined }, `name: missing; allowed: ${NAME}`],
    [{ workspaceIds: [] }, 'workspaceIds: given an array of 0; allowed: an array of 1 to 50 UUIDs'],
    [{ workspaceIds: ids(51) }, 'workspaceIds: given an array of 51; allowed: an array of 1 to 50 UUIDs'],
    [{ workspaceIds: WORKSPACE_A }, `workspaceIds: given "${WORKSPACE_A}"; allowed: an array of 1 to 50 UUIDs`],
    [{ workspaceIds: [WORKSPACE_A, 'ws-1'] }, 'workspaceIds[1]: given "ws-1"; allowed: a UUID'],
    [{ scopes: [] }, `scopes: given an array of 0; allowed: an array of at least one of ${SCOPES}`],
    [{ scopes: ['calls.write'] }, `scopes[0]: given "calls.write"; allowed: one of ${SCOPES}`],
    [{ perMinute: 0 }, `perMinute: given 0; allowed: ${LIMIT}`],
    [{ perHour: 1_000_000_001 }, `perHour: given 1000000001; allowed: ${LIMIT}`],
    [{ perHour: 1.5 }, `perHour: given 1.5; allowed: ${LIMIT}`],
    [{ perHour: '60' }, `perHour: given "60"; allowed: ${LIMIT}`],
    [{ from: [] }, `from: given an array of 0; allowed: ${FROM}`],
    [{ from: Array.from({ length: 51 }, (_, i) => `10.0.0.${i}`) }, `from: given an array of 51; allowed: ${FROM}`],
    [{ from: '10.0.0.0/8' }, `from: given "10.0.0.0/8"; allowed: ${FROM}`],
    [{ from: ['::1', '10.0.0.0/33'] }, `from[1]: given "10.0.0.0/33"; allowed: ${SUBNET}`],
    [{ from: ['example.com'] }, `from[0]: given "example.com"; allowed: ${SUBNET}`],
    [{ expiresAt: START }, `expiresAt: given "${START}"; allowed: ${EXPIRY}`],
    [{ expiresAt: '2026-02-30T00:00:00Z' }, `expiresAt: given "2026-02-30T00:00:00Z"; allowed: ${EXPIRY}`],
    [{ expiresAt: '2027-01-01T00:00:00' }, `expiresAt: given "2027-01-01T00:00:00"; allowed: ${EXPIRY}`],
    [{ expiresAt: '9999-12-31T23:59:59-00:01' }, `expiresAt: given "9999-12-31T23:59:59-00:01"; allowed: ${EXPIRY}`],
    [{ expiresAt: 1_800_000_000 }, `expiresAt: given 1800000000; allowed: ${EXPIRY}`],
    [
      { expires: '90d' },
      'expires: unknown; allowed members: name, workspaceIds, scopes, perMinute, perHour, expiresAt, from',
    ],
    [{ 'a b': 1 }, '"a b": unknown; allowed members: name, workspaceIds, scopes, perMinute, perHour, expiresAt, from'],
  ])('refuses %j', async (change, fault) => {
    const answer = await call('POST', '/api/keys', { ...WANTED, ...change });
    expect([answer.status, messageOf(answer)]).toEqual([400, faults(fault)]);
    expect(await listed()).toEqual([]);
    expect(await auditOf(gateway)).toEqual([]);
  });
});

describe('GET /api/keys', () => {
  test('lists all keys, without hash or token, each with the time of its last use', async () => {
    const first = await create({ ...WANTED, scopes: ['calls.read'] });
    gateway.clock.advance(1000);
    const second = await create({ ...WANTED, name: 'second' });
    gateway.clock.advance(1000);
    await statusWith(first.token);
    const answer = await call('GET', '/api/keys');
    const used = { keyId: first.keyId, createdAt: START, lastUsedAt: '2026-01-15T12:00:02.000Z' };
    expect([answer.status, answer.json]).toMatchObject([
      200,
      {
        keys: [used, { keyId: second.keyId, name: 'second', createdAt: '2026-01-15T12:00:01.000Z', lastUsedAt: null }],
      },
    ]);
    expect(answer.text).not.toMatch(/hash|token|evg_|[0-9a-f]{64}/);
    expect(answer.json).toMatchObject({ nextCursor: null });
    const one = await call('GET', `/api/keys/${first.keyId}`);
    expect([one.status, one.json]).toMatchObject([
      200,
      { key: keysSchema.parse(answer.json).keys[0], lastHour: { since: START, requests: 1, refused: 0 } },
    ]);
  });

  test.each([
    ['GET', '', undefined],
    ['PATCH', '', { status: 'deprecated' }],
    ['DELETE', '', undefined],
    ['POST', '/rotate', {}],
  ])('%s of a key%s that is not there is 404', async (method, suffix, body) => {
    const answer = await call(method, `/api/keys/key_none${suffix}`, body);
    expect([answer.status, messageOf(answer)]).toEqual([
      404,
      'There is no key with the id key_none. GET /api/keys lists the ids.',
    ]);
    expect(await auditOf(gateway)).toEqual([]);
  });

  test('a path that holds no id, or the key itself, is 404 and never repeated', async () => {
    const { token } = await create();
    for (const wrong of [token, 'a%20b', '%ff', 'x'.repeat(65)]) {
      const answer = await call('DELETE', `/api/keys/${wrong}`);
      expect([answer.status, messageOf(answer)]).toEqual([
        404,
        'The path holds no key id: that is 1 to 64 characters of A-Z, a-z, 0-9, _ and -, and not the key itself. GET /api/keys lists the ids.',
      ]);
    }
    expect(gateway.logLines.join('')).not.toContain(token);
  });
});

describe('the status of a key', () => {
  test('PATCH deprecates and activates, each once in the audit; the holder sees it at once', async () => {
    const { keyId, token } = await create({ ...WANTED, scopes: ['calls.read'] });
    for (let time = 0; time < 2; time += 1) {
      const deprecated = await call('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' });
      expect([deprecated.status, deprecated.json]).toMatchObject([200, { key: { keyId, status: 'deprecated' } }]);
      expect(await statusWith(token)).toBe(403);
    }
    gateway.clock.advance(1000);
    const active = await call('PATCH', `/api/keys/${keyId}`, { status: 'active' });
    expect(active.json).toMatchObject({ key: { keyId, status: 'active' } });
    expect(await statusWith(token)).toBe(200);
    const at = '2026-01-15T12:00:01.000Z';
    const about = { who: 'alice', target: keyId };
    const [on, off] = [{ status: 'active' }, { status: 'deprecated' }];
    expect(await auditOf(gateway)).toMatchObject([
      { ...about, at, action: 'key.activate', from: off, to: on },
      { ...about, at: START, action: 'key.deprecate', from: on, to: off },
      { action: 'key.create' },
    ]);
  });

  test('DELETE revokes and keeps the record, once in the audit', async () => {
    const { keyId, token } = await create({ ...WANTED, scopes: ['calls.read'] });
    for (let time = 0; time < 2; time += 1) {
      const answer = await call('DELETE', `/api/keys/${keyId}`);
      expect([answer.status, answer.json]).toMatchObject([
        200,
        { key: { keyId, status: 'revoked', name: 'CRM sync' } },
      ]);
    }
    expect((await call('GET', `/api/keys/${keyId}`)).json).toMatchObject({ key: { status: 'revoked' } });
    expect(await statusWith(token)).toBe(403);
    expect(await auditOf(gateway)).toMatchObject([
      { action: 'key.revoke', target: keyId, from: { status: 'active' }, to: { status: 'revoked' } },
      { action: 'key.create' },
    ]);
  });
});

describe('POST /api/keys/{keyId}/rotate', () => {
  test.each([
    [{ overlap: '2h' }, '2026-01-15T14:00:00.000Z'],
    [{ overlap: '0s' }, START],
    [{ overlap: '365d' }, '2027-01-15T12:00:00.000Z'],
    [{}, '2026-01-16T12:00:00.000Z'],
  ])('with %j issues a successor on the same quota and ends the old key at %s', async (body, endsAt) => {
    const { keyId, token } = await create({ ...WANTED, scopes: ['calls.read'] });
    const answer = await call('POST', `/api/keys/${keyId}/rotate`, body);
    expect(answer.status).toBe(201);
    const successor = issuedSchema.parse(answer.json);
    expect(answer.headers['location']).toBe(`/api/keys/${successor.key.keyId}`);
    expect(answer.json).toMatchObject({ key: { name: 'CRM sync', status: 'active', quotaId: keyId, expiresAt: null } });
    expect((await call('GET', `/api/keys/${keyId}`)).json).toMatchObject({ key: { expiresAt: endsAt } });
    gateway.clock.advance(Date.parse(endsAt) - Date.parse(START));
    expect([await statusWith(token), await statusWith(successor.token)]).toEqual([403, 200]);
    expect(await auditOf(gateway)).toMatchObject([
      {
        who: 'alice',
        action: 'key.rotate',
        target: keyId,
        from: { expiresAt: null },
        to: { expiresAt: endsAt, successor: successor.key.keyId },
      },
      { action: 'key.create' },
    ]);
  });

  test.each(['', '24', '1w', '-1s', '1.5h', '366d', 86_400])('the overlap %j is 400', async (overlap) => {
    const { keyId } = await create();
    const answer = await call('POST', `/api/keys/${keyId}/rotate`, { overlap });
    const allowed = 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 24h or 7d';
    expect([answer.status, messageOf(answer)]).toEqual([
      400,
      faults(`overlap: given ${JSON.stringify(overlap)}; allowed: ${allowed}`),
    ]);
    expect(await listed()).toEqual([keyId]);
  });

  test('a key that is not active is 409 with the reason', async () => {
    const { keyId } = await create();
    await call('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' });
    const answer = await call('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' });
    expect([answer.status, messageOf(answer)]).toEqual([
      409,
      `Key ${keyId} is deprecated; only an active key can be rotated. Create a new key instead.`,
    ]);
    expect(await listed()).toEqual([keyId]);
  });
});

describe('POST /api/keys/import', () => {
  test('takes keys over as they are, and again; their holders are let in', async () => {
    const whole = {
      ...IMPORTED,
      keyId: 'legacy_2',
      hash: hashToken('other-key').toUpperCase(),
      status: 'deprecated',
      workspaceIds: [WORKSPACE_A.toUpperCase()],
      expiresAt: '2020-01-01T00:00:00Z',
      createdAt: '2019-05-05T05:05:05+02:00',
      limits: { perMinute: 5, perHour: 50 },
      from: ['10.0.0.0/8'],
      quotaId: 'shared',
    };
    const first = await importKeys(IMPORTED, whole);
    expect([first.status, first.json]).toEqual([200, { added: 2, replaced: 0, unchanged: 0, leftOut: 0 }]);
    const again = await importKeys({ ...IMPORTED, limits: { perHour: 7 } }, whole);
    expect([again.status, again.json]).toEqual([200, { added: 0, replaced: 1, unchanged: 1, leftOut: 0 }]);
    const alike = { name: 'Legacy', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'], lastUsedAt: null };
    expect((await call('GET', '/api/keys')).json).toEqual({
      nextCursor: null,
      keys: [
        {
          ...alike,
          keyId: 'legacy_2',
          status: 'deprecated',
          createdAt: '2019-05-05T03:05:05.000Z',
          expiresAt: '2020-01-01T00:00:00.000Z',
          limits: { perMinute: 5, perHour: 50 },
          from: ['10.0.0.0/8'],
          quotaId: 'shared',
        },
        {
          ...alike,
          keyId: 'legacy_1',
          status: 'active',
          createdAt: START,
          expiresAt: null,
          limits: { perMinute: null, perHour: 7 },
          from: null,
          quotaId: 'legacy_1',
        },
      ],
    });
    expect([await statusWith('legacy-key'), await statusWith('other-key')]).toEqual([200, 403]);
    const entry = { at: START, who: 'alice', action: 'key.import', target: 'keys', from: null };
    expect(await auditOf(gateway)).toEqual([
      { ...entry, to: { added: 0, replaced: 1, keyIds: ['legacy_1', 'legacy_2'] } },
      { ...entry, to: { added: 2, replaced: 0, keyIds: ['legacy_1', 'legacy_2'] } },
    ]);
  });

  test('a line without addresses leaves those of the key, null takes them away', async () => {
    for (const [more, from] of [
      [{ from: ['10.1.0.0/16'] }, ['10.1.0.0/16']],
      [{}, ['10.1.0.0/16']],
      [{ from: null }, null],
    ] as const) {
      expect((await importKeys({ ...IMPORTED, ...more })).status).toBe(200);
      expect((await call('GET', '/api/keys/legacy_1')).json).toMatchObject({ key: { from } });
    }
  });

  test('takes none if one is faulty, lists all faults, and never repeats what may be a secret', async () => {
    const token = 'evg_ThisIsAKeyThatSomeonePastedInPlaceOfItsHash';
    const answer = await importKeys(
      IMPORTED,
      { ...IMPORTED, keyId: token, hash: token, limits: { perMinute: 0, burst: 1 }, status: 'ACTIVE' },
      { ...IMPORTED, name: 'the same once more' },
      'legacy_4',
      { ...IMPORTED, keyId: 'legacy_5', hash: hashToken('5'), token: 'x', createdAt: 'yesterday' },
    );
    expect(answer.status).toBe(400);
    const time = 'a time in ISO 8601 with its offset, in the years 1970 to 9999';
    const members =
      'keyId, hash, name, status, workspaceIds, scopes, expiresAt, createdAt, limits, from, quotaId, ownExpiresAt';
    expect(messageOf(answer)).toBe(
      faults(
        'keys[1].keyId: given a text of 47 characters; allowed: a text of 1 to 64 characters of A-Z, a-z, 0-9, _ and -, and never a key itself',
        'keys[1].hash: given a text of 47 characters; allowed: the SHA-256 of the key as 64 hexadecimal digits',
        'keys[1].status: given "ACTIVE"; allowed: active, deprecated, revoked',
        "keys[1].limits.perMinute: given 0; allowed: an integer from 1 to 10^9, or null for the gateway's own",
        'keys[1].limits.burst: unknown; allowed members: perMinute, perHour',
        'keys[2].keyId: the same as that of keys[0]; allowed: each keyId once',
        'keys[2].hash: the same as that of keys[0]; allowed: each hash once',
        'keys[3]: given "legacy_4"; allowed: a JSON object',
        `keys[4].createdAt: given "yesterday"; allowed: ${time}`,
        `keys[4].token: unknown; allowed members: ${members}`,
      ),
    );
    expect(answer.text).not.toContain(token);
    expect(await listed()).toEqual([]);
    expect(await auditOf(gateway)).toEqual([]);
  });

  test('a key whose hash belongs to another is 409, and none is taken', async () => {
    await importKeys(IMPORTED);
    const other = { ...IMPORTED, keyId: 'legacy_3', hash: hashToken('3') };
    const answer = await importKeys(other, { ...IMPORTED, keyId: 'legacy_9' });
    expect([answer.status, messageOf(answer)]).toEqual([
      409,
      'Nothing was imported: 1 key is refused.\n- keys[1]: The hash of key legacy_9 is already that of key legacy_1.',
    ]);
    expect(await listed()).toEqual(['legacy_1']);
  });

  test.each([
    [{}, 'keys: missing; allowed: an array of 1 to 5000 keys'],
    [{ keys: [] }, 'keys: given an array of 0; allowed: an array of 1 to 5000 keys'],
    [
      { keys: Array.from({ length: 5001 }, () => 0) },
      'keys: given an array of 5001; allowed: an array of 1 to 5000 keys',
    ],
    [{ keys: IMPORTED }, 'keys: given an object; allowed: an array of 1 to 5000 keys'],
  ])('the body %# is 400', async (body, fault) => {
    const answer = await call('POST', '/api/keys/import', body);
    expect([answer.status, messageOf(answer)]).toEqual([400, faults(fault)]);
  });

  test('of very many faults the first thousand are listed', async () => {
    const lines = messageOf(await importKeys(...Array.from({ length: 1002 }, () => 7))).split('\n');
    expect(lines).toHaveLength(1002);
    expect(lines[0]).toBe('The body has 1002 faults; nothing was changed.');
    expect(lines.slice(1000)).toEqual(['- keys[999]: given 7; allowed: a JSON object', '- and 2 more']);
  });

  test('the same file again undoes no change of an operator to what it leaves out', async () => {
    await importKeys(IMPORTED);
    const changes = { status: 'deprecated', perMinute: 7, expiresAt: '2099-01-01T00:00:00.000Z' };
    await call('PATCH', `/api/keys/${IMPORTED.keyId}`, changes);
    const changed = await call('GET', `/api/keys/${IMPORTED.keyId}`);
    expect((await importKeys(IMPORTED)).json).toEqual({ added: 0, replaced: 0, unchanged: 1, leftOut: 0 });
    expect((await call('GET', `/api/keys/${IMPORTED.keyId}`)).json).toEqual(changed.json);
    const rest = { ...IMPORTED, status: 'active', expiresAt: null, limits: null };
    expect((await importKeys(rest)).json).toEqual({ added: 0, replaced: 1, unchanged: 0, leftOut: 0 });
  });

  test('a large import is one audit entry of bounded size', async () => {
    const keys = Array.from({ length: 150 }, (_, index) => ({
      ...IMPORTED,
      keyId: `k${index}`,
      hash: hashToken(String(index)),
    }));
    expect((await importKeys(...keys)).json).toEqual({ added: 150, replaced: 0, unchanged: 0, leftOut: 0 });
    expect(await auditOf(gateway)).toMatchObject([{ to: { keyIds: keys.slice(0, 100).map(({ keyId }) => keyId) } }]);
  });
});

test('K2: no key, no hash and no admin token ever stands in the audit or the log', async () => {
  const { keyId, token } = await create();
  await call('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' });
  await importKeys(IMPORTED);
  await call('PATCH', `/api/keys/${keyId}`, { status: token });
  const written = JSON.stringify(await auditOf(gateway)) + gateway.logLines.join('');
  expect(written).toContain('key.rotate');
  expect(written).not.toMatch(/evg_|[0-9a-f]{64}|correct-horse/);
});
