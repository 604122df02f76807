import { beforeEach, describe, expect, test } from 'vitest';
import { metricOf } from '../../support/admin.ts';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { anEvaluation, aTranscript } from '../../support/records.ts';
import { errorText, GET_CALL, GET_CALL_TRANSCRIPT, GET_REPORT, LIST_CALLS, LIST_REPORTS, TEXTS } from './endpoints.ts';
import { keyFor, newId, newSubject, putSubject, type Subject } from './subject.ts';

let subject: Subject;

const gateway = await forFile(startTestGateway());
/** A workspace with one whole record in it; and a new hour, in which records without an id have a line again. */
beforeEach(() => {
  gateway.clock.advance(3_600_000);
  subject = putSubject(gateway.store);
});

const leftOutSchema = z.object({
  level: z.literal('warn'),
  msg: z.literal('record left out of a list: it is incomplete or malformed'),
  resource: z.literal('list'),
  id: z.string().nullable(),
  path: z.string(),
  surface: z.literal('v1').optional(),
  requestId: z.string(),
});

/** The lines about records left out for that request. */
function leftOutFor(reply: Reply): readonly (readonly [id: string | null, path: string])[] {
  return gateway.logLines
    .map((line) => leftOutSchema.safeParse(JSON.parse(line)))
    .flatMap(({ data }) => (data === undefined || data.requestId !== reply.headers['x-request-id'] ? [] : [data]))
    .map(({ id, path }) => [id, path] as const);
}

const countOf = (name: 'listed' | 'left_out'): Promise<number> =>
  metricOf(gateway, `evalgate_store_records_${name}_total{resource="list"}`);

const leftOutCount = (): Promise<number> => countOf('left_out');

type Broken = Readonly<Record<string, unknown>>;

const MALFORMED: readonly (readonly [what: string, difference: Broken, path: string])[] = [
  ['no workspace', { workspaceId: undefined }, 'workspaceId'],
  ['no title', { title: undefined }, 'title'],
  ['a title that is null', { title: null }, 'title'],
  ['an owner that is a number', { ownerUserId: 7 }, 'ownerUserId'],
  ['a score that is a text', { overallScore: '72' }, 'overallScore'],
  ['no score', { overallScore: null }, 'overallScore'],
  ['category scores that are an object', { categoryScores: {} }, 'categoryScores'],
  ['a category without a key', { categoryScores: [{ label: 'x', value: 1 }] }, 'categoryScores.0.key'],
  [
    'a category value that is a text',
    { categoryScores: [{ key: 'k', label: 'x', value: '1' }] },
    'categoryScores.0.value',
  ],
  ['no scorecard', { scorecardRef: null }, 'scorecardRef'],
  ['a scorecard without a name', { scorecardRef: { id: null } }, 'scorecardRef.name'],
  ['a time that is a text', { createdAtMs: '2026-01-01' }, 'createdAtMs'],
  ['a time with a fraction', { createdAtMs: 1.5 }, 'createdAtMs'],
  ['a time beyond the year 9999', { createdAtMs: 253_402_300_800_000 }, 'createdAtMs'],
  ['a duration left out', { durationSeconds: undefined }, 'durationSeconds'],
  ['a source left out', { source: undefined }, 'source'],
  ['no evaluatee', { evaluatee: undefined }, 'evaluatee'],
  ['an evaluatee without an e-mail', { evaluatee: { displayName: 'a', givenName: 'b' } }, 'evaluatee.email'],
  ['an e-mail that is null', { evaluatee: { displayName: 'a', givenName: 'b', email: null } }, 'evaluatee.email'],
  ['a share without an id', { shareLink: { deactivatedAtMs: null } }, 'shareLink.id'],
  ['people left out', { people: undefined }, 'people'],
  [
    'someone of whom it is not known who spoke',
    { people: [{ name: 'a', email: null, attended: true }] },
    'people.0.spoke',
  ],
  [
    'a CRM link of an unknown type',
    { crmLinks: [{ objectType: 'case', externalId: 'a', label: 'b', href: null }] },
    'crmLinks.0.objectType',
  ],
];

describe('in a list', () => {
  test.each(MALFORMED.filter(([what]) => what !== 'no workspace'))(
    'a record with %s is left out, logged with its id and the path, and counted; the rest is served',
    async (_what, difference, path) => {
      const id = newId('bad');
      gateway.store.evaluations.set(id, {
        ...anEvaluation({ _id: id, workspaceId: subject.workspaceId }),
        ...difference,
      });
      const before = await leftOutCount();
      const reply = await gateway.get(LIST_REPORTS.path(subject), { key: await keyFor(gateway, subject) });
      expect(reply.status).toBe(200);
      expect(reply.text).toContain(`{"reports":[{"id":"${subject.id}"`);
      expect(reply.text).not.toContain(id);
      expect(reply.json).toMatchObject({ reports: [{ id: subject.id }], total_count: 2 });
      expect(leftOutFor(reply)).toEqual([[id, path]]);
      expect((await leftOutCount()) - before).toBe(1);
      const calls = await gateway.get(LIST_CALLS.path(subject), { key: await keyFor(gateway, subject) });
      expect(calls.json).toMatchObject({ calls: [{ id: subject.id }], pagination: { total_count: 2 } });
      // It was the same answer of the store, which had been looked at already.
      expect((await leftOutCount()) - before).toBe(1);
    },
  );

  test.each([
    ['one without an id', { _id: undefined }, null, '_id'],
    ['one whose id is a number', { _id: 7 }, null, '_id'],
    ['one whose id is no id', { _id: '../../etc/passwd' }, null, '_id'],
    ['one whose id is empty', { _id: '' }, null, '_id'],
  ])('%s is left out and logged without an id', async (_what, difference, id, path) => {
    gateway.store.evaluations.set(newId('bad'), {
      ...anEvaluation({ workspaceId: subject.workspaceId }),
      ...difference,
    });
    const reply = await gateway.get(LIST_REPORTS.path(subject), { key: await keyFor(gateway, subject) });
    expect(reply.json).toMatchObject({ reports: [{ id: subject.id }], total_count: 2 });
    expect(leftOutFor(reply)).toEqual([[id, path]]);
  });

  test('things that are no records at all are left out', async () => {
    const whole = gateway.store.evaluations.get(subject.id);
    const items = [null, 7, 'text', [], {}, [whole], whole];
    const end = gateway.store.answer('/internal/v1/evaluations', { items, total: 7 });
    const reply = await gateway.get(LIST_REPORTS.path(subject), { key: await keyFor(gateway, subject) });
    end();
    expect(reply.json).toMatchObject({ reports: [{ id: subject.id }], total_count: 7 });
    expect(reply.headers['x-records-omitted']).toBe('6');
    // One line per record and fault in an hour; without ids they are one.
    expect(leftOutFor(reply).length).toBeLessThanOrEqual(2);
  });

  test('S4: X-Records-Omitted says how many a page lacks, on both surfaces, of copies, 304 and HEAD too', async () => {
    const key = await keyFor(gateway, subject);
    const put = (difference: Broken): void => {
      const _id = newId('bad');
      gateway.store.evaluations.set(_id, { ...anEvaluation({ _id, workspaceId: subject.workspaceId }), ...difference });
    };
    put({ title: 7 });
    put({ overallScore: null });
    // v1 promises the form of an e-mail address, v2 does not.
    put({ evaluatee: { displayName: 'a', givenName: 'b', email: 'none' } });
    for (const [endpoint, omitted] of [
      [LIST_REPORTS, '3'],
      [LIST_CALLS, '2'],
    ] as const) {
      const path = endpoint.path(subject);
      const first = await gateway.get(path, { key });
      expect([first.status, first.headers['x-records-omitted']]).toEqual([200, omitted]);
      const etag = String(first.headers.etag);
      const copies = [
        await gateway.get(path, { key }),
        await gateway.get(path, { key, headers: { 'If-None-Match': etag } }),
        await gateway.get(path, { key, method: 'HEAD' }),
      ];
      expect(copies.map(({ status }) => status)).toEqual([200, 304, 200]);
      for (const { headers } of copies) expect(headers['x-records-omitted']).toBe(omitted);
    }
  });

  test('S4: a whole page has no X-Records-Omitted, nor has a single read', async () => {
    const key = await keyFor(gateway, subject);
    for (const endpoint of [LIST_REPORTS, LIST_CALLS, GET_CALL]) {
      const { status, headers } = await gateway.get(endpoint.path(subject), { key });
      expect([status, headers['x-records-omitted']]).toEqual([200, undefined]);
    }
  });

  test('a record has one line of the log an hour; operators see how often it was left out, of how many', async () => {
    const id = newId('bad');
    gateway.store.evaluations.set(id, { ...anEvaluation({ _id: id, workspaceId: subject.workspaceId }), title: 7 });
    const key = await keyFor(gateway, subject);
    const before = { listed: await countOf('listed'), leftOut: await leftOutCount() };
    const readAgain = async () => {
      await gateway.admin('POST', '/api/cache/purge', { tags: ['class:list'] });
      return leftOutFor(await gateway.get(LIST_CALLS.path(subject), { key }));
    };
    expect(await readAgain()).toEqual([[id, 'title']]);
    expect(await readAgain()).toEqual([]);
    gateway.clock.advance(3_600_000);
    expect(await readAgain()).toEqual([[id, 'title']]);
    expect((await countOf('listed')) - before.listed).toBe(6);
    expect((await leftOutCount()) - before.leftOut).toBe(3);
    const { json } = await gateway.admin('GET', '/api/cache/history');
    expect(json).toMatchObject({
      points: [{ records: { listed: 2, leftOut: 1 } }],
      leftOut: [{ id, path: 'title', times: 1 }],
    });
  });

  test('a list of nothing but malformed records is empty, with the total of the store', async () => {
    gateway.store.evaluations.set(subject.id, {
      ...anEvaluation({ _id: subject.id, workspaceId: subject.workspaceId }),
      title: 7,
    });
    const reply = await gateway.get(LIST_REPORTS.path(subject), { key: await keyFor(gateway, subject) });
    expect(reply.text).toBe('{"reports":[],"page":1,"total_count":1}');
  });

  test('a record that is not completed, which the store sends all the same, is left out and logged', async () => {
    const open = putSubject(gateway.store, newSubject(subject.workspaceId), { state: 'SCORING' });
    const items = [open.id, subject.id].map((id) => gateway.store.evaluations.get(id));
    const end = gateway.store.answer('/internal/v1/evaluations', { items, total: 2 });
    const reply = await gateway.get(LIST_CALLS.path(subject), { key: await keyFor(gateway, subject) });
    end();
    expect(reply.json).toMatchObject({ calls: [{ id: subject.id }] });
    expect(leftOutFor(reply)).toEqual([[open.id, 'state']]);
  });

  test.each([
    ['a whole record', {}],
    ['a malformed one', { title: 7 }],
  ])('C4: a list with %s of another workspace is a 500, logged with its id', async (_what, difference) => {
    const foreign = newSubject();
    const { id, workspaceId } = foreign;
    const items = [
      gateway.store.evaluations.get(subject.id),
      { ...anEvaluation({ _id: id, workspaceId }), ...difference },
    ];
    const end = gateway.store.answer('/internal/v1/evaluations', { items, total: 2 });
    const reply = await gateway.get(LIST_CALLS.path(subject), { key: await keyFor(gateway, subject) });
    end();
    expect([reply.status, reply.text.includes(subject.id), reply.text.includes(id)]).toEqual([500, false, false]);
    expect(leftOutFor(reply)).toEqual([]);
    await gateway.admin('GET', '/livez');
    expect(gateway.logLines.find((line) => line.includes(String(reply.headers['x-request-id'])))).toContain(
      `the store ignored the workspaces asked for: its list holds ${id} of another workspace`,
    );
  });
});

test('C4: while lists hold records of another workspace, a copy that is usable on error is served', async () => {
  const key = await keyFor(gateway, subject);
  const first = await gateway.get(LIST_REPORTS.path(subject), { key });
  gateway.clock.advance(30 * 60_000);
  const foreign = putSubject(gateway.store);
  const end = gateway.store.answer('/internal/v1/evaluations', {
    items: [gateway.store.evaluations.get(foreign.id)],
    total: 99,
  });
  const reply = await gateway.get(LIST_REPORTS.path(subject), { key });
  const other = await gateway.get(`${LIST_REPORTS.path(subject)}?page=2`, { key });
  end();
  expect([reply.status, reply.text]).toEqual([200, first.text]);
  expect(reply.headers['cache-status']).toMatch(/detail=stale-if-error$/);
  expect([other.status, other.json]).toMatchObject([500, { reports: [] }]);
});

describe('in a single read', () => {
  test.each(MALFORMED)(
    'S2: a record with %s is a 500, logged with its id and the path',
    async (_what, difference, path) => {
      const { id, workspaceId } = newSubject(subject.workspaceId);
      gateway.store.evaluations.set(id, { ...anEvaluation({ _id: id, workspaceId }), ...difference });
      const key = await keyFor(gateway, subject);
      const reply = await gateway.get(GET_CALL.path({ ...subject, id }), { key });
      expect(reply.status).toBe(500);
      expect(reply.text).toBe(errorText(GET_CALL, 500, TEXTS.malformed));
      expect(reply.headers['retry-after']).toBeUndefined();
      const start = `"requestId":"${String(reply.headers['x-request-id'])}","keyId"`;
      const line = gateway.logLines.find((text) => text.includes(start));
      expect(JSON.parse(line ?? '{}')).toMatchObject({
        level: 'error',
        status: 500,
        err: { type: 'StoreError', message: `the store's evaluation ${id} is malformed at ${path}` },
      });
    },
  );

  test.each([true, false])(
    'K7a: a part of another workspace is none; only its own reader has a line: %j',
    async (isOwn) => {
      const foreign = newSubject();
      const { id } = isOwn ? subject : putSubject(gateway.store, foreign);
      gateway.store.transcripts.set(id, aTranscript({ evaluationId: id, workspaceId: foreign.workspaceId }));
      const key = await keyFor(gateway, subject);
      await gateway.get(GET_CALL.path({ ...subject, id }), { key });
      const reply = await gateway.get(GET_CALL_TRANSCRIPT.path({ ...subject, id }), { key });
      expect([reply.status, reply.text]).toEqual([404, GET_CALL_TRANSCRIPT.notFound]);
      const lines = gateway.logLines.filter((text) => text.includes('a part was answered as none'));
      const ofReply = lines.filter((text) => text.includes(String(reply.headers['x-request-id'])));
      expect(ofReply.map((line): unknown => JSON.parse(line))).toMatchObject(
        isOwn
          ? [
              {
                err: { message: "the store's transcript is of another workspace than its evaluation (at workspaceId)" },
              },
            ]
          : [],
      );
    },
  );

  test('a record left out of a list is not taken from it: the store is called, and the answer is a 500', async () => {
    const { id, workspaceId } = newSubject(subject.workspaceId);
    gateway.store.evaluations.set(id, { ...anEvaluation({ _id: id, workspaceId }), people: null });
    const key = await keyFor(gateway, subject);
    expect((await gateway.get(LIST_CALLS.path(subject), { key })).status).toBe(200);
    expect((await gateway.get(GET_CALL.path({ ...subject, id }), { key })).status).toBe(500);
  });
});

describe.each([
  ['of an internationalised domain', 'rep@m\u00fcller.example'],
  ['with a local part beyond ASCII', 'j\u00f6rg@example.com'],
  ['with a quoted local part', '"john doe"@example.com'],
  ['with a trailing space', 'rep@example.com '],
  ['longer than an address may be', `${'a'.repeat(320)}@example.com`],
  ['that is a name', 'rep'],
  ['that is empty', ''],
])('an e-mail address %s', (_what, email) => {
  let path: (endpoint: typeof GET_CALL) => string;
  beforeEach(() => {
    const { id, workspaceId } = newSubject(subject.workspaceId);
    path = (endpoint) => endpoint.path({ ...subject, id });
    const evaluatee = { userId: null, displayName: 'a', givenName: 'b', email };
    gateway.store.evaluations.set(id, { ...anEvaluation({ _id: id, workspaceId }), evaluatee });
  });

  test('is published by v2, which promises no form, as it is', async () => {
    const key = await keyFor(gateway, subject);
    const fields = { evaluatee_user_id: null, evaluatee_email: email };
    expect((await gateway.get(path(GET_CALL), { key })).json).toMatchObject({ call: fields });
    const { text } = await gateway.get(path(LIST_CALLS), { key });
    expect(text).toContain(`"evaluatee_email":${JSON.stringify(email)}`);
  });

  test('breaks the promise of v1: left out of its list, logged and counted; 500 by itself', async () => {
    const key = await keyFor(gateway, subject);
    const before = await leftOutCount();
    const list = await gateway.get(path(LIST_REPORTS), { key });
    expect(list.json).toMatchObject({ reports: [{ id: subject.id }], total_count: 2 });
    expect(leftOutFor(list)).toEqual([[expect.any(String), 'evaluatee.email']]);
    expect((await leftOutCount()) - before).toBe(1);
    const { status, headers, text } = await gateway.get(path(GET_REPORT), { key });
    expect([status, headers['x-error-code'], headers['retry-after']]).toEqual([500, 'record_malformed', undefined]);
    expect(text).toBe(errorText(GET_REPORT, 500, TEXTS.malformed));
  });
});

test('allowed nulls, and unknown members anywhere, make no record malformed', async () => {
  const { id, workspaceId } = newSubject(subject.workspaceId);
  gateway.store.evaluations.set(id, {
    ...anEvaluation({ _id: id, workspaceId, durationSeconds: null, source: null, shareLink: null }),
    __proto__: { polluted: true },
    modelRun: { deep: [1] },
    evaluatee: { displayName: 'a', givenName: '', email: 'a@b.example', avatar: null, extra: [] },
    people: [{ name: null, email: null, spoke: true, attended: true, extra: 1 }],
  });
  const reply = await gateway.get(GET_CALL.path({ ...subject, id }), { key: await keyFor(gateway, subject) });
  expect(reply.status).toBe(200);
  expect(reply.text).not.toMatch(/extra|modelRun|polluted/);
});
