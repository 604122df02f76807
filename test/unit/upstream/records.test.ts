import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { INTERNAL_MEMBERS } from '../../../src/upstream/open-objects.ts';
import {
  anApiKeyRecord,
  anEvaluation,
  aScorecard,
  aScoredCard,
  aTranscript,
  dealInsights,
  EVALUATION_ID,
  SCORECARD_ID,
  WORKSPACE_A,
} from '../../support/records.ts';
import type { StoreServer } from '../../support/store-server.ts';
import { ASKED, failureOf, openStore, recordOf } from './harness.ts';

/** Answers every request with that JSON text. */
function answerWith(store: StoreServer, text: string): () => void {
  return store.override(/./, (_request, response) => response.end(text));
}

describe('C4: a record of another id than was asked is malformed', () => {
  test.each([
    ['evaluation', anEvaluation({ _id: 'other' }), '_id'],
    ['transcript', aTranscript({ evaluationId: 'other' }), 'evaluationId'],
    ['scorecard', aScoredCard({ evaluationId: 'other' }), 'evaluationId'],
    ['dealInsights', dealInsights({ evaluationId: 'other' }), 'evaluationId'],
    ['rubric', aScorecard({ _id: 'other' }), '_id'],
  ] as const)('%s', async (resource, record, path) => {
    const { store, client } = await openStore();
    answerWith(store, JSON.stringify(record));
    const failure = await failureOf(client[resource]('asked', ASKED));
    expect(failure).toMatchObject({ kind: 'malformed', status: 200 });
    expect(failure.message).toBe(`the store answered for another id than ${resource} asked (at ${path})`);
  });

  test('even by case alone', async () => {
    const { store, client } = await openStore();
    answerWith(store, JSON.stringify(anEvaluation({ _id: 'EV_1' })));
    expect((await failureOf(client.evaluation('ev_1', ASKED))).kind).toBe('malformed');
  });
});

describe("a record that fails its schema is malformed; the message names the id and the member's path, never its value", () => {
  test.each([
    [
      'evaluation',
      { ...anEvaluation(), evaluatee: { ...anEvaluation().evaluatee, email: 'SECRET' } },
      'evaluatee.email',
    ],
    ['transcript', { ...aTranscript(), body: ['SECRET'] }, 'body'],
    ['transcript', { ...aTranscript(), format: 'SECRET' }, 'format'],
    ['scorecard', { ...aScoredCard(), coachingPlan: { focusArea: 'SECRET' } }, 'coachingPlan.focusArea'],
    ['dealInsights', { ...dealInsights(), insights: ['SECRET'] }, 'insights'],
    ['dealInsights', { ...dealInsights(), insights: null }, 'insights'],
    ['dealInsights', 'SECRET', '(record)'],
  ] as const)('%s %#', async (resource, record, path) => {
    const { store, client } = await openStore();
    answerWith(store, JSON.stringify(record));
    const failure = await failureOf(client[resource](EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind: 'malformed', status: 200 });
    expect(failure.message).toBe(`the store's ${resource} ev_1 is malformed at ${path}`);
  });

  test('an API key is not named at all', async () => {
    const { store, client } = await openStore();
    const hash = 'ab'.repeat(32);
    store.apiKeys.set(hash, { ...anApiKeyRecord(), status: 'SECRET' });
    const failure = await failureOf(client.apiKey(hash, ASKED));
    expect(failure.message).toBe("the store's API key is malformed at status");
  });
});

describe('K7: a malformed record is told with the workspace that it says it is of', () => {
  const BROKEN = { evaluationId: EVALUATION_ID, _id: EVALUATION_ID };

  test.each(['evaluation', 'transcript', 'scorecard', 'dealInsights', 'rubric'] as const)('%s', async (resource) => {
    const { store, client } = await openStore();
    answerWith(store, JSON.stringify({ ...BROKEN, workspaceId: 'ABCDEF01-2345-4789-8ABC-DEF012345678' }));
    const failure = await failureOf(client[resource](EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind: 'malformed', workspaceId: 'abcdef01-2345-4789-8abc-def012345678' });
    expect(failure.publicMessage).not.toContain('abcdef01');
  });

  test.each([
    ['none', BROKEN],
    ['one that is no UUID', { ...BROKEN, workspaceId: 'w' }],
    ['a number', { ...BROKEN, workspaceId: 7 }],
    ['several', { ...BROKEN, workspaceId: [WORKSPACE_A] }],
    ['no object', WORKSPACE_A],
    // Of the record asked for, another one tells nothing.
    ['that of a whole record of another id', anEvaluation({ _id: 'other' })],
  ])('not where it is %s', async (_what, record) => {
    const { store, client } = await openStore();
    answerWith(store, JSON.stringify(record));
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind: 'malformed', workspaceId: null });
  });
});

describe('unknown members', () => {
  const RESOURCES = ['evaluation', 'transcript', 'scorecard', 'dealInsights', 'rubric'] as const;
  const RECORDS = {
    evaluation: anEvaluation({ _id: EVALUATION_ID }),
    transcript: aTranscript(),
    scorecard: aScoredCard(),
    dealInsights: dealInsights(),
    rubric: aScorecard({ _id: EVALUATION_ID }),
  };

  test('whatever members are added anywhere, the record has only the listed ones', async () => {
    const { store, client } = await openStore();
    const additions = fc.infiniteStream(fc.dictionary(memberName, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...RESOURCES), additions, async (resource, stream) => {
        const restore = answerWith(store, JSON.stringify(withAdditions(RECORDS[resource], stream)));
        expect(await recordOf<unknown>(client[resource](EVALUATION_ID, ASKED))).toStrictEqual(RECORDS[resource]);
        restore();
      }),
      { numRuns: 200 },
    );
  });

  test('in an API key they are dropped too', async () => {
    const { store, client } = await openStore();
    answerWith(
      store,
      JSON.stringify({ ...anApiKeyRecord(), internalFlags: 1, limits: { perMinute: 5, perHour: 9, x: 1 } }),
    );
    expect(await recordOf(client.apiKey('0'.repeat(64), ASKED))).toEqual(
      anApiKeyRecord({ limits: { perMinute: 5, perHour: 9 } }),
    );
  });

  test('in an open object only the internal ones are dropped, at any depth', async () => {
    const { store, client } = await openStore();
    const internal = Object.fromEntries([...INTERNAL_MEMBERS].map((name) => [name, { secret: true }]));
    const open = { keep: [{ deep: { a: null, b: [1, 'two', false] } }], modelrun: 1, toString: 'x', 0: 'zero' };
    const dirty = { ...internal, ...open, keep: [{ ...internal, deep: { ...internal, ...open.keep[0]?.deep } }] };
    store.put({ dealInsights: [dealInsights({ insights: dirty })], scorecards: [aScorecard({ rubric: dirty })] });
    expect((await recordOf(client.dealInsights(EVALUATION_ID, ASKED))).insights).toEqual(open);
    expect((await recordOf(client.rubric(SCORECARD_ID, ASKED))).rubric).toEqual(open);
  });

  test('any other open object passes as it is', async () => {
    const { store, client } = await openStore();
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), async (insights) => {
        // What the wire makes of it: an own __proto__ stays a member, -0 becomes 0.
        const sent: unknown = JSON.parse(JSON.stringify(insights));
        store.dealInsights.set(EVALUATION_ID, { ...dealInsights(), insights });
        const { insights: received } = await recordOf(client.dealInsights(EVALUATION_ID, ASKED));
        expect(JSON.stringify(received)).toBe(JSON.stringify(sent));
      }),
      { numRuns: 100 },
    );
  });
});

describe('a member named __proto__', () => {
  test('gives a record nothing and pollutes nothing', async () => {
    const { store, client } = await openStore();
    const { title: _title, ...untitled } = anEvaluation();
    const text = JSON.stringify(untitled).replace('{', '{"__proto__":{"title":"inherited","polluted":true},');
    answerWith(store, text);
    expect((await failureOf(client.evaluation(EVALUATION_ID, ASKED))).message).toBe(
      "the store's evaluation ev_1 is malformed at title",
    );
    expect('polluted' in {}).toBe(false);
  });

  test.each(['', String.raw`,"half":"\ud800"`])('stays a plain member of an open object %s', async (rest) => {
    const { store, client } = await openStore();
    const text = JSON.stringify(dealInsights({ insights: {} }));
    answerWith(store, text.replace('"insights":{}', `"insights":{"__proto__":{"polluted":true}${rest}}`));
    const { insights } = await recordOf(client.dealInsights(EVALUATION_ID, ASKED));
    expect(Object.getPrototypeOf(insights)).toBe(Object.prototype);
    expect('polluted' in insights).toBe(false);
    expect(Object.keys(insights)[0]).toBe('__proto__');
  });
});

describe('T1: lone surrogates become U+FFFD', () => {
  test('in every string of a record, escaped in any case; pairs stay', async () => {
    const { store, client } = await openStore();
    const text = JSON.stringify(anEvaluation({ title: 'T', people: [] }));
    answerWith(store, text.replace('"T"', String.raw`"a\ud800b\uDFFFc\ud83d\ude00d\\ud800"`));
    expect((await recordOf(client.evaluation(EVALUATION_ID, ASKED))).title).toBe('a\ufffdb\ufffdc😀d\\ud800');
  });

  test('in a transcript', async () => {
    const { store, client } = await openStore();
    store.put({ transcripts: [aTranscript({ body: '\udc00: half\ud83d' })] });
    expect((await recordOf(client.transcript(EVALUATION_ID, ASKED))).body).toBe('\ufffd: half\ufffd');
  });

  test('in the names and values of an open object', async () => {
    const { store, client } = await openStore();
    store.put({ dealInsights: [dealInsights({ insights: { 'a\ud800': ['\udfff', { b: '\ud800' }] } })] });
    expect((await recordOf(client.dealInsights(EVALUATION_ID, ASKED))).insights).toEqual({
      'a\ufffd': ['\ufffd', { b: '\ufffd' }],
    });
  });

  test('sent as bytes that are no UTF-8 they are replaced too', async () => {
    const { store, client } = await openStore();
    const [head = '', tail = ''] = JSON.stringify(aTranscript({ body: 'a@b' })).split('@');
    store.override(/./, (_request, response) => {
      response.end(Buffer.concat([Buffer.from(head), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from(tail)]));
    });
    expect((await recordOf(client.transcript(EVALUATION_ID, ASKED))).body).toBe('a\ufffd\ufffd\ufffdb');
  });
});

test('a transcript of 2 MB of any Unicode comes through as it is', async () => {
  const { store, client } = await openStore();
  const body = 'Zoë: 👩‍👩‍👧 naïve שלום "quoted" \\ back\r\n\u0001\u001f\u2028'.repeat(40_000);
  store.put({ transcripts: [aTranscript({ body })] });
  expect((await recordOf(client.transcript(EVALUATION_ID, ASKED))).body === body).toBe(true);
});

test('a byte order mark before the JSON is passed over', async () => {
  const { store, client } = await openStore();
  answerWith(store, `\ufeff${JSON.stringify(anEvaluation())}`);
  expect((await recordOf(client.evaluation(EVALUATION_ID, ASKED))).workspaceId).toBe(WORKSPACE_A);
});

/** Names that no record lists, some of them awkward ones. */
const LISTED = new Set(
  JSON.stringify([anEvaluation(), aTranscript(), aScoredCard(), dealInsights(), aScorecard()]).match(/\w+/g),
);
const memberName = fc
  .oneof(fc.constantFrom(...INTERNAL_MEMBERS, 'constructor', 'toString', '__proto__', 'id', ''), fc.string())
  .filter((name) => !LISTED.has(name) || INTERNAL_MEMBERS.has(name));

/** The record with members added to each of its objects; into the open ones, which keep theirs, only internal members. */
function withAdditions(value: unknown, stream: Iterator<Record<string, unknown>>, isOpen = false): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => withAdditions(element, stream, isOpen));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]: [string, unknown]) => [
    name,
    withAdditions(member, stream, isOpen || name === 'insights' || name === 'rubric'),
  ]);
  const added: [string, unknown][] = Object.entries(nextOf(stream)).filter(
    ([name]) => !isOpen || INTERNAL_MEMBERS.has(name),
  );
  return Object.fromEntries([...added, ...entries]);
}

function nextOf(stream: Iterator<Record<string, unknown>>): Record<string, unknown> {
  const next = stream.next();
  return next.done === true ? {} : next.value;
}
