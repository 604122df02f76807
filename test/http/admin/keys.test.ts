import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type ApiKey, KeyStateError, RegistryUnavailableError } from '../../../src/keys/key.ts';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type Answer, messageOf, type RunningAdmin, START, startAdmin, TOKEN, WORKSPACE } from './harness.ts';

const OTHER_WORKSPACE = '7f9d2c44-1111-4222-8333-944455556666';
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };
const WANTED = { name: 'CRM sync', workspaceIds: [WORKSPACE], scopes: ['reports.read'] };
const HASH = createHash('sha256').update('legacy-key').digest('hex');
const IMPORTED = { keyId: 'legacy_1', hash: HASH, name: 'Legacy', workspaceIds: [WORKSPACE], scopes: ['calls.read'] };

let admin: RunningAdmin;
beforeEach(async () => {
  admin = await startAdmin({ tokens: [{ name: 'ops', token: TOKEN }] });
});
afterEach(() => admin.close());

function call(method: string, path: string, value?: unknown): Promise<Answer> {
  return admin.call(method, path, value, AUTHORIZED);
}

function importKeys(...keys: unknown[]): Promise<Answer> {
  return call('POST', '/api/keys/import', { keys });
}

function ids(count: number): string[] {
  return Array.from({ length: count }, () => WORKSPACE);
}

const issued = z.object({ key: z.object({ keyId: z.string() }), token: z.string() });
async function create(value: unknown = WANTED): Promise<{ keyId: string; token: string }> {
  const answer = await call('POST', '/api/keys', value);
  expect(answer.status).toBe(201);
  const { key, token } = issued.parse(answer.json);
  return { keyId: key.keyId, token };
}

async function auditEntries(): Promise<unknown> {
  const answer = await call('GET', '/api/audit');
  return z.object({ entries: z.array(z.unknown()) }).parse(answer.json).entries;
}

describe('POST /api/keys', () => {
  test('issues a key with the defaults of what is left out', async () => {
    const answer = await call('POST', '/api/keys', WANTED);
    expect(answer.status).toBe(201);
    const { key, token } = issued.parse(answer.json);
    expect(token).toMatch(/^evg_[0-9A-Za-z]{38}$/);
    expect(answer.headers['location']).toBe(`/api/keys/${key.keyId}`);
    expect(answer.json).toEqual({
      key: {
        keyId: key.keyId,
        name: 'CRM sync',
        status: 'active',
        workspaceIds: [WORKSPACE],
        scopes: ['reports.read'],
        createdAt: START,
        expiresAt: null,
        limits: { perMinute: null, perHour: null },
        quotaId: key.keyId,
        lastUsedAt: null,
      },
      token,
    });
    const hash = createHash('sha256').update(token).digest('hex');
    expect((await admin.registry.find(hash))?.keyId).toBe(key.keyId);
    expect(await auditEntries()).toEqual([
      {
        at: START,
        who: 'ops',
        action: 'key.create',
        target: key.keyId,
        from: null,
        to: {
          name: 'CRM sync',
          status: 'active',
          workspaceIds: [WORKSPACE],
          scopes: ['reports.read'],
          limits: { perMinute: null, perHour: null },
          expiresAt: null,
        },
      },
    ]);
  });

  test('takes limits and an expiry, and makes workspaces lower case and nothing double', async () => {
    const answer = await call('POST', '/api/keys', {
      name: '👩‍🚀'.repeat(33) + 'x',
      workspaceIds: [WORKSPACE.toUpperCase(), OTHER_WORKSPACE, WORKSPACE],
      scopes: ['calls.read', 'coaching.read', 'calls.read'],
      perMinute: 1,
      perHour: 1_000_000_000,
      expiresAt: '2026-01-15T13:00:00.001+01:00',
    });
    expect(answer.status).toBe(201);
    expect(answer.json).toMatchObject({
      key: {
        workspaceIds: [WORKSPACE, OTHER_WORKSPACE],
        scopes: ['calls.read', 'coaching.read'],
        limits: { perMinute: 1, perHour: 1_000_000_000 },
        expiresAt: '2026-01-15T12:00:00.001Z',
      },
    });
  });

  test('null limits and a null expiry are none', async () => {
    const answer = await call('POST', '/api/keys', { ...WANTED, perMinute: null, perHour: null, expiresAt: null });
    expect(answer.json).toMatchObject({ key: { limits: { perMinute: null, perHour: null }, expiresAt: null } });
  });

  const NAME = 'a text of 1 to 100 characters that is not blank and has no control characters';
  const LIMIT = "an integer from 1 to 10^9, or null for the gateway's own";
  const EXPIRY = `a time in ISO 8601 with its offset, after ${START} and at most in the year 9999, or null for never`;
  const SCOPES = 'reports.read, calls.read, coaching.read';
  const TOO_LONG = 'x'.repeat(101);
  test.each([
    [{ name: '' }, `name: given ""; allowed: ${NAME}`],
    [{ name: ' \u00a0' }, `name: given " \u00a0"; allowed: ${NAME}`],
    [{ name: TOO_LONG }, `name: given "${'x'.repeat(60)}..."; allowed: ${NAME}`],
    [{ name: 'a\u001b[2J' }, `name: given "a\\u001b[2J"; allowed: ${NAME}`],
    [{ name: 7 }, `name: given 7; allowed: ${NAME}`],
    [{ name: undefined }, `name: missing; allowed: ${NAME}`],
    [{ workspaceIds: [] }, 'workspaceIds: given an array of 0; allowed: an array of 1 to 50 UUIDs'],
    [{ workspaceIds: ids(51) }, 'workspaceIds: given an array of 51; allowed: an array of 1 to 50 UUIDs'],
    [{ workspaceIds: WORKSPACE }, `workspaceIds: given "${WORKSPACE}"; allowed: an array of 1 to 50 UUIDs`],
    [{ workspaceIds: [WORKSPACE, 'ws-1'] }, 'workspaceIds[1]: given "ws-1"; allowed: a UUID'],
    [{ scopes: [] }, `scopes: given an array of 0; allowed: an array of at least one of ${SCOPES}`],
    [{ scopes: ['calls.write'] }, `scopes[0]: given "calls.write"; allowed: one of ${SCOPES}`],
    [{ perMinute: 0 }, `perMinute: given 0; allowed: ${LIMIT}`],
    [{ perHour: 1_000_000_001 }, `perHour: given 1000000001; allowed: ${LIMIT}`],
    [{ perHour: 1.5 }, `perHour: given 1.5; allowed: ${LIMIT}`],
    [{ perHour: '60' }, `perHour: given "60"; allowed: ${LIMIT}`],
    [{ expiresAt: START }, `expiresAt: given "${START}"; allowed: ${EXPIRY}`],
    [{ expiresAt: '2026-02-30T00:00:00Z' }, `expiresAt: given "2026-02-30T00:00:00Z"; allowed: ${EXPIRY}`],
    [{ expiresAt: '2027-01-01T00:00:00' }, `expiresAt: given "2027-01-01T00:00:00"; allowed: ${EXPIRY}`],
    [{ expiresAt: '9999-12-31T23:59:59-00:01' }, `expiresAt: given "9999-12-31T23:59:59-00:01"; allowed: ${EXPIRY}`],
    [{ expiresAt: 1_800_000_000 }, `expiresAt: given 1800000000; allowed: ${EXPIRY}`],
    [
      { expires: '90d' },
      'expires: unknown; allowed members: name, workspaceIds, scopes, perMinute, perHour, expiresAt',
    ],
  ])('refuses %j', async (change, fault) => {
    const answer = await call('POST', '/api/keys', { ...WANTED, ...change });
    expect([answer.status, messageOf(answer)]).toEqual([400, `The body has 1 fault; nothing was changed.\n- ${fault}`]);
    expect(await admin.registry.list()).toEqual([]);
    expect(await auditEntries()).toEqual([]);
  });

  test('the latest expiry is the last millisecond of the year 9999, the longest workspace list 50', async () => {
    const answer = await call('POST', '/api/keys', {
      ...WANTED,
      workspaceIds: ids(50),
      expiresAt: '9999-12-31T23:59:59.999Z',
    });
    expect(answer.status).toBe(201);
    expect(answer.json).toMatchObject({ key: { expiresAt: '9999-12-31T23:59:59.999Z' } });
  });

  test('lists all faults at once', async () => {
    const answer = await call('POST', '/api/keys', { workspaceIds: ['x', 'y'], perMinute: -1, colour: 'red' });
    expect(messageOf(answer).split('\n')).toEqual([
      'The body has 6 faults; nothing was changed.',
      `- name: missing; allowed: ${NAME}`,
      '- workspaceIds[0]: given "x"; allowed: a UUID',
      '- workspaceIds[1]: given "y"; allowed: a UUID',
      `- scopes: missing; allowed: an array of at least one of ${SCOPES}`,
      `- perMinute: given -1; allowed: ${LIMIT}`,
      '- colour: unknown; allowed members: name, workspaceIds, scopes, perMinute, perHour, expiresAt',
    ]);
  });
});

describe('GET /api/keys', () => {
  test('lists all keys, without hash or token', async () => {
    const first = await create();
    admin.clock.advance(1000);
    const second = await create({ ...WANTED, name: 'second' });
    const answer = await call('GET', '/api/keys');
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      keys: [
        { keyId: first.keyId, name: 'CRM sync', createdAt: START },
        { keyId: second.keyId, name: 'second', createdAt: '2026-01-15T12:00:01.000Z' },
      ],
    });
    expect(answer.text).not.toMatch(/hash|token|evg_|[0-9a-f]{64}/);
  });

  test('one key is shown by its id, with the time of its last use', async () => {
    const { keyId } = await create();
    const key = await admin.registry.get(keyId);
    admin.clock.advance(2000);
    if (key !== null) admin.registry.touch(key);
    const answer = await call('GET', `/api/keys/${keyId}`);
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({
      key: {
        keyId,
        name: 'CRM sync',
        status: 'active',
        workspaceIds: [WORKSPACE],
        scopes: ['reports.read'],
        createdAt: START,
        expiresAt: null,
        limits: { perMinute: null, perHour: null },
        quotaId: keyId,
        lastUsedAt: '2026-01-15T12:00:02.000Z',
      },
    });
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
    expect(await auditEntries()).toEqual([]);
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
    expect(JSON.stringify(admin.log)).not.toContain(token);
  });
});

describe('PATCH /api/keys/{keyId}', () => {
  test('deprecates a key and makes it active again, each once in the audit', async () => {
    const { keyId } = await create();
    const deprecated = await call('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' });
    expect(deprecated.status).toBe(200);
    expect(deprecated.json).toMatchObject({ key: { keyId, status: 'deprecated' } });
    expect((await call('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' })).status).toBe(200);
    admin.clock.advance(1000);
    const active = await call('PATCH', `/api/keys/${keyId}`, { status: 'active' });
    expect(active.json).toMatchObject({ key: { keyId, status: 'active' } });
    expect(await auditEntries()).toMatchObject([
      {
        at: '2026-01-15T12:00:01.000Z',
        action: 'key.activate',
        from: { status: 'deprecated' },
        to: { status: 'active' },
      },
      { at: START, who: 'ops', action: 'key.deprecate', target: keyId, from: { status: 'active' } },
      { action: 'key.create' },
    ]);
  });

  test('does not revoke, nor change anything else', async () => {
    const { keyId } = await create();
    const revoking = await call('PATCH', `/api/keys/${keyId}`, { status: 'revoked' });
    expect([revoking.status, messageOf(revoking)]).toEqual([
      400,
      'The body has 1 fault; nothing was changed.\n- status: given "revoked"; allowed: active or deprecated (to revoke a key, DELETE it)',
    ]);
    const renaming = await call('PATCH', `/api/keys/${keyId}`, { status: 'active', name: 'x' });
    expect(messageOf(renaming)).toContain('\n- name: unknown; allowed members: status');
  });

  test('a revoked key stays revoked: 409', async () => {
    const { keyId } = await create();
    await call('DELETE', `/api/keys/${keyId}`);
    const answer = await call('PATCH', `/api/keys/${keyId}`, { status: 'active' });
    expect([answer.status, messageOf(answer)]).toEqual([
      409,
      `Key ${keyId} is revoked, and a revoked key stays revoked. Create a new key instead.`,
    ]);
    expect((await admin.registry.get(keyId))?.status).toBe('revoked');
    expect(await auditEntries()).toMatchObject([{ action: 'key.revoke' }, { action: 'key.create' }]);
  });
});

describe('DELETE /api/keys/{keyId}', () => {
  test('revokes and keeps the record; a second time changes nothing', async () => {
    const { keyId } = await create();
    for (let time = 0; time < 2; time += 1) {
      const answer = await call('DELETE', `/api/keys/${keyId}`);
      expect(answer.status).toBe(200);
      expect(answer.json).toMatchObject({ key: { keyId, status: 'revoked', name: 'CRM sync' } });
    }
    expect((await call('GET', `/api/keys/${keyId}`)).json).toMatchObject({ key: { status: 'revoked' } });
    expect(await auditEntries()).toMatchObject([
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
    const { keyId, token } = await create();
    const answer = await call('POST', `/api/keys/${keyId}/rotate`, body);
    expect(answer.status).toBe(201);
    const successor = issued.parse(answer.json);
    expect(successor.token).not.toBe(token);
    expect(answer.headers['location']).toBe(`/api/keys/${successor.key.keyId}`);
    expect(answer.json).toMatchObject({ key: { name: 'CRM sync', status: 'active', quotaId: keyId, expiresAt: null } });
    expect((await call('GET', `/api/keys/${keyId}`)).json).toMatchObject({ key: { expiresAt: endsAt } });
    expect(await auditEntries()).toMatchObject([
      {
        who: 'ops',
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
    expect([answer.status, messageOf(answer)]).toEqual([
      400,
      `The body has 1 fault; nothing was changed.\n- overlap: given ${JSON.stringify(overlap)}; allowed: a duration from 0s to 365d, such as 250ms, 30s, 5m, 24h or 7d`,
    ]);
    expect(await admin.registry.list()).toHaveLength(1);
  });

  test('a key that is not active is 409 with the reason', async () => {
    const { keyId } = await create();
    await call('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' });
    const answer = await call('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' });
    expect([answer.status, messageOf(answer)]).toEqual([
      409,
      `Key ${keyId} is deprecated; only an active key can be rotated. Create a new key instead.`,
    ]);
    expect(await admin.registry.list()).toHaveLength(1);
  });
});

describe('POST /api/keys/import', () => {
  test('takes keys over as they are, and again', async () => {
    const whole = {
      ...IMPORTED,
      keyId: 'legacy_2',
      hash: HASH.replace(/./, '0').toUpperCase(),
      status: 'deprecated',
      workspaceIds: [WORKSPACE.toUpperCase()],
      expiresAt: '2020-01-01T00:00:00Z',
      createdAt: '2019-05-05T05:05:05+02:00',
      limits: { perMinute: 5, perHour: 50 },
      quotaId: 'shared',
    };
    const first = await importKeys(IMPORTED, whole);
    expect([first.status, first.json]).toEqual([200, { added: 2, replaced: 0 }]);
    const again = await importKeys({ ...IMPORTED, limits: { perHour: 7 } });
    expect([again.status, again.json]).toEqual([200, { added: 0, replaced: 1 }]);
    expect((await call('GET', '/api/keys')).json).toEqual({
      keys: [
        {
          keyId: 'legacy_2',
          name: 'Legacy',
          status: 'deprecated',
          workspaceIds: [WORKSPACE],
          scopes: ['calls.read'],
          createdAt: '2019-05-05T03:05:05.000Z',
          expiresAt: '2020-01-01T00:00:00.000Z',
          limits: { perMinute: 5, perHour: 50 },
          quotaId: 'shared',
          lastUsedAt: null,
        },
        {
          keyId: 'legacy_1',
          name: 'Legacy',
          status: 'active',
          workspaceIds: [WORKSPACE],
          scopes: ['calls.read'],
          createdAt: START,
          expiresAt: null,
          limits: { perMinute: null, perHour: 7 },
          quotaId: 'legacy_1',
          lastUsedAt: null,
        },
      ],
    });
    expect((await admin.registry.find(HASH))?.keyId).toBe('legacy_1');
    expect((await admin.registry.find(HASH.replace(/./, '0')))?.keyId).toBe('legacy_2');
    const entry = { at: START, who: 'ops', action: 'key.import', target: 'keys', from: null };
    expect(await auditEntries()).toEqual([
      { ...entry, to: { added: 0, replaced: 1, keyIds: ['legacy_1'] } },
      { ...entry, to: { added: 2, replaced: 0, keyIds: ['legacy_1', 'legacy_2'] } },
    ]);
  });

  test('takes none where one is faulty, lists all faults, and never repeats what may be a secret', async () => {
    const token = 'evg_ThisIsAKeyThatSomeonePastedInPlaceOfItsHash';
    const answer = await importKeys(
      IMPORTED,
      { ...IMPORTED, keyId: token, hash: token, limits: { perMinute: 0, burst: 1 }, status: 'ACTIVE' },
      { ...IMPORTED, name: 'the same once more' },
      'legacy_4',
      { ...IMPORTED, keyId: 'legacy_5', hash: HASH.replace(/./, '5'), token: 'x', createdAt: 'yesterday' },
    );
    expect(answer.status).toBe(400);
    const time = 'a time in ISO 8601 with its offset, in the years 1970 to 9999';
    const members = 'keyId, hash, status, expiresAt, createdAt, limits, quotaId';
    expect(messageOf(answer).split('\n')).toEqual([
      'The body has 10 faults; nothing was changed.',
      '- keys[1].keyId: given a text of 47 characters; allowed: a text of 1 to 64 characters of A-Z, a-z, 0-9, _ and -, and never a key itself',
      '- keys[1].hash: given a text of 47 characters; allowed: the SHA-256 of the key as 64 hexadecimal digits',
      '- keys[1].status: given "ACTIVE"; allowed: active, deprecated, revoked',
      "- keys[1].limits.perMinute: given 0; allowed: an integer from 1 to 10^9, or null for the gateway's own",
      '- keys[1].limits.burst: unknown; allowed members: perMinute, perHour',
      '- keys[2].keyId: the same as that of keys[0]; allowed: each keyId once',
      '- keys[2].hash: the same as that of keys[0]; allowed: each hash once',
      '- keys[3]: given "legacy_4"; allowed: a JSON object',
      `- keys[4].createdAt: given "yesterday"; allowed: ${time}`,
      `- keys[4].token: unknown; allowed members: name, workspaceIds, scopes, ${members}`,
    ]);
    expect(answer.text).not.toContain(token);
    expect(await admin.registry.list()).toEqual([]);
    expect(await auditEntries()).toEqual([]);
  });

  test('a key whose hash belongs to another is 409, and none is taken', async () => {
    await importKeys(IMPORTED);
    const other = { ...IMPORTED, keyId: 'legacy_3', hash: HASH.replace(/./, '3') };
    const answer = await importKeys(other, { ...IMPORTED, keyId: 'legacy_9' });
    expect([answer.status, messageOf(answer)]).toEqual([
      409,
      'The hash of key legacy_9 is already that of key legacy_1.',
    ]);
    expect((await admin.registry.list()).map((key: ApiKey) => key.keyId)).toEqual(['legacy_1']);
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
    expect([answer.status, messageOf(answer)]).toEqual([400, `The body has 1 fault; nothing was changed.\n- ${fault}`]);
  });

  test('of very many faults the first thousand are listed', async () => {
    const answer = await importKeys(...Array.from({ length: 1002 }, () => 7));
    const lines = messageOf(answer).split('\n');
    expect(lines).toHaveLength(1002);
    expect(lines[0]).toBe('The body has 1002 faults; nothing was changed.');
    expect(lines[1000]).toBe('- keys[999]: given 7; allowed: a JSON object');
    expect(lines[1001]).toBe('- and 2 more');
  });

  test('a large import is one audit entry of bounded size', async () => {
    const keys = Array.from({ length: 150 }, (_, index) => ({
      ...IMPORTED,
      keyId: `k${index}`,
      hash: createHash('sha256').update(String(index)).digest('hex'),
    }));
    expect((await importKeys(...keys)).json).toEqual({ added: 150, replaced: 0 });
    expect(await auditEntries()).toMatchObject([{ to: { keyIds: keys.slice(0, 100).map((key) => key.keyId) } }]);
  });
});

describe('when the registry does not play along', () => {
  test('a registry that cannot be asked is 503, and the log has the reason', async () => {
    const registry = Object.assign(createMemoryRegistry({ clock: new ManualClock() }), {
      list: () => Promise.reject(new RegistryUnavailableError('connect ECONNREFUSED 10.0.0.3')),
    });
    const down = await startAdmin({ registry });
    const answer = await down.get('/api/keys');
    await down.close();
    expect([answer.status, messageOf(answer)]).toEqual([
      503,
      'The key registry cannot be asked at the moment. GET /readyz tells which dependency is down; try again when it is back.',
    ]);
    expect(answer.text).not.toContain('10.0.0.3');
    expect(down.log).toMatchObject([
      {
        level: 'error',
        fields: {
          route: '/api/keys',
          status: 503,
          who: 'anonymous',
          reason: 'the key registry is unavailable: connect ECONNREFUSED 10.0.0.3',
        },
      },
    ]);
    expect(await down.audit.entries()).toEqual([]);
  });

  test('a change without an answer may have been made: the caller is told so, and the audit has it', async () => {
    const registry = Object.assign(createMemoryRegistry({ clock: new ManualClock() }), {
      create: () => Promise.reject(new RegistryUnavailableError('no answer from 10.0.0.3')),
    });
    const down = await startAdmin({ registry });
    const answer = await down.call('POST', '/api/keys', WANTED);
    const audited = await down.audit.entries();
    await down.close();
    expect([answer.status, messageOf(answer)]).toEqual([
      503,
      'What the gateways share gave no answer in time, so it is not known whether the change was made. GET /readyz tells which dependency is down; look whether it was made before you repeat it.',
    ]);
    expect(audited).toMatchObject([
      {
        action: 'key.create',
        target: WANTED.name,
        from: null,
        to: { outcome: 'unknown', asked: { name: WANTED.name, workspaceIds: WANTED.workspaceIds } },
      },
    ]);
    expect(JSON.stringify(down.log)).toContain('outcome unknown: no answer');
  });

  test('a status that the registry left as it was is 409', async () => {
    const registry = createMemoryRegistry({ clock: new ManualClock() });
    const stubborn = await startAdmin({
      registry: Object.assign(registry, { setStatus: registry.get.bind(registry) }),
    });
    const { key } = await registry.create({ ...NEW, scopes: ['calls.read'] });
    const answer = await stubborn.call('DELETE', `/api/keys/${key.keyId}`);
    await stubborn.close();
    expect([answer.status, messageOf(answer)]).toEqual([
      409,
      `The key ${key.keyId} is active and stays so; it cannot be made revoked. Create another key instead.`,
    ]);
    expect(await stubborn.audit.entries()).toEqual([]);
  });

  test('what a key’s state forbids is 409 with the message of the registry', async () => {
    const registry = Object.assign(createMemoryRegistry({ clock: new ManualClock() }), {
      create: () => Promise.reject(new KeyStateError('No more keys for this workspace.')),
    });
    const full = await startAdmin({ registry });
    const answer = await full.call('POST', '/api/keys', WANTED);
    await full.close();
    expect([answer.status, messageOf(answer)]).toEqual([409, 'No more keys for this workspace.']);
  });
});

const NEW = {
  name: 'n',
  workspaceIds: [WORKSPACE],
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
};

test('no token and no hash ever stands in the audit or the log', async () => {
  const { keyId, token } = await create();
  await call('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' });
  await call('POST', '/api/keys/import', { keys: [IMPORTED] });
  await call('PATCH', `/api/keys/${keyId}`, { status: token });
  const written = JSON.stringify([await admin.audit.entries(), admin.log]);
  expect(written).toContain('key.rotate');
  expect(written).not.toMatch(/evg_|[0-9a-f]{64}/);
  expect(written).not.toContain(TOKEN);
});
