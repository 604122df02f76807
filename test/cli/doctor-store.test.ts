/** What `evalgate doctor` finds at a store: a sound one passes, and each deliberate fault is named. */
import { createServer } from 'node:https';
import { createServer as createPlainServer, type ServerResponse } from 'node:http';
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { EvaluationRecord } from '../../src/domain/records.ts';
import { answerFrom, findRoute } from '../../src/sample/routes.ts';
import { forTest } from '../support/opened.ts';
import { NO_GATEWAY, runDoctor, startCliUntil } from '../support/cli.ts';
import { fileOf } from '../support/files.ts';
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

const listSchema = z.object({ items: z.array(z.custom<EvaluationRecord>()), total: z.number() });
type List = z.output<typeof listSchema>;

const LIST = /\/internal\/v1\/evaluations$/;
/** A real record each, newest first: seven of the workspace, of two scorecards, the third and fourth of one millisecond. */
const IDS = ['ev_7', 'ev_6', 'ev_5', 'ev_4', 'ev_3', 'ev_2', 'ev_1'];

let store: StoreServer;
beforeEach(async () => {
  store = await forTest(createStoreServer());
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
    transcripts: [aTranscript({ evaluationId: 'ev_6' }), aTranscript({ evaluationId: 'ev_2', format: null })],
    scoredCards: [aScoredCard({ evaluationId: 'ev_7' })],
    dealInsights: [dealInsights({ evaluationId: 'ev_1' })],
    scorecards: [aScorecard({ _id: 'sc_2' })],
  });
});

const isOfStore = (text: string): boolean => /^(?:\w+ )?(?:upstream|clock|contract)(?::|$)/.test(text);

async function doctor(
  args: readonly string[] = ['--workspace', WORKSPACE_A],
  env: Readonly<Record<string, string>> = {},
) {
  const of = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, ...env };
  const { ok, checks, lines } = await runDoctor(of, [...NO_GATEWAY, ...args]);
  return {
    ok,
    checks: checks.filter(({ name }) => isOfStore(name)),
    lines: lines.filter(isOfStore).map((line) => line.replace(/\d+ ms/, 'N ms')),
  };
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

/** Every answer of those paths has the same ETag. */
function useOneEtag(pattern: RegExp): void {
  store.override(pattern, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', store.url);
    const { status, body } = answerFrom(store, findRoute(pathname), searchParams);
    response.writeHead(status, { etag: '"1"' }).end(JSON.stringify(body));
  });
}

/** `most`: how many calls were under way at most. */
function slowDown(delayMs: number): { readonly most: () => number } {
  const load = { now: 0, most: 0 };
  store.override(/./, (request, response) => {
    load.now += 1;
    load.most = Math.max(load.most, load.now);
    setTimeout(() => {
      load.now -= 1;
      const { pathname, searchParams } = new URL(request.url ?? '', store.url);
      const { status, body } = answerFrom(store, findRoute(pathname), searchParams);
      response.statusCode = status;
      sendJson(request, response, body);
    }, delayMs);
  });
  return { most: () => load.most };
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
  'ok contract: evaluation: 5 records looked at, whole',
  'ok contract: transcript: 2 records looked at, whole (speaker_text, no format)',
  'ok contract: scorecard: 1 record looked at, whole',
  'ok contract: dealInsights: 1 record looked at, whole',
  'ok contract: rubric: 1 record looked at, whole',
  'ok contract: If-None-Match is answered with 304: list, evaluation, transcript, scorecard, dealInsights, rubric',
  'ok contract: an id that is not there is answered with 404 and a known code: evaluation, transcript, scorecard, dealInsights, rubric',
];

test('C7: a sound store passes, and only reads are sent to it', async () => {
  const { ok, lines } = await doctor(['--workspace', WORKSPACE_A.toUpperCase()]);
  expect([ok, lines]).toEqual([true, SOUND]);
  expect(new Set(store.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
});

test('without --workspace there is a warning that lists and records were not checked', async () => {
  const { ok, checks, lines } = await doctor([]);
  expect([ok, lines]).toEqual([
    true,
    [
      ...SOUND.slice(0, 3),
      'warn contract: lists: only the form of an empty one was checked',
      'ok contract: If-None-Match is answered with 304: list',
      SOUND.at(-1),
    ],
  ]);
  expect(checks[3]?.advice).toContain('--workspace UUID');
});

test('a workspace without records is no proof', async () => {
  const { ok, lines } = await doctor(['--workspace', '33333333-3333-4333-8333-333333333333']);
  expect([ok, lines[3]]).toEqual([true, 'warn contract: lists: the workspace has no completed evaluations']);
});

describe('a deliberate fault is named', () => {
  const faults: readonly { readonly what: string; readonly make: () => void; readonly found: readonly string[] }[] = [
    {
      what: 'limit is ignored',
      make: () => changeLists({ query: (query) => query.set('limit', '100') }),
      found: ['lists: limit=2 is ignored: 5 records came'],
    },
    {
      what: 'offset is ignored',
      make: () => changeLists({ query: (query) => query.set('offset', '0') }),
      found: ['lists: offset=2 is ignored: ev_7, ev_6 come again'],
    },
    {
      what: 'pages overlap by one record',
      make: () =>
        changeLists({ query: (query) => query.set('offset', String(Math.max(0, Number(query.get('offset')) - 1))) }),
      found: ['lists: offset=2 with limit=2 holds ev_6, ev_5, and the whole list ev_5, ev_4 there'],
    },
    {
      what: 'limit is cut',
      make: () =>
        changeLists({ query: (query) => query.set('limit', String(Math.min(4, Number(query.get('limit'))))) }),
      found: ['lists: limit=100 is cut to 4: offset=4 holds ev_3, ev_2, ev_1'],
    },
    {
      what: 'the order is that of age',
      make: () => changeLists({ list: ({ items }) => void items.splice(0, 100, ...items.toReversed()) }),
      found: [
        'lists: the order is not createdAtMs, then _id, both descending: ev_1 comes before ev_2',
        'lists: offset=2 with limit=2 holds ev_4, ev_5, and the whole list ev_3, ev_4 there',
      ],
    },
    {
      what: 'the order within a millisecond is by ascending id',
      make: () =>
        changeLists({
          list: ({ items }) => void (items.length === 7 && items.splice(2, 2, ...items.slice(2, 4).toReversed())),
        }),
      found: [
        'lists: the order is not createdAtMs, then _id, both descending: ev_4 comes before ev_5',
        'lists: offset=2 with limit=2 holds ev_5, ev_4, and the whole list ev_4, ev_5 there',
      ],
    },
    {
      what: 'a record is repeated',
      make: () => changeLists({ list: ({ items }) => void items.splice(1, 1, ...items.slice(0, 1)) }),
      found: [
        'lists: offset=2 with limit=2 holds ev_5, ev_5, and the whole list ev_5, ev_4 there',
        'lists: listed twice: ev_7',
        'lists: total is not the number of matches: 1 instead of 2 with a q from the title',
      ],
    },
    {
      what: 'total is the length of the page',
      make: () => changeLists({ list: (list) => void (list.total = list.items.length) }),
      found: ['lists: total depends on the page: 7 without offset, 2 with it'],
    },
    {
      what: 'total is that without filters',
      make: () => changeLists({ list: (list) => void (list.total = 9) }),
      found: [
        'lists: total is not the number of matches: 9 instead of 7 without a filter, 9 instead of 0 with a scorecardId that no record has, 9 instead of 4 with scorecardId=sc_1, 9 instead of 0 with a q that no record holds, 9 instead of 1 with a q from the title, 9 instead of 0 for a workspace that no store has',
      ],
    },
    {
      what: 'times are in seconds',
      make: () =>
        changeLists({
          list: ({ items }) =>
            void items.splice(
              0,
              100,
              ...items.map((one) => ({ ...one, createdAtMs: Math.floor(one.createdAtMs / 1000) })),
            ),
        }),
      found: [
        'lists: createdAtMs is in seconds instead of milliseconds: ev_7, ev_6, ev_5, ev_4, ev_3, ev_2 and 1 more',
      ],
    },
    {
      what: 'the time of a single record is in seconds',
      make: () => {
        const [id, record] = [/evaluations\/ev_6$/, anEvaluation({ _id: 'ev_6', createdAtMs: 1_772_600_000 })];
        store.override(id, (request, response) => sendJson(request, response, record));
      },
      found: ['createdAtMs is in seconds instead of milliseconds: ev_6'],
    },
    {
      what: 'a search finds nothing',
      make: () =>
        changeLists({
          list: (list) =>
            void (store.requests.at(-1)?.query.has('q') === true && Object.assign(list, { items: [], total: 0 })),
        }),
      found: [
        "lists: q does not find a record by a part, in another case, of its: title (ev_7), evaluatee's name (ev_7), evaluatee's e-mail address (ev_7), people's e-mail addresses (ev_7), labels of deals (ev_7)",
      ],
    },
    {
      what: 'state is ignored',
      make: () => changeLists({ query: (query) => query.delete('state') }),
      found: ['lists: state=COMPLETED is ignored, since another state has: ev_9'],
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
      found: ['lists: people is malformed: found nothing, expected array: ev_3'],
    },
    {
      what: 'there are no transcripts',
      make: () => store.transcripts.clear(),
      found: ['transcript: none of 7 ids has one, such as ev_7'],
    },
    {
      what: 'transcripts have no address',
      make: () => void store.override(/transcript$/, (_, response) => sendText(response, 404, '{"error":"no route"}')),
      found: [
        'the store answered with 404: transcript ev_7, transcript ev_6, transcript ev_5, transcript ev_4, transcript ev_3, transcript of an id that is not there',
      ],
    },
    {
      what: 'a part is malformed',
      make: () => void store.scoredCards.set('ev_7', { ...aScoredCard({ evaluationId: 'ev_7' }), coachingPlan: {} }),
      found: [
        "the store's record is malformed at coachingPlan.focusArea: found nothing, expected object: scorecard ev_7",
      ],
    },
    {
      what: 'a part is of another evaluation',
      make: () => void store.scoredCards.set('ev_7', aScoredCard({ evaluationId: 'ev_6' })),
      found: ['the store answered for another id than record (at evaluationId): scorecard ev_7'],
    },
    {
      what: 'evaluations are there in lists only',
      make: () => void store.override(/evaluations\/ev_[67]$/, (_, response) => sendError(response, 404, 'NOT_FOUND')),
      found: ['an evaluation is in a list, and not there by its id: ev_7, ev_6'],
    },
    {
      what: 'parts and a rubric name another workspace',
      make: () =>
        store.put({
          transcripts: [aTranscript({ evaluationId: 'ev_2', workspaceId: WORKSPACE_B })],
          scoredCards: [aScoredCard({ evaluationId: 'ev_7', workspaceId: WORKSPACE_B })],
          dealInsights: [dealInsights({ evaluationId: 'ev_1', workspaceId: WORKSPACE_B })],
          scorecards: [aScorecard({ _id: 'sc_2', workspaceId: WORKSPACE_B })],
        }),
      found: [
        'workspaceId is not that of the evaluation in the list: transcript ev_2, scorecard ev_7, dealInsights ev_1, rubric sc_2',
      ],
    },
    {
      what: 'a missing record has another code',
      make: () =>
        void store.override(/evaluations\/[^/]*such[^/]*$/, (_, response) => sendError(response, 404, 'GONE')),
      found: ['the store answered with 404 GONE: evaluation of an id that is not there'],
    },
    {
      what: 'a missing record is an empty object',
      make: () => void store.override(/scorecards\/[^/]*such[^/]*$/, (_, response) => sendText(response, 200, '{}')),
      found: ["the store's record is malformed at _id: rubric of an id that is not there"],
    },
    {
      what: 'each missing record has no code',
      make: () => void store.override(/such/, (_, response) => sendText(response, 404, '{}')),
      found: [
        `the store answered with 404: ${['evaluation', 'transcript', 'scorecard', 'dealInsights', 'rubric'].map((name) => `${name} of an id that is not there`).join(', ')}`,
      ],
    },
  ];

  test.each(faults)('$what', async ({ make, found }) => {
    make();
    const { ok, checks } = await doctor();
    const failed = checks.filter(({ status }) => status === 'fail');
    expect([ok, failed.map(({ message }) => message)]).toEqual([false, found]);
    expect(failed.every(({ advice }) => advice !== null)).toBe(true);
  });

  test.each([
    ['an empty object', (response: ServerResponse) => sendText(response, 200, '{}')],
    ['null', (response: ServerResponse) => sendText(response, 200, 'null')],
    ['another record', (response: ServerResponse) => sendText(response, 200, JSON.stringify(anEvaluation()))],
  ])('200 with %s for an id that is not there: a 404 is wanted, it says', async (_what, send) => {
    store.override(/evaluations\/[^/]*such[^/]*$/, (_, response) => send(response));
    const { checks } = await doctor();
    const [failed] = checks.filter(({ status }) => status === 'fail');
    expect(failed?.message).toMatch(/evaluation of an id that is not there/);
    expect(failed?.advice).toMatch(
      /^The store answers an id that it does not have with 200\. A 404 with the code NOT_FOUND is wanted/,
    );
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
    const found: unknown = expect.stringMatching(`^fail contract: lists: q does not find .*: .*${member} \\(ev_7\\)`);
    expect([ok, lines]).toEqual([false, expect.arrayContaining([found])]);
  });

  test('malformed records are one cause', async () => {
    for (const id of IDS) store.evaluations.set(id, { ...anEvaluation({ _id: id }), title: 7 });
    const { ok, lines } = await doctor();
    const found =
      'fail contract: lists: title is malformed: found number, expected string: ev_7, ev_6, ev_5, ev_4, ev_3, ev_2 and 1 more';
    expect([ok, lines.filter((line) => line.startsWith('fail'))]).toEqual([false, expect.arrayContaining([found])]);
  });

  test('an e-mail address that v1 cannot publish is a warning', async () => {
    const record = anEvaluation({ _id: 'ev_3', createdAtMs: 1 });
    store.evaluations.set('ev_3', { ...record, evaluatee: { ...record.evaluatee, email: 'j\u00f6rg@example.com' } });
    const { ok, lines } = await doctor();
    expect([ok, lines[3]]).toEqual([
      true,
      'warn contract: lists: v1 leaves out 1 of 7 records: evaluatee.email is malformed: ev_3',
    ]);
  });
});

test.each([
  ['lists without an ETag', { etag: null }, 'answers without an ETag: list'],
  ['If-None-Match that is ignored', { etag: '"1"' }, 'If-None-Match is not answered with 304: list'],
])('%s: a warning, because it only costs', async (_what, { etag }, found) => {
  store.override(LIST, (_, response) => {
    if (etag !== null) response.setHeader('etag', etag);
    response.end('{"items":[],"total":0}');
  });
  const { ok, lines } = await doctor([]);
  expect([ok, lines]).toEqual([true, expect.arrayContaining([`warn contract: ${found}`])]);
});

describe('one ETag for different answers', () => {
  test('lists among them: a failure, since the gateway would keep the old one', async () => {
    useOneEtag(/./);
    const { ok, lines } = await doctor();
    const found: unknown = expect.stringMatching(/^fail contract: different answers have the same ETag: \d+ have "1"$/);
    expect([ok, lines]).toEqual([false, expect.arrayContaining([found])]);
  });

  test('only single records: a warning, since it may be their version', async () => {
    useOneEtag(/evaluations\/ev_\d$/);
    const { ok, lines } = await doctor();
    expect([ok, lines]).toEqual([
      true,
      expect.arrayContaining(['warn contract: different records have the same ETag: 5 have "1"']),
    ]);
  });
});

test('a store that answers without the token: a warning', async () => {
  store.override(LIST, (request, response) => sendJson(request, response, { items: [], total: 0 }));
  const { ok, lines } = await doctor([]);
  expect([ok, lines[2]]).toEqual([
    true,
    'warn upstream: without the token the store answers with status 200 instead of 401',
  ]);
});

test('a store that fails without the token: nothing is said of the token', async () => {
  store.override(LIST, (request, response) =>
    request.headers.authorization === undefined
      ? sendError(response, 503, 'DOWN')
      : sendJson(request, response, { items: [], total: 0 }),
  );
  const { ok, lines } = await doctor([]);
  expect([ok, lines[2]]).toEqual([
    true,
    'skipped upstream: without the token it answers with status 503: whether it checks the token is unknown',
  ]);
});

test.each([
  [
    /\?.*q=/,
    'the store answered with 503 DOWN (list)',
    'fail contract: lists: the store answered with 503 DOWN (list)',
  ],
  [
    /ev_7\/transcript$/,
    'the store answered with 503 DOWN',
    'fail contract: the store answered with 503 DOWN: transcript ev_7',
  ],
])('some answers are 503: trouble, to be tried again (%s)', async (pattern, _message, found) => {
  store.override(/./, (request, response) => {
    if (pattern.test(request.url ?? '')) return sendError(response, 503, 'DOWN');
    const { pathname, searchParams } = new URL(request.url ?? '', store.url);
    return sendJson(request, response, answerFrom(store, findRoute(pathname), searchParams).body);
  });
  const { ok, checks, lines } = await doctor();
  expect([ok, lines.filter((line) => line === found)]).toEqual([false, [found]]);
  expect(checks[lines.indexOf(found)]?.advice).toBe(
    'The store, or a proxy before it, is in trouble: see its log, and try again.',
  );
});

test('the type of a wrong member is named, and the one expected', async () => {
  const record = anEvaluation({ _id: 'ev_3' });
  store.evaluations.set('ev_3', Object.assign({ ...record }, { createdAtMs: '2026-03-04T05:06:07Z' }));
  expect((await doctor()).lines).toContain(
    'fail contract: lists: createdAtMs is malformed: found string (an ISO time), expected number: ev_3',
  );
});

describe('a slow store', () => {
  test('is warned of, and has a few calls at a time', async () => {
    const { most } = slowDown(15);
    const env = { CONFIG_FILE: fileOf('objectives: {missP99: 10ms}\n') };
    const { lines } = await doctor(['--workspace', WORKSPACE_A], env);
    expect(lines.at(-1)).toMatch(
      /^warn upstream: \d+ of \d+ calls took longer than objectives\.missP99 \(10ms\): the median is 0\.\d\d s, the slowest \d\.\d\d s$/,
    );
    expect(most()).toBe(4);
  });

  test('has no more calls a second than it may have', async () => {
    const file = fileOf('upstream: {maxRequestsPerSecond: 20, maxConnections: 2}\n');
    const { most } = slowDown(0);
    const startMs = performance.now();
    await doctor([], { CONFIG_FILE: file });
    // Two probes, two lists, five ids that are not there.
    expect(store.requests).toHaveLength(9);
    expect(performance.now() - startMs).toBeGreaterThan(290);
    expect(most()).toBeLessThan(3);
  });

  test('has each check printed as it ends', async () => {
    let absences = 0;
    const held = Promise.withResolvers<void>();
    store.override(/such/, (_, response) => {
      absences += 1;
      void held.promise.then(() => sendError(response, 404, 'NOT_FOUND'));
    });
    const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token };
    const args = ['doctor', ...NO_GATEWAY, '--workspace', WORKSPACE_A];
    const running = await startCliUntil(/ok {6}contract {5}lists: order/, args, { env });
    expect(absences).toBeLessThan(5);
    held.resolve();
    const { status, stdout } = await running.ended;
    expect([status, stdout]).toEqual([0, expect.stringContaining('an id that is not there is answered with 404')]);
  });
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
  const noAnswer = 'fail upstream: the store at HOST gives no whole answer: ';
  const corrected = 'It is not served. Have the store corrected: docs/store-interface.md has the form of each answer.';
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
      advice: 'The store, or a proxy before it, is in trouble: see its log, and try again.',
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
      handler: (_, response) => sendText(response, 200, '{"data":[]}'),
      found: "fail contract: the store's list is malformed at items",
      advice: 'Check that UPSTREAM_URL is the base address of the store; docs/store-interface.md has its answers.',
    },
    {
      what: 'a total that is a string',
      handler: (_, response) => sendText(response, 200, '{"items":[],"total":"0"}'),
      found: "fail contract: the store's list is malformed at total",
      advice: corrected,
    },
    {
      what: 'NaN',
      handler: (_, response) => sendText(response, 200, '{"items":[{"overallScore": NaN}],"total":1}'),
      found: "fail contract: the store's answer is not JSON (at byte 27 of 43)",
      advice: corrected,
    },
    {
      what: 'Latin-1',
      handler: (_, response) => void response.end(Buffer.from('{"items":[{"title":"Caf\u00e9"}],"total":1}', 'latin1')),
      found: "fail contract: the store's list holds bytes that are not UTF-8 (at byte 23)",
      advice: corrected,
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
      found: `${noAnswer}it closed the connection before the answer was whole`,
      advice: network,
    },
  ];

  test.each(cases)('$what', async ({ handler, env = {}, found, advice }) => {
    if (handler !== undefined) store.override(LIST, handler);
    const { ok, checks, lines: said } = await doctor(undefined, env);
    const lines = said.map((line) => line.replace(new URL(store.url).host, 'HOST'));
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
      files.remove();
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
