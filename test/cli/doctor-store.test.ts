/** What `evalgate doctor` finds at a store: a sound one passes, and each deliberate fault is named. */
import { createServer } from 'node:https';
import { createServer as createPlainServer, type ServerResponse } from 'node:http';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { EvaluationRecord } from '../../src/domain/records.ts';
import { answerFrom, findRoute } from '../../src/sample/routes.ts';
import { runCli } from '../support/cli.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import {
  anEvaluation,
  aScorecard,
  aScoredCard,
  aTranscript,
  dealInsights,
  WORKSPACE_A,
  WORKSPACE_B,
} from '../support/records.ts';
import {
  createStoreServer,
  sendError,
  sendJson,
  type StoreHandler,
  type StoreServer,
} from '../support/store-server.ts';
import { makeTlsFiles } from '../support/tls-files.ts';

const reportSchema = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({ name: z.string(), status: z.string(), message: z.string(), advice: z.string().nullable() }),
  ),
});
const listSchema = z.object({ items: z.array(z.custom<EvaluationRecord>()), total: z.number() });
type List = z.output<typeof listSchema>;

const LIST = /\/internal\/v1\/evaluations$/;
/** A real record each, newest first: seven of the workspace, of two scorecards, the third and fourth of one millisecond. */
const IDS = ['ev_7', 'ev_6', 'ev_5', 'ev_4', 'ev_3', 'ev_2', 'ev_1'];

let store: StoreServer;
beforeEach(async () => {
  store = await createStoreServer();
  store.put({
    evaluations: [
      ...IDS.map((_id, index) =>
        anEvaluation({
          _id,
          title: `Call number ${index} of the Week`,
          createdAtMs: 1_772_600_000_000 - (index === 3 ? 2 : index) * 60_000,
          scorecardRef: { id: index % 2 === 0 ? 'sc_1' : 'sc_2', name: 'A scorecard' },
        }),
      ),
      anEvaluation({ _id: 'ev_9', state: 'SCORING', createdAtMs: 1_772_700_000_000 }),
      anEvaluation({ _id: 'ev_8', workspaceId: WORKSPACE_B }),
    ],
    transcripts: [aTranscript({ evaluationId: 'ev_6' })],
    scoredCards: [aScoredCard({ evaluationId: 'ev_7' })],
    dealInsights: [dealInsights({ evaluationId: 'ev_1' })],
    scorecards: [aScorecard({ _id: 'sc_2' })],
  });
});
afterEach(() => store.close());

async function doctor(
  args: readonly string[] = ['--workspace', WORKSPACE_A],
  env: Readonly<Record<string, string>> = {},
) {
  const { status, stdout, stderr } = await runCli(['doctor', '--json', '--admin', 'http://127.0.0.1:1', ...args], {
    env: { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, ...env },
  });
  expect(stderr).toBe('');
  const { ok, checks } = reportSchema.parse(JSON.parse(stdout));
  expect(status).toBe(ok ? 0 : 1);
  const ofStore = checks.filter(({ name }) => ['upstream', 'clock', 'contract'].includes(name));
  const lines = ofStore.map(({ name, status: found, message }) => `${found} ${name}: ${message}`);
  return { ok, checks: ofStore, lines: lines.map((line) => line.replace(/\d+ ms/, 'N ms')) };
}

/** A store whose lists are answered for another query, or changed. */
function changeLists({ query, list }: { query?: (query: URLSearchParams) => void; list?: (list: List) => void }): void {
  store.override(LIST, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', store.url);
    query?.(searchParams);
    const { status, body } = answerFrom(store, findRoute(pathname), searchParams);
    const changed = listSchema.parse(body);
    list?.(changed);
    response.statusCode = status;
    sendJson(request, response, changed);
  });
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status).end(text);
}

const SOUND = [
  'ok upstream: the store answers, in N ms, and accepts the token',
  "ok clock: differs from the store's by less than 5 seconds",
  'ok upstream: without the token it refuses (status 401)',
  'ok contract: lists: 7 records are whole',
  'ok contract: lists: order, pages, totals, filters and the search are as described',
  'ok contract: lists: If-None-Match is answered with 304',
  'ok contract: evaluation: ev_7 is whole',
  'ok contract: evaluation: If-None-Match is answered with 304',
  'ok contract: transcript: that of ev_6 is whole',
  'ok contract: transcript: If-None-Match is answered with 304',
  'ok contract: scored scorecard: that of ev_7 is whole',
  'ok contract: scored scorecard: If-None-Match is answered with 304',
  'ok contract: deal insights: that of ev_1 is whole',
  'ok contract: deal insights: If-None-Match is answered with 304',
  'ok contract: rubric: that of sc_2 is whole',
  'ok contract: rubric: If-None-Match is answered with 304',
  'ok contract: an id that is not there: answered with 404 and a known code, for each resource',
];

test('C7: a sound store passes, and only reads are sent to it', async () => {
  const { ok, lines } = await doctor(['--workspace', WORKSPACE_A.toUpperCase()]);
  expect([ok, lines]).toEqual([true, SOUND]);
  expect(new Set(store.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
});

test('without --workspace the form of a list and missing ids are tested', async () => {
  const { ok, lines } = await doctor([]);
  expect([ok, lines]).toEqual([
    true,
    [
      ...SOUND.slice(0, 3),
      'ok contract: lists: valid form; --workspace UUID checks the rest, and the records',
      SOUND[5],
      SOUND.at(-1),
    ],
  ]);
});

test('a workspace without records is no proof', async () => {
  const { ok, lines } = await doctor(['--workspace', '33333333-3333-4333-8333-333333333333']);
  expect([ok, lines[3]]).toEqual([true, 'warn contract: lists: the workspace has no completed evaluations']);
});

test('keys of the store are asked for where they are used', async () => {
  await doctor([], { KEYS_SOURCE: 'upstream' });
  expect(store.calls('apiKey')).toBe(1);
});

describe('a deliberate fault is named', () => {
  const faults: readonly { readonly what: string; readonly make: () => void; readonly found: readonly string[] }[] = [
    {
      what: 'limit is ignored',
      make: () => changeLists({ query: (query) => query.set('limit', '100') }),
      found: ['lists: limit=2 is ignored: 6 records came'],
    },
    {
      what: 'offset is ignored',
      make: () => changeLists({ query: (query) => query.set('offset', '0') }),
      found: ['lists: offset=1 is ignored: ev_7 comes again'],
    },
    {
      what: 'the order is that of age',
      make: () => changeLists({ list: ({ items }) => void items.splice(0, 100, ...items.toReversed()) }),
      found: ['lists: the order is not createdAtMs, then _id, both descending: ev_1 comes before ev_2'],
    },
    {
      what: 'the order within a millisecond is by ascending id',
      make: () =>
        changeLists({
          list: ({ items }) => void (items.length === 7 && items.splice(2, 2, ...items.slice(2, 4).toReversed())),
        }),
      found: ['lists: the order is not createdAtMs, then _id, both descending: ev_4 comes before ev_5'],
    },
    {
      what: 'a record is repeated',
      make: () => changeLists({ list: ({ items }) => void items.splice(1, 1, ...items.slice(0, 1)) }),
      found: ['lists: ev_7 is listed twice'],
    },
    {
      what: 'total is the length of the page',
      make: () => changeLists({ list: (list) => void (list.total = list.items.length) }),
      found: ['lists: total depends on the page: 7 without offset, 2 with it'],
    },
    {
      what: 'state is ignored',
      make: () => changeLists({ query: (query) => query.delete('state') }),
      found: ['lists: state=COMPLETED is ignored: ev_9 has another state'],
    },
    {
      what: 'scorecardId is ignored',
      make: () => changeLists({ query: (query) => query.delete('scorecardId') }),
      found: ['lists: scorecardId is ignored: one that no record has finds 7 records'],
    },
    {
      what: 'q is ignored',
      make: () => changeLists({ query: (query) => query.delete('q') }),
      found: ['lists: q is ignored: a text that no record holds finds 7 records'],
    },
    {
      what: 'only one workspaceId is used',
      make: () => changeLists({ query: (query) => query.set('workspaceId', query.get('workspaceId') ?? '') }),
      found: ['lists: workspaceId given twice: the records of the second one are missing'],
    },
    {
      what: 'workspaceId is ignored',
      make: () =>
        changeLists({
          query: (query) => {
            query.append('workspaceId', WORKSPACE_A);
            query.append('workspaceId', WORKSPACE_B);
          },
        }),
      found: [
        expect.stringMatching(
          /^the store ignored the workspaces asked for: its list holds ev_\d of another workspace$/,
        ),
      ],
    },
    {
      what: 'a record misses a member',
      make: () => void store.evaluations.set('ev_3', { ...anEvaluation({ _id: 'ev_3' }), people: undefined }),
      found: ['lists: ev_3: people is missing or malformed'],
    },
    {
      what: 'there are no transcripts',
      make: () => store.transcripts.clear(),
      found: ['transcript: none of 7 records has one, such as ev_7'],
    },
    {
      what: 'transcripts have no address',
      make: () => void store.override(/transcript$/, (_, response) => sendText(response, 404, '{"error":"no route"}')),
      found: [
        'transcript: the store answered transcript with 404',
        'an id that is not there: the store answered transcript with 404',
      ],
    },
    {
      what: 'a part is malformed',
      make: () => void store.scoredCards.set('ev_7', { ...aScoredCard({ evaluationId: 'ev_7' }), coachingPlan: {} }),
      found: ["scored scorecard: the store's scorecard ev_7 is malformed at coachingPlan.focusArea"],
    },
    {
      what: 'a part is of another evaluation',
      make: () => void store.scoredCards.set('ev_7', aScoredCard({ evaluationId: 'ev_6' })),
      found: ['scored scorecard: the store answered for another id than scorecard ev_7 (at evaluationId)'],
    },
    {
      what: 'a missing record has another code',
      make: () =>
        void store.override(/evaluations\/[^/]*such[^/]*$/, (_, response) => sendError(response, 404, 'GONE')),
      found: ['an id that is not there: the store answered evaluation with 404 GONE'],
    },
    {
      what: 'a missing record is an empty object',
      make: () => void store.override(/scorecards\/[^/]*such[^/]*$/, (_, response) => sendText(response, 200, '{}')),
      found: ["an id that is not there: the store's rubric evalgate-doctor-no-such-id is malformed at _id"],
    },
  ];

  test.each(faults)('$what', async ({ make, found }) => {
    make();
    const { ok, checks } = await doctor();
    const failed = checks.filter(({ status }) => status === 'fail');
    expect([ok, failed.map(({ message }) => message)]).toEqual([false, expect.arrayContaining([...found])]);
    expect(failed.every(({ advice }) => advice !== null)).toBe(true);
  });

  test.each([
    ['title', { title: 'Only the NEWEST call' }],
    ["evaluatee's name", { evaluatee: { displayName: 'Zoë Jones', givenName: 'Zoë', email: 'z@example.com' } }],
    ["evaluatee's e-mail address", { evaluatee: { displayName: '', givenName: '', email: 'zoe@example.com' } }],
    ["people's e-mail addresses", { people: [{ name: null, email: 'tim@example.com', spoke: true, attended: true }] }],
    ['labels of deals', { crmLinks: [{ objectType: 'deal', externalId: 'd', label: 'Big one', href: null }] }],
  ] as const)('a search that does not look at the %s, or only in one case', async (member, difference) => {
    store.evaluations.set('ev_7', { ...anEvaluation({ _id: 'ev_7', createdAtMs: 1_772_600_000_000 }), ...difference });
    const texts = /NEWEST|Jones|zoe@|tim@|Big/i;
    changeLists({
      list: (list) => {
        if (list.items.length < 7) list.items = list.items.filter((item) => !texts.test(JSON.stringify(item)));
      },
    });
    const { ok, lines } = await doctor();
    const found = `fail contract: lists: q does not find ev_7 by a part of its ${member} in another case`;
    expect([ok, lines]).toEqual([false, expect.arrayContaining([found])]);
  });

  test('more than five malformed records are counted', async () => {
    for (const id of IDS) store.evaluations.set(id, { ...anEvaluation({ _id: id }), title: 7 });
    const { ok, lines } = await doctor();
    const failed = lines.filter((line) => line.startsWith('fail'));
    expect([ok, failed.length, failed.at(-1)]).toEqual([false, 6, 'fail contract: lists: 2 more records are left out']);
  });

  test('an e-mail address that v1 cannot publish is a warning', async () => {
    const record = anEvaluation({ _id: 'ev_3', createdAtMs: 1 });
    store.evaluations.set('ev_3', { ...record, evaluatee: { ...record.evaluatee, email: 'j\u00f6rg@example.com' } });
    const { ok, lines } = await doctor();
    expect([ok, lines[3]]).toEqual([
      true,
      'warn contract: lists: v1 leaves out 1 of 7 records: ev_3: evaluatee.email is missing or malformed',
    ]);
  });
});

test.each([
  ['lists without an ETag', { etag: null }, 'lists: the answer has no ETag'],
  ['If-None-Match that is ignored', { etag: '"1"' }, 'lists: If-None-Match is not answered with 304'],
])('%s: a warning, because it only costs', async (_what, { etag }, found) => {
  store.override(LIST, (_, response) => {
    if (etag !== null) response.setHeader('etag', etag);
    response.end('{"items":[],"total":0}');
  });
  const { ok, lines } = await doctor([]);
  expect([ok, lines]).toEqual([true, expect.arrayContaining([`warn contract: ${found}`])]);
});

test('a store that answers without the token: a warning', async () => {
  store.override(LIST, (request, response) => sendJson(request, response, { items: [], total: 0 }));
  const { ok, lines } = await doctor([]);
  expect([ok, lines[2]]).toEqual([
    true,
    'warn upstream: without the token the store answers with status 200 instead of 401',
  ]);
});

test('a list that changes while it is compared is compared again', async () => {
  let lists = 0;
  changeLists({
    list: (list) => {
      lists += 1;
      // A record arrives after the first look.
      if (lists === 3) store.put({ evaluations: [anEvaluation({ _id: 'ev_new', createdAtMs: 1_772_600_100_000 })] });
      list.total = [...store.evaluations.values()].length - 2;
    },
  });
  const { ok } = await doctor();
  expect([ok, lists > 20]).toEqual([false, true]);
});

describe('the way to the store', () => {
  const noAnswer = 'fail upstream: the store gives no whole answer: ';
  const network = 'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.';
  const cases: readonly {
    readonly what: string;
    readonly handler?: StoreHandler;
    readonly env?: Readonly<Record<string, string>>;
    readonly found: string;
    readonly advice: string;
  }[] = [
    {
      what: 'a wrong token',
      env: { UPSTREAM_TOKEN: 'wrong' },
      found: 'fail upstream: the store refuses the token (status 401)',
      advice: 'Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
    },
    {
      what: 'a store that fails',
      handler: (_, response) => sendError(response, 503, 'FAILURE'),
      found: 'fail upstream: the store answers a list with status 503',
      advice: 'Check that UPSTREAM_URL is the base address of the store, and the log of the store.',
    },
    {
      what: 'a redirect',
      handler: (_, response) => void response.writeHead(302, { location: '/elsewhere' }).end(),
      found: 'fail upstream: the store redirects (status 302) to /elsewhere, and redirects are never followed',
      advice: 'Set UPSTREAM_URL to where it redirects to.',
    },
    {
      what: 'a page of HTML',
      handler: (_, response) => sendText(response, 200, '\n<!doctype html>'),
      found: 'fail upstream: the store answers a list with a page of HTML',
      advice: 'Check that UPSTREAM_URL is the base address of the store, and that no proxy answers for it.',
    },
    {
      what: 'another JSON',
      handler: (_, response) => sendText(response, 200, '{"items":{}}'),
      found: "fail contract: the store's list is malformed at items",
      advice: 'Check that UPSTREAM_URL is the base address of the store; docs/store-interface.md has its answers.',
    },
    {
      what: 'a body that never ends',
      handler: (_, response) => void response.writeHead(200).write('{"items":['),
      env: { UPSTREAM_TIMEOUT: '200ms' },
      found: `${noAnswer}no answer in time`,
      advice: network,
    },
    {
      what: 'a body larger than is read',
      handler: (_, response) => void response.end('x'.repeat(9_000_000)),
      found: `${noAnswer}the answer is larger than 8000000 bytes`,
      advice: network,
    },
    {
      what: 'a reset connection',
      handler: (request) => void request.socket.resetAndDestroy(),
      found: `${noAnswer}ECONNRESET`,
      advice: network,
    },
  ];

  test.each(cases)('$what', async ({ handler, env = {}, found, advice }) => {
    if (handler !== undefined) store.override(LIST, handler);
    const { ok, checks, lines } = await doctor(undefined, env);
    expect([ok, lines]).toEqual([false, expect.arrayContaining([found])]);
    expect(checks[lines.indexOf(found)]?.advice).toBe(advice);
  });

  test('UPSTREAM_URL with /internal/v1 in it', async () => {
    const { ok, checks } = await doctor([], { UPSTREAM_URL: `${store.url}/internal/v1` });
    expect([ok, checks[0]]).toEqual([
      false,
      {
        name: 'upstream',
        status: 'fail',
        message: 'the store answers a list with status 404',
        advice: 'UPSTREAM_URL holds /internal/v1, which the gateway adds itself: leave it out.',
      },
    ]);
  });

  test('an address where something else is', async () => {
    const url = `${store.url}/elsewhere`;
    const { checks } = await doctor([], { UPSTREAM_URL: url });
    expect(checks[0]?.advice).toBe(
      `Check that UPSTREAM_URL is the base address of the store: the gateway asks for ${url}/internal/v1/evaluations.`,
    );
  });

  test('https for a store without TLS', async () => {
    const { ok, checks } = await doctor([], { UPSTREAM_URL: store.url.replace('http:', 'https:') });
    expect([ok, checks[0]?.advice]).toEqual([
      false,
      'It answers at the same address with http://: correct UPSTREAM_URL, which begins with https://.',
    ]);
    // The token was not sent in plain text.
    expect(store.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  test('http for a store with TLS', async ({ skip }) => {
    const files = await makeTlsFiles();
    skip(files === null, 'there is no openssl');
    if (files === null) return;
    const options = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
    const server = await listenOnLoopback(createServer(options, (_, response) => response.end('{}')));
    try {
      const { ok, checks } = await doctor([], { UPSTREAM_URL: server.url });
      expect([ok, checks[0]?.advice]).toEqual([
        false,
        'It answers at the same address with https://: correct UPSTREAM_URL, which begins with http://.',
      ]);
    } finally {
      await server.close();
      await files.remove();
    }
  });

  test('a plain answer of a server with TLS', async () => {
    const server = await listenOnLoopback(
      createPlainServer((_, response) => sendText(response, 400, 'The plain HTTP request was sent to HTTPS port')),
    );
    const { checks } = await doctor([], { UPSTREAM_URL: server.url });
    await server.close();
    expect(checks[0]?.message).toBe('the store answers a list with status 400');
  });

  test.each([
    [0, /^ok clock: differs from the store's by less than 5 seconds$/],
    [65_000, /^fail clock: this machine's clock is 6[456] s behind the store's$/],
    [-65_000, /^fail clock: this machine's clock is 6[456] s ahead of the store's$/],
    [null, /^skipped clock: the store sends no Date header to compare with$/],
  ])('a clock of the store that is %j ms ahead', async (aheadMs, found) => {
    store.override(LIST, (_, response) => {
      response.sendDate = false;
      if (aheadMs !== null) response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString());
      response.end('{"items":[],"total":0}');
    });
    expect((await doctor()).lines[1]).toMatch(found);
  });
});
