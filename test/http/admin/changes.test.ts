/** POST and GET /api/changes: what is taken and what is refused, by whom, and how often. */
import { Webhook } from 'standardwebhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { messageOf, readinessOf, samplesOf } from '../../support/admin.ts';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { forTest } from '../../support/opened.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const SECRET = `whsec_${Buffer.alloc(32, 'a').toString('base64')}`;
const NEXT_SECRET = `whsec_${Buffer.alloc(32, 'b').toString('base64')}`;
const TOKENS = 'admin=token-of-admin,store:changes=token-of-store,eve:viewer=token-of-eve';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: { ADMIN_TOKEN: TOKENS, CHANGES_SECRET: SECRET } }));
});

const pageSchema = z.looseObject({ changes: z.array(z.unknown()), cursor: z.string() });

const CHANGE = { evaluation: 'ev_1', workspace: WORKSPACE_A } as const;
const ONE = { changes: [CHANGE] };
const TAKEN = { changes: 1, repeated: false, reached: 1, processes: 1 };

const announce = (body: unknown, token = 'token-of-store', headers: Record<string, string> = {}) =>
  gateway.admin('POST', '/api/changes', body, { authorization: `Bearer ${token}`, ...headers });

/** A call that is signed as the store signs it, without a token. `sent`: the body that goes out in place of the signed one. */
async function announceSigned({
  body = ONE,
  secret = SECRET,
  id = 'msg_1',
  at = new Date(),
  sent = JSON.stringify(body),
}: { body?: object; secret?: string; id?: string; at?: Date; sent?: string } = {}) {
  return gateway.adminRaw('POST', '/api/changes', {
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(id, at, JSON.stringify(body)),
    },
    body: sent,
  });
}

/** All that was announced since that place, as operators see it. */
async function seenSince(cursor: string): Promise<readonly unknown[]> {
  return pageSchema.parse((await gateway.admin('GET', `/api/changes?after=${cursor}&limit=1000`)).json).changes;
}
async function now(): Promise<string> {
  const { json } = await gateway.admin('GET', '/api/changes');
  expect(json).toEqual({ changes: [], cursor: expect.any(String) as unknown, hasMore: false, missing: false });
  return pageSchema.parse(json).cursor;
}
const many = (count: number) => ({
  changes: Array.from({ length: count }, (_, index) => ({ ...CHANGE, evaluation: `ev_${index}` })),
});

/** Where the faults are that a refusal lists. */
function placesOf(reply: Reply): readonly string[] {
  return [...messageOf(reply).matchAll(/^- ([^:]+):/gm)].map(([, place = '']) => place);
}

describe('an announcement', () => {
  test('is taken, with all that it may say, and operators see it', async () => {
    const cursor = await now();
    const changes = [
      CHANGE,
      {
        ...CHANGE,
        evaluation: 'ev_2',
        kinds: ['transcript', 'evaluation'],
        created: true,
        etags: { transcript: 'W/"7"' },
      },
      { ...CHANGE, evaluation: 'ev_3', deleted: true },
      { ...CHANGE, evaluation: 'ev_4', workspace: WORKSPACE_A.toUpperCase(), previousWorkspace: WORKSPACE_B },
      { scorecard: 'sc_1', workspace: WORKSPACE_B },
    ];
    const reply = await announce({ mode: 'hard', changes });
    expect([reply.status, reply.json]).toEqual([200, { ...TAKEN, changes: 5 }]);

    const kinds = ['evaluation', 'transcript', 'scorecard', 'dealInsights'];
    const common = {
      at: expect.any(String) as unknown,
      announced: true,
      mode: 'hard',
      workspace: WORKSPACE_A,
      kinds,
      deleted: false,
      previousWorkspace: null,
    };
    expect(await seenSince(cursor)).toMatchObject([
      { ...common, record: 'evaluation:ev_1' },
      { ...common, record: 'evaluation:ev_2', kinds: ['evaluation', 'transcript'], created: true },
      { ...common, record: 'evaluation:ev_3', deleted: true },
      { ...common, record: 'evaluation:ev_4', previousWorkspace: WORKSPACE_B },
      { ...common, record: 'scorecard:sc_1', workspace: WORKSPACE_B, kinds: ['rubric'] },
    ]);
  });

  test('is soft unless it says hard', async () => {
    const cursor = await now();
    await announce(ONE);
    await announce({ ...ONE, mode: 'soft' });
    expect(await seenSince(cursor)).toMatchObject([{ mode: 'soft' }, { mode: 'soft' }]);
  });

  test('that is faulty is refused as a whole, with each fault', async () => {
    const cursor = await now();
    const reply = await announce({
      mode: 'now',
      changes: [
        { evaluation: 'ev 1', workspace: WORKSPACE_A },
        { evaluation: 'ev_1', workspace: 'acme' },
        { ...CHANGE, kinds: ['transcript', 'audio'] },
        { ...CHANGE, kinds: [], reason: 'edit' },
        { ...CHANGE, scorecard: 'sc_1' },
        { workspace: WORKSPACE_A },
        { scorecard: 'sc_1', workspace: WORKSPACE_A, kinds: ['evaluation'], deleted: true },
        { ...CHANGE, created: true, deleted: true },
        { ...CHANGE, previousWorkspace: WORKSPACE_A },
        { ...CHANGE, etags: { evaluation: 'no quotes', audio: '"1"' } },
      ],
      token: 'x',
    });
    expect(reply.status).toBe(400);
    expect(placesOf(reply)).toEqual([
      'mode',
      'changes[0].evaluation',
      'changes[1].workspace',
      'changes[2].kinds[1]',
      'changes[3].kinds',
      'changes[3].reason',
      'changes[4]',
      'changes[5]',
      'changes[6].kinds',
      'changes[6].deleted',
      'changes[7].deleted',
      'changes[8].previousWorkspace',
      'changes[9].etags.evaluation',
      'changes[9].etags.audio',
      'token',
    ]);
    expect(messageOf(reply)).toContain(
      'changes[2].kinds[1]: given "audio"; allowed: evaluation, transcript, scorecard, dealInsights',
    );
    expect(await seenSince(cursor)).toEqual([]);
  });

  test.each([
    ['no object', []],
    ['no changes', {}],
    ['an empty list', { changes: [] }],
  ])('with %s is refused', async (_, body) => {
    expect((await announce(body)).status).toBe(400);
  });

  test('has a thousand changes at most, and a megabyte', async () => {
    expect(await announce(many(1000))).toMatchObject({ status: 200, json: { changes: 1000 } });
    const refused = await announce(many(1001));
    expect([refused.status, messageOf(refused)]).toEqual([
      413,
      'The body has 1001 changes, and may have 1000; nothing was changed. Send several announcements.',
    ]);
    expect((await announce({ ...ONE, text: 'x'.repeat(1024 * 1024) })).status).toBe(413);
  });

  test('of the same webhook-id is made once, for a day', async () => {
    const cursor = await now();
    const named = { 'webhook-id': 'msg_1' };
    expect((await announce(ONE, 'token-of-store', named)).json).toEqual(TAKEN);
    expect((await announce(ONE, 'token-of-store', named)).json).toEqual({ ...TAKEN, repeated: true });
    expect((await announce(ONE, 'token-of-store', { 'webhook-id': 'msg_2' })).json).toEqual(TAKEN);
    gateway.clock.advance(24 * 60 * 60 * 1000 + 1);
    expect((await announce(ONE, 'token-of-store', named)).json).toEqual(TAKEN);
    expect(await seenSince(cursor)).toHaveLength(3);
    expect((await announce(ONE, 'token-of-store', { 'webhook-id': 'x'.repeat(257) })).status).toBe(400);
  });
});

describe('the role changes', () => {
  test('announces, and may do nothing else', async () => {
    expect((await announce(ONE)).status).toBe(200);
    expect((await announce(ONE, 'token-of-admin')).status).toBe(200);
    expect((await announce(ONE, 'token-of-eve')).status).toBe(403);
    const others = ['/api/changes', '/api/whoami', '/openapi.json', '/api/keys', '/api/cache', '/metrics'];
    const asked = others.map((path) =>
      gateway.admin('GET', path, undefined, { authorization: 'Bearer token-of-store' }),
    );
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(others.map(() => 403));
    expect(
      (await gateway.admin('GET', '/api/changes', undefined, { authorization: 'Bearer token-of-eve' })).status,
    ).toBe(200);
  });
});

describe('a signed call', () => {
  test('needs no token, and is made once', async () => {
    const cursor = await now();
    expect((await announceSigned()).json).toEqual(TAKEN);
    expect((await announceSigned()).json).toEqual({ ...TAKEN, repeated: true });
    expect(await seenSince(cursor)).toHaveLength(1);
  });

  test.each([
    ['of another secret', { secret: NEXT_SECRET }],
    ['of another body', { sent: JSON.stringify({ changes: [{ ...CHANGE, evaluation: 'ev_2' }] }) }],
    ['that is old', { at: new Date(Date.now() - 301_000) }],
    ['that is from the future', { at: new Date(Date.now() + 310_000) }],
  ])('%s is refused, and changes nothing', async (_, call) => {
    const cursor = await now();
    const reply = await announceSigned(call);
    expect([reply.status, reply.headers['www-authenticate']]).toEqual([401, 'Bearer realm="evalgate admin"']);
    expect(messageOf(reply)).toMatch(/^The signature is none of CHANGES_SECRET: /);
    expect(await seenSince(cursor)).toEqual([]);
  });

  test('is refused for the content of its body as any other', async () => {
    expect((await announceSigned({ body: { changes: [{ ...CHANGE, workspace: 'acme' }] } })).status).toBe(400);
    expect((await announceSigned({ body: many(1001) })).status).toBe(413);
  });

  test('opens no other endpoint', async () => {
    const id = 'msg_1';
    const at = new Date();
    const body = JSON.stringify({ tags: ['all'] });
    const reply = await gateway.adminRaw('POST', '/api/cache/purge', {
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
        'webhook-signature': new Webhook(SECRET).sign(id, at, body),
      },
      body,
    });
    expect(reply.status).toBe(401);
  });

  test('counts as a wrong token if it is wrong', async () => {
    for (let i = 0; i < 60; i += 1)
      expect((await announceSigned({ secret: NEXT_SECRET })).headers['retry-after']).toBeUndefined();
    expect((await announceSigned({ secret: NEXT_SECRET })).headers['retry-after']).toMatch(/^\d+$/);
    expect((await announceSigned()).status).toBe(200);
  });

  test('follows the secrets as they are rotated', async () => {
    const statuses = async () => [
      (await announceSigned({ id: `a${Math.random()}` })).status,
      (await announceSigned({ id: `b${Math.random()}`, secret: NEXT_SECRET })).status,
    ];
    expect(await statuses()).toEqual([200, 401]);
    expect(gateway.reload({ CHANGES_SECRET: `${SECRET},${NEXT_SECRET}` })).toEqual([]);
    expect(await statuses()).toEqual([200, 200]);
    gateway.reload({ CHANGES_SECRET: NEXT_SECRET });
    expect(await statuses()).toEqual([401, 200]);
    gateway.reload({ CHANGES_SECRET: '' });
    expect(await statuses()).toEqual([401, 401]);
  });
});

test('operators read on from a cursor, and learn if some are no longer known', async () => {
  const cursor = await now();
  for (const id of ['ev_1', 'ev_2', 'ev_3']) await announce({ changes: [{ ...CHANGE, evaluation: id }] });
  const first = await gateway.admin('GET', `/api/changes?after=${cursor}&limit=2`);
  expect(first.json).toMatchObject({
    changes: [{ record: 'evaluation:ev_1' }, { record: 'evaluation:ev_2' }],
    hasMore: true,
  });
  const { cursor: next } = pageSchema.parse(first.json);
  expect((await gateway.admin('GET', `/api/changes?after=${next}&limit=2`)).json).toMatchObject({
    changes: [{ record: 'evaluation:ev_3' }],
    hasMore: false,
    missing: false,
  });
  expect((await gateway.admin('GET', '/api/changes?after=another.1')).json).toMatchObject({ missing: true });
  expect((await gateway.admin('GET', '/api/changes?after=nothing')).status).toBe(400);
});

test('readiness, fleet and metrics have the last announcement and the rate', async () => {
  const announced = await forTest(startTestGateway({ env: { CHANGES_ANNOUNCED: 'true' } }));
  const before = await readinessOf(announced);
  expect(before.of('changes')).toMatchObject({
    status: 'unknown',
    detail: 'the store has announced nothing since this process started',
  });
  await announced.admin('POST', '/api/changes', many(3));
  announced.clock.advance(1_800_000);
  await announced.admin('POST', '/api/changes', many(2), { 'webhook-id': 'msg_1' });
  await announced.admin('POST', '/api/changes', many(2), { 'webhook-id': 'msg_1' });
  const last = '2026-01-15T12:30:00.000Z';
  expect((await readinessOf(announced)).of('changes')).toMatchObject({
    status: 'ok',
    detail: `the store announced a change last at ${last}; this process heard of 5 in the last hour`,
  });
  announced.clock.advance(1_800_001);
  expect((await announced.admin('GET', '/api/fleet')).json).toMatchObject({ changes: { last, inLastHour: 2 } });
  const samples = await samplesOf(announced, 'evalgate_changes_');
  expect(samples).toMatchObject({
    evalgate_changes_announced_total: 5,
    evalgate_changes_last_announced_timestamp_seconds: Date.parse(last) / 1000,
  });
  expect((await readinessOf(gateway)).of('changes')).toBeUndefined();
});
