/** Each way to break a store, and what `doctor` finds then. */
import type { EvaluationRecord } from '../../src/domain/records.ts';
import {
  anEvaluation,
  aScorecard,
  aScoredCard,
  aTranscript,
  dealInsights,
  WORKSPACE_A,
  WORKSPACE_B,
} from '../support/records.ts';
import { sendError, sendJson, type StoreServer } from '../support/store-server.ts';
import {
  answered,
  asked,
  clockAhead,
  failed,
  handled,
  IDS,
  inTrouble,
  LIST,
  listed,
  oneEtag,
  relisted,
  unsearched,
} from './broken-store.ts';

export interface BrokenStore {
  readonly mutation: string;
  readonly make: (store: StoreServer) => void;
  readonly env?: Readonly<Record<string, string>>;
  /** Only the form of its answers is looked at. */
  readonly hasNoWorkspace?: true;
  /** All lines that fail, or else lines that are among the others. */
  readonly finds: readonly (string | RegExp)[];
  /** The advice on the first of them. */
  readonly advice?: string | RegExp;
}

const PARTS = ['evaluation', 'transcript', 'scorecard', 'dealInsights', 'rubric'];
const ABSENT = 'of an id that is not there';
const SUCH_EVALUATION = /evaluations\/[^/]*such[^/]*$/;
const TROUBLE = 'The store, or a proxy before it, is in trouble: see its log, and try again.';
const CORRECTED = 'It is not served. Have the store corrected: docs/store-interface.md has the form of each answer.';
const NETWORK = 'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.';
const WANTED_404 = /^The store answers an id that it does not have with 200\. A 404 with the code NOT_FOUND is wanted/;
const NO_ANSWER = 'fail upstream: the store at HOST gives no whole answer: ';

/** A member that searches look at, its text, and a record that has it. */
const SEARCHED: readonly (readonly [string, RegExp, Partial<EvaluationRecord>])[] = [
  ['title', /NEWEST/i, { title: 'Only the NEWEST call' }],
  ["evaluatee's name", /Jones/i, { evaluatee: { displayName: 'Zoë Jones', givenName: 'Zoë', email: 'z@example.com' } }],
  ["evaluatee's e-mail address", /zoe@/i, { evaluatee: { displayName: '', givenName: '', email: 'zoe@example.com' } }],
  [
    "people's e-mail addresses",
    /tim@/i,
    { people: [{ name: null, email: 'tim@example.com', spoke: true, attended: true }] },
  ],
  ['labels of deals', /Big/i, { crmLinks: [{ objectType: 'deal', externalId: 'd', label: 'Big one', href: null }] }],
];

export const IN_LISTS: readonly BrokenStore[] = [
  {
    mutation: 'limit is ignored',
    make: asked((query) => query.set('limit', '100')),
    finds: ['fail contract: lists: limit=2 is ignored: 5 records came'],
  },
  {
    mutation: 'offset is ignored',
    make: asked((query) => query.set('offset', '0')),
    finds: ['fail contract: lists: offset=2 is ignored: ev_7, ev_6 come again'],
  },
  {
    mutation: 'pages overlap by one record',
    make: asked((query) => query.set('offset', String(Math.max(0, Number(query.get('offset')) - 1)))),
    finds: ['fail contract: lists: offset=2 with limit=2 holds ev_6, ev_5, and the whole list ev_5, ev_4 there'],
  },
  {
    mutation: 'limit is cut',
    make: asked((query) => query.set('limit', String(Math.min(4, Number(query.get('limit')))))),
    finds: ['fail contract: lists: limit=100 is cut to 4: offset=4 holds ev_3, ev_2, ev_1'],
  },
  {
    mutation: 'the order is that of age',
    make: relisted((items) => items.toReversed()),
    finds: [
      'fail contract: lists: the order is not createdAtMs, then _id, both descending: ev_1 comes before ev_2',
      'fail contract: lists: offset=2 with limit=2 holds ev_4, ev_5, and the whole list ev_3, ev_4 there',
    ],
  },
  {
    mutation: 'the order within a millisecond is by ascending id',
    make: relisted((items) => (items.length === 7 ? items.toSpliced(2, 2, ...items.slice(2, 4).toReversed()) : items)),
    finds: [
      'fail contract: lists: the order is not createdAtMs, then _id, both descending: ev_4 comes before ev_5',
      'fail contract: lists: offset=2 with limit=2 holds ev_5, ev_4, and the whole list ev_4, ev_5 there',
    ],
  },
  {
    mutation: 'a record is repeated',
    make: relisted((items) => items.toSpliced(1, 1, ...items.slice(0, 1))),
    finds: [
      'fail contract: lists: offset=2 with limit=2 holds ev_5, ev_5, and the whole list ev_5, ev_4 there',
      'fail contract: lists: listed twice: ev_7',
      'fail contract: lists: total is not the number of matches: 1 instead of 2 with a q from the title',
    ],
  },
  {
    mutation: 'total is the length of the page',
    make: listed((list) => void (list.total = list.items.length)),
    finds: ['fail contract: lists: total depends on the page: 7 without offset, 2 with it'],
  },
  {
    mutation: 'total is that without filters',
    make: listed((list) => void (list.total = 9)),
    finds: [
      'fail contract: lists: total is not the number of matches: 9 instead of 7 without a filter, 9 instead of 0 with a scorecardId that no record has, 9 instead of 4 with scorecardId=sc_1, 9 instead of 0 with a q that no record holds, 9 instead of 1 with a q from the title, 9 instead of 0 for a workspace that no store has',
    ],
  },
  {
    mutation: 'times are in seconds',
    make: relisted((items) => items.map((one) => ({ ...one, createdAtMs: Math.floor(one.createdAtMs / 1000) }))),
    finds: [
      'fail contract: lists: createdAtMs is in seconds instead of milliseconds: ev_7, ev_6, ev_5, ev_4, ev_3, ev_2 and 1 more',
    ],
  },
  {
    mutation: 'a search finds nothing',
    make: (store) =>
      listed((list) => {
        if (store.requests.at(-1)?.query.has('q') === true) Object.assign(list, { items: [], total: 0 });
      })(store),
    finds: [
      "fail contract: lists: q does not find a record by a part, in another case, of its: title (ev_7), evaluatee's name (ev_7), evaluatee's e-mail address (ev_7), people's e-mail addresses (ev_7), labels of deals (ev_7)",
    ],
  },
  ...SEARCHED.map(([member, texts, changes]) => ({
    mutation: `a search does not look at the ${member}, or only in one case`,
    make: unsearched(texts, changes),
    finds: [new RegExp(`^fail contract: lists: q does not find .*: .*${member} \\(ev_7\\)`)],
  })),
  {
    mutation: 'state is ignored',
    make: asked((query) => query.delete('state')),
    finds: ['fail contract: lists: state=COMPLETED is ignored, since another state has: ev_9'],
  },
  {
    mutation: 'scorecardId is ignored',
    make: asked((query) => query.delete('scorecardId')),
    finds: ['fail contract: lists: scorecardId is ignored: one that no record has finds 7 records'],
  },
  {
    mutation: 'q is ignored',
    make: asked((query) => query.delete('q')),
    finds: ['fail contract: lists: q is ignored: a text that no record holds finds 7 records'],
  },
  {
    mutation: 'only one workspaceId is used',
    make: asked((query) => query.set('workspaceId', query.get('workspaceId') ?? '')),
    finds: ['fail contract: lists: workspaceId given twice: the records of the second one are missing'],
  },
  {
    mutation: 'workspaceId is ignored',
    make: asked((query) => {
      query.append('workspaceId', WORKSPACE_A);
      query.append('workspaceId', WORKSPACE_B);
    }),
    finds: [/^fail contract: the store ignored the workspaces asked for: its list holds ev_\d of another workspace$/],
  },
  {
    mutation: 'a record misses a member',
    make: (store) => void store.evaluations.set('ev_3', { ...anEvaluation({ _id: 'ev_3' }), people: undefined }),
    finds: ['fail contract: lists: people is malformed: found nothing, expected array: ev_3'],
  },
  {
    mutation: 'a member is of another type',
    make: (store) =>
      void store.evaluations.set('ev_3', { ...anEvaluation({ _id: 'ev_3' }), createdAtMs: '2026-03-04T05:06:07Z' }),
    finds: ['fail contract: lists: createdAtMs is malformed: found string (an ISO time), expected number: ev_3'],
  },
  {
    mutation: 'all records are malformed: one cause',
    make: (store) => IDS.forEach((id) => store.evaluations.set(id, { ...anEvaluation({ _id: id }), title: 7 })),
    finds: [
      'fail contract: lists: title is malformed: found number, expected string: ev_7, ev_6, ev_5, ev_4, ev_3, ev_2 and 1 more',
    ],
  },
  {
    mutation: 'an e-mail address that v1 cannot publish',
    make: (store) => {
      const record = anEvaluation({ _id: 'ev_3', createdAtMs: 1 });
      const evaluatee = { ...record.evaluatee, email: 'j\u00f6rg@example.com' };
      store.evaluations.set('ev_3', { ...record, evaluatee });
    },
    finds: ['warn contract: lists: v1 leaves out 1 of 7 records: evaluatee.email is malformed: ev_3'],
  },
  {
    mutation: 'searches are answered 503: trouble, to be tried again',
    make: inTrouble(/\?.*q=/),
    finds: ['fail contract: lists: the store answered with 503 DOWN (list)'],
    advice: TROUBLE,
  },
];

export const IN_RECORDS: readonly BrokenStore[] = [
  {
    mutation: 'the time of a single record is in seconds',
    make: handled(/evaluations\/ev_6$/, (request, response) =>
      sendJson(request, response, anEvaluation({ _id: 'ev_6', createdAtMs: 1_772_600_000 })),
    ),
    finds: ['fail contract: createdAtMs is in seconds instead of milliseconds: ev_6'],
  },
  {
    mutation: 'there are no transcripts',
    make: (store) => store.transcripts.clear(),
    finds: ['fail contract: transcript: none of 7 ids has one, such as ev_7'],
  },
  {
    mutation: 'transcripts have no address',
    make: answered(/transcript$/, 404, '{"error":"no route"}'),
    finds: [
      `fail contract: the store answered with 404: transcript ev_7, transcript ev_6, transcript ev_5, transcript ev_4, transcript ev_3, transcript ${ABSENT}`,
    ],
  },
  {
    mutation: 'a transcript is answered 503: trouble, to be tried again',
    make: inTrouble(/ev_7\/transcript$/),
    finds: ['fail contract: the store answered with 503 DOWN: transcript ev_7'],
    advice: TROUBLE,
  },
  {
    mutation: 'a part is malformed',
    make: (store) => void store.scoredCards.set('ev_7', { ...aScoredCard({ evaluationId: 'ev_7' }), coachingPlan: {} }),
    finds: [
      "fail contract: the store's record is malformed at coachingPlan.focusArea: found nothing, expected object: scorecard ev_7",
    ],
  },
  {
    mutation: 'a part is of another evaluation',
    make: (store) => void store.scoredCards.set('ev_7', aScoredCard({ evaluationId: 'ev_6' })),
    finds: ['fail contract: the store answered for another id than record (at evaluationId): scorecard ev_7'],
  },
  {
    mutation: 'evaluations are there in lists only',
    make: failed(/evaluations\/ev_[67]$/, 404, 'NOT_FOUND'),
    finds: ['fail contract: an evaluation is in a list, and not there by its id: ev_7, ev_6'],
  },
  {
    mutation: 'parts and a rubric name another workspace',
    make: (store) =>
      store.put({
        transcripts: [aTranscript({ evaluationId: 'ev_2', workspaceId: WORKSPACE_B })],
        scoredCards: [aScoredCard({ evaluationId: 'ev_7', workspaceId: WORKSPACE_B })],
        dealInsights: [dealInsights({ evaluationId: 'ev_1', workspaceId: WORKSPACE_B })],
        scorecards: [aScorecard({ _id: 'sc_2', workspaceId: WORKSPACE_B })],
      }),
    finds: [
      'fail contract: workspaceId is not that of the evaluation in the list: transcript ev_2, scorecard ev_7, dealInsights ev_1, rubric sc_2',
    ],
  },
  {
    mutation: 'a missing record has another code',
    make: failed(SUCH_EVALUATION, 404, 'GONE'),
    finds: [`fail contract: the store answered with 404 GONE: evaluation ${ABSENT}`],
  },
  {
    mutation: 'a missing rubric is an empty object',
    make: answered(/scorecards\/[^/]*such[^/]*$/, 200, '{}'),
    finds: [`fail contract: the store's record is malformed at _id: rubric ${ABSENT}`],
    advice: WANTED_404,
  },
  {
    mutation: 'each missing record has no code',
    make: answered(/such/, 404, '{}'),
    finds: [`fail contract: the store answered with 404: ${PARTS.map((part) => `${part} ${ABSENT}`).join(', ')}`],
  },
  ...['{}', 'null', JSON.stringify(anEvaluation())].map((text) => ({
    mutation: `a missing evaluation is ${text.slice(0, 20)}`,
    make: answered(SUCH_EVALUATION, 200, text),
    finds: [new RegExp(`^fail contract: .*evaluation ${ABSENT}`)],
    advice: WANTED_404,
  })),
  {
    mutation: 'one ETag for different lists: the gateway would keep the old one',
    make: oneEtag(/./),
    finds: [/^fail contract: different answers have the same ETag: \d+ have "1"$/],
  },
  {
    mutation: 'one ETag for single records: it may be their version',
    make: oneEtag(/evaluations\/ev_\d$/),
    finds: ['warn contract: different records have the same ETag: 5 have "1"'],
  },
  {
    mutation: 'lists without an ETag, which only costs',
    make: answered(LIST, 200, '{"items":[],"total":0}'),
    hasNoWorkspace: true,
    finds: ['warn contract: answers without an ETag: list'],
  },
  {
    mutation: 'If-None-Match is ignored, which only costs',
    make: handled(LIST, (_, response) => void response.setHeader('etag', '"1"').end('{"items":[],"total":0}')),
    hasNoWorkspace: true,
    finds: ['warn contract: If-None-Match is not answered with 304: list'],
  },
];

export const ON_THE_WAY: readonly BrokenStore[] = [
  {
    mutation: 'a wrong token',
    make: () => undefined,
    env: { UPSTREAM_TOKEN: 'wrong' },
    finds: ['fail upstream: the store refuses the token (status 401)'],
    advice: 'Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
  },
  {
    mutation: 'it answers without the token',
    make: handled(LIST, (request, response) => sendJson(request, response, { items: [], total: 0 })),
    hasNoWorkspace: true,
    finds: ['warn upstream: without the token the store answers with status 200 instead of 401'],
  },
  {
    mutation: 'it fails without the token: nothing is said of the token',
    make: handled(LIST, (request, response) =>
      request.headers.authorization === undefined
        ? sendError(response, 503, 'DOWN')
        : sendJson(request, response, { items: [], total: 0 }),
    ),
    hasNoWorkspace: true,
    finds: ['skipped upstream: without the token it answers with status 503: whether it checks the token is unknown'],
  },
  {
    mutation: 'it fails',
    make: failed(LIST, 503, 'FAILURE'),
    finds: ['fail upstream: the store answers a list with status 503'],
    advice: TROUBLE,
  },
  {
    mutation: 'a redirect',
    make: handled(LIST, (_, response) => void response.writeHead(302, { location: '/elsewhere' }).end()),
    finds: ['fail upstream: the store redirects (status 302) to /elsewhere, and redirects are never followed'],
    advice: 'Set UPSTREAM_URL to where it redirects to.',
  },
  {
    mutation: 'a page of HTML',
    make: answered(LIST, 200, '\n<!doctype html>'),
    finds: ['fail upstream: the store answers a list with a page of HTML'],
    advice: 'Check that UPSTREAM_URL is the base address of the store, and that no proxy answers for it.',
  },
  {
    mutation: 'another JSON',
    make: answered(LIST, 200, '{"data":[]}'),
    finds: ["fail contract: the store's list is malformed at items"],
    advice: 'Check that UPSTREAM_URL is the base address of the store; docs/store-interface.md has its answers.',
  },
  {
    mutation: 'a total that is a string',
    make: answered(LIST, 200, '{"items":[],"total":"0"}'),
    finds: ["fail contract: the store's list is malformed at total"],
    advice: CORRECTED,
  },
  {
    mutation: 'NaN',
    make: answered(LIST, 200, '{"items":[{"overallScore": NaN}],"total":1}'),
    finds: ["fail contract: the store's answer is not JSON (at byte 27 of 43)"],
    advice: CORRECTED,
  },
  {
    mutation: 'Latin-1',
    make: handled(
      LIST,
      (_, response) => void response.end(Buffer.from('{"items":[{"title":"Caf\u00e9"}],"total":1}', 'latin1')),
    ),
    finds: ["fail contract: the store's list holds bytes that are not UTF-8 (at byte 23)"],
    advice: CORRECTED,
  },
  {
    mutation: 'a body that never ends',
    make: handled(LIST, (_, response) => void response.writeHead(200).write('{"items":[')),
    env: { UPSTREAM_TIMEOUT: '200ms' },
    finds: [`${NO_ANSWER}no answer in time`],
    advice: NETWORK,
  },
  {
    mutation: 'a body larger than is read',
    make: answered(LIST, 200, 'x'.repeat(9_000_000)),
    finds: [`${NO_ANSWER}the answer is larger than 8000000 bytes`],
    advice: NETWORK,
  },
  {
    mutation: 'a reset connection',
    make: handled(LIST, (request) => void request.socket.resetAndDestroy()),
    finds: [`${NO_ANSWER}it closed the connection before the answer was whole`],
    advice: NETWORK,
  },
  ...(
    [
      [0, /^ok clock: differs from the store's by less than 5 seconds$/],
      [65_000, /^fail clock: this machine's clock is 6[456] s behind the store's$/],
      [-65_000, /^fail clock: this machine's clock is 6[456] s ahead of the store's$/],
      [null, /^skipped clock: the store sends no Date header to compare with$/],
    ] as const
  ).map(([aheadMs, found]) => ({
    mutation: `its clock is ${aheadMs} ms ahead`,
    make: clockAhead(aheadMs),
    hasNoWorkspace: true as const,
    finds: [found],
  })),
];
