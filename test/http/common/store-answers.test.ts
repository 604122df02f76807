/** Which answers of the store are taken, and up to which size and shape. */
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { linesOf } from '../../support/admin.ts';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import type { Reply } from '../../support/gateway.ts';
import { anEvaluation, aScorecard, aTranscript, dealInsights } from '../../support/records.ts';
import { openUpstreamGateway } from '../../support/upstream-settings.ts';
import {
  ENDPOINTS,
  GET_CALL,
  GET_CALL_TRANSCRIPT,
  GET_REPORT_DEAL_INSIGHTS,
  GET_RUBRIC,
  LIST_CALLS,
} from './endpoints.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const MAX_BYTES = 3_000_000;
const INTERNAL = ['modelRun', 'reviewerNotes', 'costCents', 'internalFlags'];

const gateway = await forFile(openUpstreamGateway({ maxResponse: `${MAX_BYTES}B` }));
const subject = newSubject();
const key = await keyFor(gateway, subject);

/** A record of one's own at the endpoint, asked for for the first time, answered by these bytes. */
async function readAs(
  endpoint: typeof GET_CALL,
  answer: (record: Subject) => string | Buffer,
  headers = {},
): Promise<Reply> {
  const fresh = newSubject(subject.workspaceId);
  const isPart = endpoint.resource === 'dealInsights';
  // Whose a part is that cannot be read, its evaluation says.
  if (isPart) putSubject(gateway.store, fresh);
  const end = gateway.store.override(isPart ? /deal-insights$/ : /^/, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(answer(fresh));
  });
  const reply = await gateway.get(endpoint.path(fresh), { key });
  end();
  return reply;
}

const evaluationOf = ({ id, workspaceId }: Subject): object => anEvaluation({ _id: id, workspaceId });
const partOf = ({ id, workspaceId }: Subject) => ({ evaluationId: id, workspaceId });
const insightsText = (of: Subject, insights: string): string =>
  JSON.stringify(dealInsights({ ...partOf(of), insights: {} })).replace(
    '"insights":{}',
    () => `"insights":${insights}`,
  );

const padded = (of: Subject, bytes: number): string => {
  const text = JSON.stringify(evaluationOf(of));
  return text + ' '.repeat(bytes - Buffer.byteLength(text));
};

const nested = (levels: number): string => `${'{"a":'.repeat(levels)}"]}\\"[{"${'}'.repeat(levels)}`;

const many = (count: number) => (of: Subject) => insightsText(of, `{"a":[${'1,'.repeat(count)}1]}`);

const nestedTo = (depth: number) => (of: Subject) => insightsText(of, nested(depth));

const manyLong = (count: number) => (of: Subject) =>
  insightsText(of, `{"a":[${Array(count).fill('1e400').join(',')}]}`);

const manyMembers = (count: number) => (of: Subject) =>
  insightsText(of, `{${Array.from({ length: count }, (_, index) => `"m${index}":1`).join(',')}}`);

const values = (count: number) => Array.from({ length: count }, () => ({ key: 'k', label: 'l', value: 1 }));
const readWith = (members: object) => readAs(GET_CALL, (of) => JSON.stringify({ ...evaluationOf(of), ...members }));

/** Members in each object; in open ones, which keep theirs, only internal ones. */
function sprinkled(value: unknown, isOpen = false): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => sprinkled(element, isOpen));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]: [string, unknown]) => [
    name,
    sprinkled(member, isOpen || name === 'insights' || name === 'rubric'),
  ]);
  const others = isOpen ? [] : ['constructor', 'toString', '__proto__', 'secret', ''];
  return Object.fromEntries([...[...INTERNAL, ...others].map((name) => [name, { secret: [true] }]), ...members]);
}

const listOf = (items: readonly object[], total = items.length): Promise<Reply> => {
  gateway.clock.advance(2 * 3_600_000);
  return readAs(LIST_CALLS, () => JSON.stringify({ items, total }));
};
const item = (id: string, members: object = {}): object => ({ ...evaluationOf({ ...subject, id }), ...members });
const listSchema = z.object({ calls: z.array(z.object({ id: z.string() })) });
const idsOf = ({ json }: Reply): readonly string[] => listSchema.parse(json).calls.map(({ id }) => id);

describe('the size of an answer', () => {
  test.each([
    ['plain', (text: string) => text, {}],
    ['gzip', (text: string) => gzipSync(text), { 'content-encoding': 'gzip' }],
    ['x-gzip', (text: string) => gzipSync(text), { 'content-encoding': ' X-Gzip ' }],
    [
      'several members of gzip',
      (text: string) => Buffer.concat([gzipSync(text.slice(0, 99)), gzipSync(text.slice(99))]),
      { 'content-encoding': 'GZIP' },
    ],
    ['said to be not coded', (text: string) => text, { 'content-encoding': 'Identity', 'content-type': 'text/html' }],
  ])('may be upstream.maxResponse after decoding, and not a byte more: %s', async (_what, encode, headers) => {
    expect((await readAs(GET_CALL, (of) => encode(padded(of, MAX_BYTES)), headers)).status).toBe(200);
    const tooLarge = await readAs(GET_CALL, (of) => encode(padded(of, MAX_BYTES + 1)), headers);
    expect(tooLarge.status).toBe(500);
    expect(await gateway.failureOf(tooLarge)).toMatch(/^the store's evaluation \S+ is larger than 3000000 bytes$/);
  });

  test.each(['deflate', 'zstd', 'gzip, gzip'])('a coding that was not asked for is refused: %s', async (coding) => {
    const reply = await readAs(GET_CALL, (of) => padded(of, 2000), { 'content-encoding': coding });
    expect([reply.status, await gateway.failureOf(reply)]).toEqual([
      500,
      'the body has a content coding that was not asked for',
    ]);
  });
});

describe('the shape of an answer', () => {
  test.each([
    // The record itself is a level, and has four members and a few values.
    ['is nested deeper than 64 levels', nestedTo(63), nestedTo(64)],
    ['has more than 250000 values', many(249_990), many(250_000)],
    ['has more than 100000 members', manyMembers(99_996), manyMembers(99_997)],
    ['has more than 20000 numbers that a double cannot hold', manyLong(20_000), manyLong(20_001)],
  ])('one that %s is not read, and one at the bound is', async (why, most, tooMuch) => {
    expect((await readAs(GET_REPORT_DEAL_INSIGHTS, most)).status).toBe(200);
    const reply = await readAs(GET_REPORT_DEAL_INSIGHTS, tooMuch);
    const failure = await gateway.failureOf(reply);
    expect([reply.status, failure?.replace(/^the store's dealInsights \S+ /, '')]).toEqual([500, why]);
  });

  test('a member that is checked may hold 20,000 values, what is dropped or open any number', async () => {
    expect((await readWith({ categoryScores: values(4999), modelRun: values(5000) })).status).toBe(200);
    const reply = await readWith({ categoryScores: values(5000) });
    expect([reply.status, await gateway.failureOf(reply)]).toEqual([
      500,
      expect.stringMatching(/ is malformed at categoryScores$/),
    ]);
  });

  test('a byte order mark before the JSON is ignored', async () => {
    expect((await readAs(GET_CALL, (of) => `\ufeff${JSON.stringify(evaluationOf(of))}`)).status).toBe(200);
  });
});

describe('T1: halves of surrogate pairs become U+FFFD', () => {
  test('in a transcript and a title, escaped in any case; whole pairs stay', async () => {
    const body = String.raw`a\ud800b\uDFFFc\ud83d\ude00d\\ud800`;
    const transcript = await readAs(GET_CALL_TRANSCRIPT, (of) =>
      JSON.stringify(aTranscript({ ...partOf(of), format: null, body: '@' })).replace('@', body),
    );
    expect(transcript.text).toContain(String.raw`a�b�c😀d\\ud800`);
    const call = await readAs(GET_CALL, (of) => JSON.stringify({ ...evaluationOf(of), title: '@' }).replace('@', body));
    expect(call.json).toMatchObject({ call: { name: String.raw`a�b�c😀d\ud800` } });
  });

  test('in the names and values of an open object', async () => {
    const reply = await readAs(GET_REPORT_DEAL_INSIGHTS, (of) =>
      insightsText(of, String.raw`{"a\ud800":["\udfff",{"b":"\ud800"}]}`),
    );
    expect(reply.json).toMatchObject({ deal_insights: { 'a\ufffd': ['\ufffd', { b: '\ufffd' }] } });
  });
});

/** `~` becomes those bytes. */
function withBytes(text: string, bytes: readonly number[]): Buffer {
  const [head = '', tail = ''] = text.split('~');
  return Buffer.concat([Buffer.from(head), Buffer.from(bytes), Buffer.from(tail)]);
}
const titled = (of: Subject): string => JSON.stringify({ ...evaluationOf(of), title: 'a~b' });

describe('bytes that are not UTF-8', () => {
  test.each([
    ['Latin-1', [0xe9]],
    ['half of a surrogate pair', [0xed, 0xa0, 0x80]],
    ['an overlong form', [0xc0, 0xaf]],
    ['a sequence that is cut off', [0xf0, 0x9f]],
  ])('make a record one that cannot be read, which a line names: %s', async (_what, bytes) => {
    const reply = await readAs(GET_CALL, (of) => withBytes(titled(of), bytes));
    expect([reply.status, reply.headers['x-error-code']]).toEqual([500, 'record_malformed']);
    expect(await gateway.failureOf(reply)).toMatch(
      /^the store's evaluation ev_\S+ holds bytes that are not UTF-8 \(at byte \d+\)$/,
    );
  });

  test('leave the copy in place, with a line that names the record, and never become part of one', async () => {
    const of = putSubject(gateway.store, newSubject(subject.workspaceId));
    const first = await gateway.get(GET_CALL.path(of), { key });
    gateway.clock.advance(10 * 60_000);
    const end = gateway.store.override(/^/, (_request, response) => void response.end(withBytes(titled(of), [0xe9])));
    expect((await gateway.get(GET_CALL.path(of), { key })).text).toBe(first.text);
    const expected: unknown = expect.stringContaining(`the store's evaluation ${of.id} holds bytes that are not UTF-8`);
    await vi.waitFor(() => {
      const lines = linesOf(gateway).filter(({ msg }) => msg === 'a stored answer was not renewed');
      expect(lines.map(({ err }) => err?.message)).toEqual([expected]);
    });
    gateway.clock.advance(2 * 3_600_000);
    const kept = await gateway.get(GET_CALL.path(of), { key });
    end();
    expect([kept.status, kept.text]).toEqual([200, first.text]);
    expect(kept.headers['cache-status']).toMatch(/detail=stale-if-error$/);
  });

  test.each([
    [
      'JSON that is cut off within a character',
      (text: string) => withBytes(text.slice(0, text.indexOf('~') + 1), [0xc3]),
    ],
    ['a page', () => withBytes('<p>Caf~</p>', [0xe9])],
  ])('are the fault of the store in %s', async (_what, answer) => {
    const reply = await readAs(GET_CALL, (of) => answer(titled(of)));
    expect([reply.status, reply.headers['x-error-code']]).toEqual([500, 'store_unavailable']);
  });
});

/** Adds such members to all records of the subject. */
function sprinkleAll({ id, scorecardId }: Subject): void {
  const { evaluations, transcripts, scoredCards, dealInsights: insights, scorecards } = gateway.store;
  for (const table of [evaluations, transcripts, scoredCards, insights]) table.set(id, sprinkled(table.get(id)));
  scorecards.set(scorecardId, sprinkled(scorecards.get(scorecardId)));
}

describe('members that the interface does not list', () => {
  test.each(ENDPOINTS)('added anywhere, they change no byte of the answer: $name', async (endpoint) => {
    const clean = putSubject(gateway.store, newSubject(subject.workspaceId));
    const path = endpoint.resource === 'list' ? `${endpoint.path(clean)}?search=${clean.id}` : endpoint.path(clean);
    const texts: string[] = [];
    for (const sprinkle of [false, true]) {
      const fresh = await openUpstreamGateway({}, { store: gateway.store });
      if (sprinkle) sprinkleAll(clean);
      const own = await fresh.issueKey({ workspaceIds: [subject.workspaceId] });
      texts.push((await fresh.get(path, { key: own })).text);
      await fresh.close();
    }
    expect(texts[1]).toBe(texts[0]);
  });

  test('an open object is published as it is, without internal members at any depth', async () => {
    const open = fc.dictionary(
      fc.string({ unit: 'grapheme' }).filter((name) => !INTERNAL.includes(name)),
      fc.jsonValue({ maxDepth: 3 }),
    );
    await fc.assert(
      fc.asyncProperty(open, async (content) => {
        // As the wire has it: an own __proto__ stays a member, -0 becomes 0.
        const text = JSON.stringify(content);
        const reply = await readAs(GET_REPORT_DEAL_INSIGHTS, (of) =>
          insightsText(of, `{"modelRun":1,"keep":[{"costCents":2,"deep":${text}}]}`),
        );
        expect(reply.text).toContain(`"deal_insights":{"keep":[{"deep":${text}}]}`);
      }),
      { numRuns: 60 },
    );
    const rubric = await readAs(GET_RUBRIC, (of) =>
      JSON.stringify(
        aScorecard({ _id: of.scorecardId, workspaceId: of.workspaceId, rubric: { reviewerNotes: 1, modelrun: 2 } }),
      ),
    );
    expect(rubric.json).toMatchObject({ scorecard: { content: { modelrun: 2 } } });
    expect(rubric.text).not.toContain('reviewerNotes');
  });

  test('a member named __proto__ gives a record nothing and pollutes nothing', async () => {
    const reply = await readAs(GET_CALL, (of) => {
      const { title: _title, ...untitled } = anEvaluation({ _id: of.id, workspaceId: of.workspaceId });
      return JSON.stringify(untitled).replace('{', '{"__proto__":{"title":"inherited","polluted":true},');
    });
    expect(reply.status).toBe(500);
    expect(await gateway.failureOf(reply)).toMatch(/ is malformed at title$/);
    expect('polluted' in {}).toBe(false);
  });
});

describe('a list', () => {
  test('Q5: is newest first and then by id, descending by code unit, whatever order the store sends', async () => {
    const createdAtMs = 1_772_600_767_000;
    const items = [
      item('a', { createdAtMs }),
      item('old', { createdAtMs: createdAtMs - 1 }),
      item('B', { createdAtMs }),
      item('_', { createdAtMs }),
      item('new', { createdAtMs: createdAtMs + 1 }),
      item('9', { createdAtMs }),
    ];
    expect(idsOf(await listOf(items))).toEqual(['new', 'a', '_', 'B', '9', 'old']);
  });

  test('holds at most as many as were asked for, and each id once: the first that the store sent', async () => {
    const items = Array.from({ length: 60 }, (_, index) =>
      item(`ev_${index}`, { createdAtMs: 1_772_600_767_000 - index }),
    );
    const reply = await listOf([item('ev_0', { title: 'first', createdAtMs: 1_772_600_768_000 }), ...items]);
    expect(idsOf(reply)).toEqual(Array.from({ length: 49 }, (_, index) => `ev_${index}`));
    expect(reply.text).toContain('{"calls":[{"id":"ev_0","name":"first"');
  });

  test('C4: a workspace in capitals is the same workspace', async () => {
    const reply = await listOf([item('ev_1', { workspaceId: subject.workspaceId.toUpperCase() })]);
    expect(idsOf(reply)).toEqual(['ev_1']);
  });
});

test.each([201, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 405, 503])(
  'C7: status %i is a failure, whatever its body, and no redirect is followed',
  async (status) => {
    const end = gateway.store.override(/^/, (_request, response) =>
      response.writeHead(status, { location: '/internal/v1/evaluations' }).end('{"code":"NOT_FOUND"}'),
    );
    const before = gateway.store.calls();
    const reply = await gateway.read(newSubject().id);
    end();
    expect([reply.status, await gateway.failureOf(reply)]).toEqual([
      500,
      expect.stringContaining(`the store answered with ${status}`),
    ]);
    expect(gateway.store.calls() - before).toBe(1);
  },
);

test.each([
  ['a page', '<h1>NOT_FOUND</h1>'],
  ['a code of another case', '{"code":"not_found"}'],
  ['no code', '{"message":"x"}'],
  ['a code that is no string', '{"code":["NOT_FOUND"]}'],
  ['a code further down', '{"error":{"code":"NOT_FOUND"}}'],
  ['null', 'null'],
  ['a body too large to be an error', `{"code":"NOT_FOUND","message":"${'x'.repeat(10_000)}"}`],
])('Q9: 404 with %s is a failure', async (_what, body) => {
  const end = gateway.store.answer(/^/, body, 404);
  const reply = await gateway.read(newSubject().id);
  end();
  expect([reply.status, await gateway.failureOf(reply)]).toEqual([500, 'the store answered with 404 (evaluation)']);
});
