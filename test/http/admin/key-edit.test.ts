/** PATCH /api/keys/{id}: what it changes, in force at once, and what the audit has of it. */
import { beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../../support/opened.ts';
import { auditOf, faults, messageOf, START, TOKENS } from '../../support/admin.ts';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

let gateway: TestGateway;
let keyId: string;
let token: string;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: TOKENS }));
  ({ keyId, token } = await gateway.issue({ name: 'old', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] }));
});

const edit = (body: unknown): Promise<Reply> => gateway.admin('PATCH', `/api/keys/${keyId}`, body);
const ownSchema = z.object({ key: z.record(z.string(), z.unknown()) });

/** The key as its holder sees it. */
async function own(): Promise<Readonly<Record<string, unknown>>> {
  return ownSchema.parse((await gateway.get('/v2/key', { key: token })).json).key;
}

const EXPIRY = '2026-02-01T00:00:00.000Z';
/** Each member of a key that changes, before and after. */
type Changed = Readonly<Record<string, readonly [before: unknown, after: unknown]>>;

test.each<[body: object, changed: Changed, seen: object]>([
  [{ name: 'new' }, { name: ['old', 'new'] }, { name: 'new' }],
  [
    { workspaceIds: [WORKSPACE_B.toUpperCase(), WORKSPACE_B] },
    { workspaceIds: [[WORKSPACE_A], [WORKSPACE_B]] },
    { workspace_ids: [WORKSPACE_B] },
  ],
  [
    { scopes: ['reports.read', 'coaching.read'] },
    { scopes: [['calls.read'], ['reports.read', 'coaching.read']] },
    { scopes: ['reports.read', 'coaching.read'] },
  ],
  [
    { perMinute: 7 },
    {
      limits: [
        { perMinute: null, perHour: null },
        { perMinute: 7, perHour: null },
      ],
    },
    { rate_limit: { minute: { limit: 7 }, hour: { limit: 3000 } } },
  ],
  [{ expiresAt: '2026-02-01T01:00:00+01:00' }, { expiresAt: [null, EXPIRY] }, { expires_at: EXPIRY }],
  [{ from: ['127.0.0.0/8', '::1'] }, { from: [null, ['127.0.0.0/8', '::1/128']] }, {}],
  [
    { status: 'active', name: 'both', perHour: 9 },
    {
      name: ['old', 'both'],
      limits: [
        { perMinute: null, perHour: null },
        { perMinute: null, perHour: 9 },
      ],
    },
    { name: 'both', rate_limit: { hour: { limit: 9 } } },
  ],
])('%j is in force with the next request, changes nothing else, and is once in the audit', async (...row) => {
  const [body, changed, seen] = row;
  const before = z.object({ key: z.object({}).loose() }).parse((await gateway.admin('GET', `/api/keys/${keyId}`)).json);
  await own();
  const half = (at: 0 | 1) => Object.fromEntries(Object.entries(changed).map(([name, values]) => [name, values[at]]));
  for (let time = 0; time < 2; time += 1) {
    const reply = await edit(body);
    expect([reply.status, reply.json]).toMatchObject([200, { key: { ...before.key, ...half(1), lastUsedAt: START } }]);
    expect(await own()).toMatchObject(seen);
  }
  expect(await auditOf(gateway)).toEqual([
    { at: START, who: 'alice', action: 'key.edit', target: keyId, from: half(0), to: half(1) },
    expect.objectContaining({ action: 'key.create' }),
  ]);
});

test('null takes limits, expiry and addresses back', async () => {
  await edit({ perMinute: 1, perHour: 2, expiresAt: EXPIRY, from: ['10.0.0.0/8'] });
  const reply = await edit({ perMinute: null, expiresAt: null, from: null });
  expect(reply.json).toMatchObject({ key: { limits: { perMinute: null, perHour: 2 }, expiresAt: null, from: null } });
});

test('a rotated key and its successor are bound to the same addresses, and an edit of something else changes none', async () => {
  await edit({ from: ['127.0.0.0/8'] });
  const { json } = await gateway.admin('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' });
  expect(json).toMatchObject({ key: { from: ['127.0.0.0/8'] } });
  expect((await edit({ name: 'new' })).json).toMatchObject({ key: { from: ['127.0.0.0/8'] } });
});

test('a key that has expired lives again with another expiry', async () => {
  await edit({ expiresAt: EXPIRY });
  gateway.clock.advance(30 * 86_400_000);
  expect((await gateway.get('/v2/key', { key: token })).status).toBe(403);
  await edit({ expiresAt: null });
  expect((await gateway.get('/v2/key', { key: token })).status).toBe(200);
});

test('a revoked key stays as it is', async () => {
  await gateway.admin('DELETE', `/api/keys/${keyId}`);
  for (const body of [{ name: 'new' }, { status: 'active' }, { expiresAt: EXPIRY }]) {
    const reply = await edit(body);
    expect([reply.status, messageOf(reply)]).toEqual([
      409,
      `Key ${keyId} is revoked, and a revoked key stays revoked. Create a new key instead.`,
    ]);
  }
  expect((await edit({ name: 'old' })).status).toBe(200);
  expect((await auditOf(gateway)).map(({ action }) => action)).toEqual(['key.revoke', 'key.create']);
});

const MEMBERS = 'name, workspaceIds, scopes, perMinute, perHour, expiresAt, from, status';
test.each([
  [
    {},
    'the body: given an object; allowed: a JSON object with at least one of name, status, workspaceIds, scopes, perMinute, perHour, expiresAt and from',
  ],
  [{ status: 'revoked' }, 'status: given "revoked"; allowed: active or deprecated (to revoke a key, DELETE it)'],
  [{ name: 'new', quotaId: 'x' }, `quotaId: unknown; allowed members: ${MEMBERS}`],
  [
    { name: null },
    'name: given null; allowed: a text of 1 to 100 characters that is not blank and has no control characters',
  ],
  [{ workspaceIds: [] }, 'workspaceIds: given an array of 0; allowed: an array of 1 to 50 UUIDs'],
  [{ perHour: 0 }, "perHour: given 0; allowed: an integer from 1 to 10^9, or null for the gateway's own"],
  [
    { expiresAt: START },
    `expiresAt: given "${START}"; allowed: a time in ISO 8601 with its offset, after ${START} and at most in the year 9999, or null for never`,
  ],
])('refuses %j', async (body, fault) => {
  const reply = await edit(body);
  expect([reply.status, messageOf(reply)]).toEqual([400, faults(fault)]);
  expect((await auditOf(gateway)).map(({ action }) => action)).toEqual(['key.create']);
});
