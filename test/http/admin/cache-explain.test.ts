import { afterEach, describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { messageOf } from '../../support/admin.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { anEvaluation, EVALUATION_ID, SCORECARD_ID, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';
import { ENDPOINTS } from '../common/endpoints.ts';
import { putSubject } from '../common/subject.ts';

const REPORT = `/v1/workspaces/${WORKSPACE_A}/reports/${EVALUATION_ID}`;
const subject = { workspaceId: WORKSPACE_A, id: EVALUATION_ID, scorecardId: SCORECARD_ID };

const gateway = await forFile(startTestGateway());
putSubject(gateway.store, subject);
const { keyId, token: key } = await gateway.issue();

const SOME_BYTES: unknown = expect.any(Number);

const addressOf = (path: string, more: string = ''): string =>
  `/api/cache/explain?path=${encodeURIComponent(path)}${more}`;
const explain = async (path: string, more: string = '') => await gateway.admin('GET', addressOf(path, more));

const nextSchema = z.looseObject({ next: z.looseObject({ text: z.string() }), key: z.string(), route: z.string() });
const nextOf = async (path: string, more: string = '') => nextSchema.parse((await explain(path, more)).json);

/** The message of a refusal, which must be a 400. */
async function refusalOf(address: string): Promise<string> {
  const reply = await gateway.admin('GET', address);
  expect(reply.status).toBe(400);
  return messageOf(reply);
}

describe('the entry behind a path', () => {
  afterEach(async () => {
    await gateway.admin('POST', '/api/cache/purge', { tags: ['all'] });
  });

  test('is told with all that is known of it, and nothing of the record', async () => {
    await gateway.get(REPORT, { key });
    gateway.clock.advance(60_000);
    const { status, json, text } = await explain(REPORT);
    expect([status, json]).toMatchObject([
      200,
      {
        path: REPORT,
        route: '/v1/workspaces/{workspaceId}/reports/{reportId}',
        workspaces: [WORKSPACE_A],
        at: '2026-01-15T12:01:00.000Z',
        owners: [WORKSPACE_A],
        class: 'evaluation',
        next: { text: 'The next read is served from memory.', from: 'memory', store: 'not-asked', miss: null },
        memory: {
          state: 'fresh',
          answer: 'found',
          owner: WORKSPACE_A,
          ageMs: 60_000,
          ttlMs: 236_689,
          filledAt: '2026-01-15T12:00:00.000Z',
          fetchedAt: '2026-01-15T12:00:00.000Z',
          freshUntil: '2026-01-15T12:04:56.689Z',
          staleUntil: '2026-01-15T13:04:56.689Z',
          errorUntil: '2026-01-16T12:04:56.689Z',
          jitterMs: 3_311,
          softPurged: false,
          tags: [
            'all',
            'class:evaluation',
            `evaluation:${EVALUATION_ID}`,
            `workspace:${WORKSPACE_A}`,
            `scorecard:${SCORECARD_ID}`,
          ],
          bytes: SOME_BYTES,
        },
        redis: { state: 'alone', entry: null },
        flight: { since: null, leaseLeftMs: null, justFailed: false },
        lastMiss: { reason: 'never-seen', at: '2026-01-15T12:00:00.000Z' },
        evicted: false,
        times: {
          class: 'evaluation',
          fresh: '5m',
          stale: '1h',
          error: '1d',
          freshMs: 300_000,
          staleMs: 3_600_000,
          errorMs: 86_400_000,
          source: { fresh: 'default', stale: 'default', error: 'default' },
          setBy: null,
          setAt: null,
        },
        maintenance: null,
      },
    ]);
    expect(text).not.toContain(anEvaluation().title);
    expect(text).not.toContain(anEvaluation().evaluatee.email);
  });

  test('is not read: explaining asks the store nothing and counts as no read', async () => {
    const stats = async () => (await gateway.admin('GET', '/api/cache')).text;
    const before = await stats();
    const requests = gateway.store.requests.length;
    for (const { path } of ENDPOINTS) await explain(path(subject), `&keyId=${keyId}`);
    expect(await stats()).toBe(before);
    expect(gateway.store.requests.length).toBe(requests);
  });

  test.each(ENDPOINTS)('$name: what is explained is what the endpoint serves', async ({ path, route, scope }) => {
    const owner = await gateway.issue({ scopes: [scope], workspaceIds: [WORKSPACE_A, WORKSPACE_B] });
    const address = path(subject);
    const reader = `&keyId=${owner.keyId}`;
    expect((await nextOf(address, reader)).next.text).toMatch(/^The next read asks the store and waits/);
    expect((await gateway.get(address, { key: owner.token })).status).toBe(200);
    const explained = await nextOf(address, reader);
    expect([explained.route, explained.next.text]).toEqual([route, 'The next read is served from memory.']);
  });

  test.each([
    [`/v1/workspaces/${WORKSPACE_A.toUpperCase()}/reports?page=2&limit=0&search=&other=1`],
    [`/v1/workspaces/${WORKSPACE_A}/reports?search=A%20b&limit=999`],
    [`/v2/calls?page=3&pageSize=20&workspaceId=${WORKSPACE_A}`],
    [`/v2/calls?scorecardId=${SCORECARD_ID}`],
    [`/v2/calls/${EVALUATION_ID}/transcript?page=3&raw`],
  ])('the query is read as the endpoint reads it: %s', async (path) => {
    expect((await gateway.get(path, { key })).status).toBe(200);
    expect((await nextOf(path, `&keyId=${keyId}`)).next.text).toBe('The next read is served from memory.');
  });

  test('a list of v2 is explained for a key or for workspaces, in whatever order', async () => {
    const { keyId: id, token } = await gateway.issue({ workspaceIds: [WORKSPACE_B, WORKSPACE_A] });
    await gateway.get('/v2/calls', { key: token });
    const byKey = await nextOf('/v2/calls', `&keyId=${id}`);
    expect(byKey.next.text).toBe('The next read is served from memory.');
    const byWorkspaces = `&workspace=${WORKSPACE_A}&workspace=${WORKSPACE_B.toUpperCase()}`;
    expect((await nextOf('/v2/calls', byWorkspaces)).key).toBe(byKey.key);
    expect((await nextOf('/v2/calls', `&keyId=${keyId}`)).next.text).toMatch(/^The next read asks the store/);
  });

  test('a single read of v2 needs no reader: then any copy is shown; with one, what is theirs, and whose copies there are', async () => {
    const path = `/v2/calls/${EVALUATION_ID}`;
    await gateway.get(path, { key });
    expect((await explain(path)).json).toMatchObject({ workspaces: null, memory: { owner: WORKSPACE_A } });
    expect((await explain(path, `&workspace=${WORKSPACE_B}`)).json).toMatchObject({
      owners: [WORKSPACE_A],
      memory: null,
      next: { from: 'store', store: 'waited-for' },
    });
  });
});

describe('a path that cannot be explained is refused with 400 and the reason', () => {
  const LIST_NEEDS =
    'The answer of this path depends on who asks. Give keyId (the id of a key) or workspace (a UUID; repeat it for more) as well.';

  test('a list of v2 for nobody', async () => {
    expect(await refusalOf(addressOf('/v2/calls?page=2'))).toBe(LIST_NEEDS);
  });

  test.each([
    ['/v2/nothing', 'The path is no endpoint of the API. Its endpoints are /v1/workspaces/{workspaceId}/reports, '],
    ['/v1', 'The path is no endpoint of the API.'],
    ['/v2/calls/a%20b', 'Such a request is answered 404. The callId of the path is no id: 1 to 64 letters, digits,'],
    [`/v2/calls/${EVALUATION_ID}?page=1`, "answered 400. Unknown query parameter 'page'. This endpoint takes none."],
    ['/v2/calls?pageSize=101', 'answered 400. The query parameter pageSize must be an integer from 1 to 100'],
    ['/v2/calls?workspaceId=acme', 'answered 400. The query parameter workspaceId must be a UUID'],
    [`/v1/workspaces/${WORKSPACE_A}/reports?scorecardId=x`, 'answered 400. The query parameter scorecardId must be'],
    ['/v1/workspaces/acme/reports', 'answered 403: the workspace of the path is no UUID, so no key may see it.'],
    [
      `/v1/workspaces/${WORKSPACE_B}/reports`,
      'answered 403: the workspace of the path is none that the reader may see',
    ],
    [`/v2/calls?workspaceId=${WORKSPACE_B}`, "answered 403. forbidden: workspaceId is not among the key's"],
  ])('%s', async (path, reason) => {
    const message = await refusalOf(addressOf(path, `&workspace=${WORKSPACE_A}`));
    expect(message).toContain(`The path ${JSON.stringify(path)} puts no question to the cache. `);
    expect(message).toContain(reason);
  });

  test.each([
    ['/api/cache/explain', 'The query parameter path: missing; allowed: a path of the public API'],
    [addressOf('v2/calls'), 'The query parameter path: given "v2/calls"; allowed: a path of the public API'],
    [addressOf('/v2/calls', '&pageSize=2'), 'Unknown query parameter "pageSize". Known here: path, keyId, workspace.'],
    [addressOf('/v2/calls', '&path=/v2/calls'), 'The query parameter path may be given only once.'],
    [addressOf('/v2/calls', '&workspace=acme'), 'The query parameter workspace[0]: given "acme"; allowed: a UUID'],
    [
      addressOf('/v2/calls', `&workspace=${WORKSPACE_A}`.repeat(51)),
      'The query parameter workspace: given an array of 51',
    ],
    [addressOf('/v2/calls', `&keyId=k&workspace=${WORKSPACE_A}`), 'Give keyId or workspace, not both.'],
  ])('%s', async (address, reason) => {
    expect(await refusalOf(address)).toContain(reason);
  });

  test('a key that the registry does not have is 404', async () => {
    const { status, text } = await explain('/v2/calls', '&keyId=key_none');
    expect([status, text]).toEqual([
      404,
      '{"error":{"message":"The registry has no key with that keyId. GET /api/keys lists those that it has; for another key give its workspaces instead."}}',
    ]);
  });
});
