/** GET /v2/changes: what it answers, to whom, and what never shows in it. */
import { array, assert, asyncProperty, constant, constantFrom, oneof, record } from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { forTest } from '../support/opened.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';

const ANNOUNCED = { CHANGES_ANNOUNCED: 'true' };
/** Longer than a call is served without a call to the store. */
const STALE_AFTER_MS = 66 * 60_000;
const WORKSPACE_C = '33333333-3333-4333-8333-333333333333';

let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: ANNOUNCED }));
  key = await gateway.issueKey({ perMinute: 100_000, perHour: 100_000 });
});

const pageSchema = z.strictObject({
  changes: z.array(z.strictObject({ id: z.string(), kind: z.string(), change: z.string(), at: z.string() })),
  cursor: z.string(),
  has_more: z.boolean(),
  unannounced: z.boolean(),
});
type Page = z.output<typeof pageSchema>;

async function announce(...changes: readonly object[]): Promise<void> {
  const reply = await gateway.admin('POST', '/api/changes', { changes });
  expect(reply.status).toBe(200);
}
const get = (query: string, asKey = key) => gateway.get(`/v2/changes${query}`, { key: asKey });
async function read(query: string, asKey = key): Promise<Page> {
  const reply = await get(query, asKey);
  expect(reply.status).toBe(200);
  return pageSchema.parse(reply.json);
}
/** The place behind all that was announced: that of now has what came a short while ago still before it. */
async function readToEnd(asKey = key): Promise<Page> {
  const { cursor } = await read('', asKey);
  return read(`?after=${cursor}&limit=1000`, asKey);
}
const textsOf = ({ changes }: Page): readonly string[] =>
  changes.map(({ id, kind, change }) => `${id} ${kind} ${change}`);
const inA = (evaluation: string, about: object = {}) => ({ evaluation, workspace: WORKSPACE_A, ...about });
const inB = (evaluation: string, about: object = {}) => ({ evaluation, workspace: WORKSPACE_B, ...about });

const expired = async (after: string, asKey = key): Promise<unknown> => {
  const reply = await get(`?after=${after}`, asKey);
  return [reply.status, reply.headers['x-error-code'], reply.text];
};
const documentOf = async (of: TestGateway) => (await of.get('/openapi.json', { isUndocumented: true })).text;

describe('the feed', () => {
  test('begins now, and then has each change, oldest first', async () => {
    await announce(inA('ev_0'));
    gateway.clock.advance(3000);
    const start = await get('');
    const { cursor } = pageSchema.parse(start.json);
    expect(start.text).toBe(`{"changes":[],"cursor":"${cursor}","has_more":false,"unannounced":false}`);
    expect(start.headers).toMatchObject({ 'cache-control': 'private, max-age=0, must-revalidate' });
    expect(start.headers['cache-status']).toBeUndefined();

    await announce(inA('ev_1', { created: true, kinds: ['evaluation'] }));
    await announce(inA('ev_1', { created: true, kinds: ['transcript', 'scorecard'] }), inA('ev_2', { deleted: true }));
    const page = await get(`?after=${cursor}`);
    const { cursor: next } = pageSchema.parse(page.json);
    const at = '2026-01-15T12:00:03.000Z';
    expect(page.text).toBe(
      JSON.stringify({
        changes: [
          { id: 'ev_1', kind: 'call', change: 'created', at },
          { id: 'ev_1', kind: 'transcript', change: 'created', at },
          { id: 'ev_1', kind: 'scorecard', change: 'created', at },
          { id: 'ev_2', kind: 'call', change: 'deleted', at },
        ],
        cursor: next,
        has_more: false,
        unannounced: false,
      }),
    );
    expect(textsOf(await read(`?after=${next}`))).toEqual([]);
    expect(textsOf(await read(`?after=${cursor}`))).toHaveLength(4);
  });

  test.each([
    [1, false],
    [2, true],
  ])(
    'if %d of 100 refreshes find a change that was not announced, it is said to lack some: %j',
    async (changed, isSaid) => {
      const ids = Array.from({ length: 100 }, (_, index) => `ev_${index}`);
      const putAll = (titleOf: (index: number) => string): void =>
        gateway.store.put({ evaluations: ids.map((_id, index) => anEvaluation({ _id, title: titleOf(index) })) });
      const readAll = async (): Promise<void> => {
        for (const id of ids) expect((await gateway.get(`/v2/calls/${id}`, { key })).status).toBe(200);
      };
      const { cursor } = await read('');
      putAll(() => 'old');
      await readAll();
      gateway.clock.advance(STALE_AFTER_MS);
      putAll((index) => (index < changed ? 'new' : 'old'));
      await readAll();
      expect(await read(`?after=${cursor}`)).toMatchObject({ changes: [], unannounced: isSaid });
    },
  );

  test('of now has the changes still before it that a list may lack, so that a walk from then on misses none', async () => {
    const put = (title: string): void =>
      gateway.store.put({ evaluations: [anEvaluation({ _id: 'ev_1', workspaceId: WORKSPACE_A, title })] });
    put('old');
    await gateway.get('/v2/calls?after=', { key });
    gateway.clock.advance(500);
    put('new');
    await announce(inA('ev_1', { kinds: ['evaluation'] }));
    const { cursor } = await read('');
    // A list is renewed because of changes once a second.
    expect((await gateway.get('/v2/calls?after=', { key })).text).toContain('"name":"old"');
    expect(textsOf(await read(`?after=${cursor}`))).toEqual(['ev_1 call updated']);
    gateway.clock.advance(2999);
    expect(textsOf(await read(`?after=${(await read('')).cursor}`))).toEqual(['ev_1 call updated']);
    gateway.clock.advance(1);
    expect(textsOf(await read(`?after=${(await read('')).cursor}`))).toEqual([]);
    expect((await gateway.get('/v2/calls?after=', { key })).text).toContain('"name":"new"');
  });

  test('is read in pages', async () => {
    const { cursor } = await read('');
    await announce(...['ev_1', 'ev_2', 'ev_3'].map((id) => inA(id, { deleted: true })));
    const first = await read(`?after=${cursor}&limit=2`);
    expect([textsOf(first), first.has_more]).toEqual([['ev_1 call deleted', 'ev_2 call deleted'], true]);
    const second = await read(`?after=${first.cursor}&limit=2`);
    expect([textsOf(second), second.has_more]).toEqual([['ev_3 call deleted'], false]);
  });

  test('answers 304 while there is nothing new, and each poll counts', async () => {
    const { cursor } = await read('');
    const before = await get(`?after=${cursor}`);
    const etag = before.headers.etag ?? '';
    const again = () => gateway.get(`/v2/changes?after=${cursor}`, { key, headers: { 'if-none-match': etag } });
    const same = await again();
    expect([same.status, same.text, same.headers.etag]).toEqual([304, '', etag]);
    const used = (reply: typeof same) => Number(reply.headers['x-ratelimit-minute-remaining']);
    expect(used(before) - used(same)).toBe(1);
    await announce(inA('ev_1', { deleted: true }));
    expect((await again()).status).toBe(200);
    expect(gateway.store.calls()).toBe(0);
  });

  test('has no event of a rubric or of insights', async () => {
    const { cursor } = await read('');
    await announce({ scorecard: 'sc_1', workspace: WORKSPACE_A }, inA('ev_1', { kinds: ['dealInsights'] }));
    expect((await read(`?after=${cursor}`)).changes).toEqual([]);
  });

  test('has a record that moved as deleted for the one and created for the other', async () => {
    const other = await gateway.issueKey({ workspaceIds: [WORKSPACE_B] });
    const [mine, theirs] = [await read(''), await read('', other)];
    await announce(inB('ev_1', { previousWorkspace: WORKSPACE_A }));
    expect(textsOf(await read(`?after=${mine.cursor}`))).toEqual(['ev_1 call deleted']);
    expect(textsOf(await read(`?after=${theirs.cursor}`, other))).toEqual([
      'ev_1 call created',
      'ev_1 transcript created',
      'ev_1 scorecard created',
    ]);
  });

  test('of several workspaces is in one order, and can be narrowed with the same cursor', async () => {
    const both = await gateway.issueKey({ workspaceIds: [WORKSPACE_A, WORKSPACE_B] });
    const { cursor } = await read('', both);
    await announce(inA('ev_1', { deleted: true }));
    await announce(inB('ev_2', { deleted: true }));
    await announce(inA('ev_3', { deleted: true }));
    const all = ['ev_1 call deleted', 'ev_2 call deleted', 'ev_3 call deleted'];
    expect(textsOf(await read(`?after=${cursor}`, both))).toEqual(all);
    const narrowed = await read(`?after=${cursor}&workspaceId=${WORKSPACE_A.toUpperCase()}`, both);
    expect(textsOf(narrowed)).toEqual([all[0], all[2]]);
    // The other one is still to come.
    expect(textsOf(await read(`?after=${narrowed.cursor}`, both))).toEqual([all[1]]);
  });

  test.each([
    { from: WORKSPACE_A, to: WORKSPACE_B },
    { from: WORKSPACE_B, to: WORKSPACE_A },
  ])('has a record that moved from $from to $to as deleted and then created, for one who sees both', async (move) => {
    const both = await gateway.issueKey({ workspaceIds: [WORKSPACE_A, WORKSPACE_B] });
    const { cursor } = await read('', both);
    await announce({ evaluation: 'ev_1', workspace: move.to, previousWorkspace: move.from });
    const first = await read(`?after=${cursor}&limit=1`, both);
    expect(textsOf(first)).toEqual(['ev_1 call deleted']);
    expect(textsOf(await read(`?after=${first.cursor}`, both))[0]).toBe('ev_1 call created');
  });

  test('refuses with `cursor_invalid` what no answer has given', async () => {
    const text = 'The query parameter after must be the cursor of an earlier answer. To begin, leave it out.';
    const unnumbered = Buffer.from('["feed","set","-"]').toString('base64url');
    for (const cursor of ['nonsense', 'W10', unnumbered]) {
      expect(await expired(cursor)).toEqual([400, 'cursor_invalid', JSON.stringify({ error: { message: text } })]);
    }
  });

  test('begins anew with `cursor_expired` for a cursor that cannot go on', async () => {
    const { cursor } = await read('');
    const refusal = [
      400,
      'cursor_expired',
      '{"error":{"message":"The cursor has expired: changes after it are no longer kept, or it is of a key with other workspaces. Take a new cursor (without after), then read all calls once (GET /v2/calls?after=), and go on from that cursor."}}',
    ];
    const other = await gateway.issueKey({ workspaceIds: [WORKSPACE_A, WORKSPACE_B] });
    expect(await expired(cursor, other)).toEqual(refusal);
    await announce(inA('ev_1', { deleted: true }));
    gateway.clock.advance(7 * 86_400_000 + 1);
    expect(textsOf(await read(`?after=${cursor}`))).toEqual(['ev_1 call deleted']);
    await announce(inA('ev_2', { deleted: true }));
    expect(await expired(cursor)).toEqual(refusal);
  });

  test('keeps 100,000 events of a workspace', async () => {
    const { cursor } = await read('');
    for (let page = 0; page < 33; page += 1) {
      await announce(...Array.from({ length: 1000 }, (_, index) => inA(`ev_${page}_${index}`, { created: true })));
    }
    expect((await read(`?after=${cursor}&limit=1`)).has_more).toBe(true);
    await announce(...Array.from({ length: 1000 }, (_, index) => inA(`ev_33_${index}`, { deleted: true })));
    expect((await read(`?after=${cursor}&limit=1`)).has_more).toBe(true);
    await announce(inA('ev_last', { deleted: true }));
    expect((await get(`?after=${cursor}`)).status).toBe(400);
  });
});

test.each([
  { what: 'with another ETag than was announced', about: { etags: { evaluation: '"new"' } } },
  { what: 'that was announced as deleted', about: { deleted: true } },
])(
  'an answer $what, of a replica that lags, says that it is old, until it is taken for what it is',
  async ({ about }) => {
    gateway.store.put({ evaluations: [anEvaluation({ _id: 'ev_1', workspaceId: WORKSPACE_A })] });
    const headersOf = async (): Promise<unknown> => {
      const { headers } = await gateway.get('/v2/calls/ev_1', { key });
      return [headers['cache-status'], String(headers['cache-control']).includes('max-age=0,')];
    };
    expect(await headersOf()).toEqual(['evalgate; fwd=uri-miss; stored', false]);
    await announce(inA('ev_1', about));
    expect(await headersOf()).toEqual(['evalgate; fwd=stale; stored; detail=changed', true]);
    expect(await headersOf()).toEqual(['evalgate; hit; ttl=0; detail=changed', true]);
    for (const afterMs of [1000, 3000]) {
      gateway.clock.advance(afterMs);
      expect(await headersOf()).toEqual(['evalgate; fwd=stale; stored; detail=changed', true]);
    }
    gateway.clock.advance(10_000);
    expect(await headersOf()).toEqual(['evalgate; fwd=stale; stored', false]);
    expect(await headersOf()).toEqual([expect.stringMatching(/^evalgate; hit; ttl=[1-9]/), false]);
  },
);

describe('a request for the feed', () => {
  test('is refused as its parameters, key and scope have it', async () => {
    const foreign = await get(`?workspaceId=${WORKSPACE_B}&limit=0`);
    expect([foreign.status, foreign.headers['x-error-code']]).toEqual([403, 'workspace_forbidden']);
    const wrong = await get('?limit=1001&after=&since=1&workspaceId=acme');
    expect([wrong.status, wrong.text]).toEqual([
      400,
      '{"error":{"message":"Unknown query parameter \'since\'. Known here: after, limit, workspaceId. The query parameter after must hold 1 to 1024 characters. The query parameter limit must be an integer from 1 to 1000; \'1001\' was given. The query parameter workspaceId must be a UUID; \'acme\' was given."}}',
    ]);
    const unscoped = await gateway.issueKey({ scopes: ['coaching.read'] });
    expect((await get('', unscoped)).headers['x-error-code']).toBe('scope_missing');
    expect((await gateway.get('/v2/changes')).status).toBe(401);
  });

  test('is 404 where the store does not announce its changes, and no document names it', async () => {
    const plain = await forTest(startTestGateway());
    const reply = await plain.get('/v2/changes', { key: await plain.issueKey(), isUndocumented: true });
    expect([reply.status, reply.headers['x-error-code']]).toEqual([404, 'path_unknown']);
    expect([
      (await documentOf(plain)).includes('/v2/changes'),
      (await documentOf(gateway)).includes('/v2/changes'),
    ]).toEqual([false, true]);
    expect((await plain.admin('POST', '/api/changes', { changes: [inA('ev_1')] })).status).toBe(200);
  });
});

/** All that a cursor holds; how many events it has moved on since another one. */
function partsOf(cursor: string, since: string): readonly unknown[] {
  const partSchema = z.tuple([z.string(), z.string(), z.string()]);
  const parse = (one: string) => partSchema.parse(JSON.parse(Buffer.from(one, 'base64url').toString()));
  const [feed, set, number] = parse(cursor);
  return [feed, set, Number.parseInt(number, 36) - Number.parseInt(parse(since)[2], 36)];
}

test('a change of another workspace looks like none: every answer is the same, its cursor included', async () => {
  const mine = record({
    evaluation: constantFrom('ev_1', 'ev_2'),
    created: constant(true),
    workspace: constant(WORKSPACE_A),
  });
  const foreign = record({
    evaluation: constantFrom('ev_1', 'ev_9'),
    workspace: constantFrom(WORKSPACE_B, WORKSPACE_C),
  });
  const step = oneof(constant('read' as const), mine, foreign);
  await assert(
    asyncProperty(array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      /** All answers to a consumer who follows, with or without what others are told. */
      const follow = async (isWithForeign: boolean): Promise<readonly string[]> => {
        const seen: string[] = [];
        const { cursor: start } = await readToEnd();
        let cursor = start;
        for (const one of steps) {
          if (one === 'read') {
            const page = await read(`?after=${cursor}&limit=2`);
            seen.push(JSON.stringify({ ...page, cursor: partsOf(page.cursor, start) }));
            ({ cursor } = page);
          } else if (one.workspace === WORKSPACE_A || isWithForeign) await announce(one);
        }
        return seen;
      };
      expect(await follow(true)).toEqual(await follow(false));
    }),
    { numRuns: 30 },
  );
});
