/** The data of the sample store: the same for the same seed, with everything that the interface allows or warns of. */
import { beforeAll, describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import {
  dealInsightsSchema,
  evaluationSchema,
  scorecardSchema,
  scoredCardSchema,
  type TranscriptRecord,
  transcriptSchema,
} from '../../../src/domain/records.ts';
import { createSampleData } from '../../../src/sample/data.ts';
import { openSample, type RunningSample, startSample } from '../../support/sample-store.ts';

const INTERNAL = ['modelRun', 'reviewerNotes', 'costCents', 'internalFlags'];
const pageSchema = z.object({ items: z.array(z.record(z.string(), z.unknown())), total: z.int() });

/** All evaluations as the store sends them, in its order. */
async function listAll({ read, data }: RunningSample, query = ''): Promise<readonly Record<string, unknown>[]> {
  const workspaces = data.workspaceIds.map((id) => `workspaceId=${id}`).join('&');
  const items: Record<string, unknown>[] = [];
  for (;;) {
    const response = await read(`/evaluations?${workspaces}${query}&limit=100&offset=${items.length}`);
    const page = pageSchema.parse(await response.json());
    items.push(...page.items);
    if (items.length >= page.total) return items;
  }
}

/** All that the store sends of some evaluations, as text. */
async function everything(sample: RunningSample): Promise<string> {
  const texts: string[] = [];
  for (const { _id } of sample.data.evaluations.filter((_, index) => index % 9 === 0)) {
    for (const part of ['', '/transcript', '/scorecard', '/deal-insights']) {
      texts.push(await (await sample.read(`/evaluations/${_id}${part}`)).text());
    }
  }
  return JSON.stringify([await listAll(sample), texts]);
}

const sample = await forFile(openSample({ data: createSampleData({ seed: 1, evaluations: 2000 }) }));
const items = await listAll(sample);

/** Null if the store has no such part. */
async function partOf<S extends z.ZodType>(path: string, schema: S): Promise<z.output<S> | null> {
  const response = await sample.read(path);
  return response.status === 200 ? schema.parse(await response.json()) : null;
}

const completed = () => sample.data.evaluations.filter(({ state }) => state === 'COMPLETED');

describe('the sample', () => {
  test('is the same for the same seed, to the last byte, and another for another seed', async () => {
    const [a, b, c] = await Promise.all(
      [5, 5, 6].map(async (seed) =>
        everything(await startSample({ data: createSampleData({ seed, evaluations: 150 }) })),
      ),
    );
    expect(a === b).toBe(true);
    expect(a === c).toBe(false);
  });

  test('works with a single evaluation', async () => {
    const one = await startSample({ data: createSampleData({ seed: 1, evaluations: 1 }) });
    const { callId, reportId } = one.data.demo;
    expect([callId, (await listAll(one)).map(({ _id }) => _id)]).toEqual([reportId, [reportId]]);
  });

  test('holds evaluations with ids of their own in four workspaces of different size, in every state', () => {
    expect(new Set(items.map(({ _id }) => _id)).size).toBe(2000);
    const sizes = sample.data.workspaceIds.map((id) => items.filter(({ workspaceId }) => workspaceId === id).length);
    expect(sizes).toHaveLength(4);
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
    expect(new Set(items.map(({ state }) => state)).size).toBe(5);
    expect(completed().length / 2000).toBeCloseTo(0.88, 1);
  });

  test('has evaluations of the same millisecond, ordered by descending id', () => {
    const { evaluations } = sample.data;
    const ties = evaluations.flatMap((record, index) => {
      const next = evaluations[index + 1];
      return next?.createdAtMs === record.createdAtMs ? [record._id > next._id] : [];
    });
    expect(ties.length).toBeGreaterThan(20);
    expect(ties.every(Boolean)).toBe(true);
  });

  test('its demo ids have something to show at every address', async () => {
    const { reportId, callId, scorecardId, workspaceId } = sample.data.demo;
    for (const id of [reportId, callId]) {
      for (const part of ['', '/transcript', '/scorecard', '/deal-insights']) {
        const response = await sample.read(`/evaluations/${id}${part}`);
        expect(await response.json()).toMatchObject({ workspaceId });
      }
    }
    expect((await sample.read(`/scorecards/${scorecardId}`)).status).toBe(200);
  });
});

describe('warnings of the interface', () => {
  test('six records are malformed, each in another way, in one workspace, on no first page', async () => {
    const faults = items.flatMap((item) => {
      const path = evaluationSchema.safeParse(item).error?.issues[0]?.path.join('.');
      return path === undefined ? [] : [{ id: item['_id'], path }];
    });
    expect(faults.map(({ path }) => path).toSorted()).toEqual([
      'createdAtMs',
      'crmLinks.0.objectType',
      'evaluatee.email',
      'overallScore',
      'people',
      'title',
    ]);
    const [, second] = sample.data.workspaceIds;
    const page = pageSchema.parse(
      await (await sample.read(`/evaluations?workspaceId=${second}&state=COMPLETED&limit=50`)).json(),
    );
    expect(page.items.every((item) => evaluationSchema.safeParse(item).success)).toBe(true);
    for (const { id } of faults) {
      expect(await (await sample.read(`/evaluations/${String(id)}`)).json()).toEqual(
        items.find(({ _id }) => _id === id),
      );
    }
  });

  test('internal members are at the top, in objects and in arrays, and the rest is what the sample says it holds', () => {
    const wire = JSON.stringify(items.slice(0, 300));
    for (const member of INTERNAL) expect(wire).toContain(`"${member}":`);
    const whole = items
      .filter((item) => evaluationSchema.safeParse(item).success)
      .map((item) => evaluationSchema.parse(item));
    expect(JSON.stringify(whole)).not.toContain('internal-only');
    expect(whole).toHaveLength(1994);
    expect(sample.data.evaluations).toEqual(expect.arrayContaining(whole.slice(0, 100)));
  });

  test('nulls and missing optionals of every kind are there', () => {
    const { evaluations } = sample.data;
    const some = (has: (record: (typeof evaluations)[number]) => boolean): boolean => evaluations.some(has);
    const found = {
      shareNull: some(({ shareLink }) => shareLink === null),
      shareAbsent: some((record) => !Object.hasOwn(record, 'shareLink')),
      shareActive: some(({ shareLink }) => shareLink?.deactivatedAtMs === null),
      shareDeactivated: some(({ shareLink }) => typeof shareLink?.deactivatedAtMs === 'number'),
      durationNull: some(({ durationSeconds }) => durationSeconds === null),
      sourceNull: some(({ source }) => source === null),
      scorecardIdNull: some(({ scorecardRef }) => scorecardRef.id === null),
      categoryNull: some(({ categoryScores }) => categoryScores.some(({ value }) => value === null)),
      unscored: some(({ overallScore, state }) => overallScore === 0 && state !== 'COMPLETED'),
      userIdAbsent: some(({ evaluatee }) => !Object.hasOwn(evaluatee, 'userId')),
      avatarNull: some(({ evaluatee }) => evaluatee.avatar === null),
      avatarAbsent: some(({ evaluatee }) => !Object.hasOwn(evaluatee, 'avatar')),
      nameNull: some(({ people }) => people.some(({ name, email }) => name === null && email !== null)),
      emailNull: some(({ people }) => people.some(({ name, email }) => name !== null && email === null)),
      bothNull: some(({ people }) => people.some(({ name, email }) => name === null && email === null)),
      absentInvitee: some(({ people }) => people.some(({ spoke, attended }) => !spoke && !attended)),
      noLinks: some(({ crmLinks }) => crmLinks.length === 0),
      hrefNull: some(({ crmLinks }) => crmLinks.some(({ href }) => href === null)),
    };
    expect(Object.entries(found).filter(([, isThere]) => !isThere)).toEqual([]);
    const types = new Set(evaluations.flatMap(({ crmLinks }) => crmLinks.map(({ objectType }) => objectType)));
    expect([...types].toSorted()).toEqual(['account', 'contact', 'deal', 'lead']);
  });

  test.each([
    ['QUEUED', [404, 404, 404]],
    ['TRANSCRIBING', [404, 404, 404]],
    ['SCORING', [200, 404, 404]],
    ['COMPLETED', [200, 200, 200]],
  ])('the parts of an evaluation that is %s', async (state, expected) => {
    const id = sample.data.evaluations.find((record) => record.state === state)?._id;
    const parts = ['transcript', 'scorecard', 'deal-insights'].map((part) => sample.read(`/evaluations/${id}/${part}`));
    const responses = await Promise.all(parts);
    expect(responses.map(({ status }) => status)).toEqual(expected);
    for (const response of responses.filter(({ status }) => status === 404)) {
      expect(await response.json()).toMatchObject({ code: 'NOT_READY' });
    }
  });

  test('some insights are not ready, and some rubrics are gone', async () => {
    const of = completed().slice(0, 150);
    const insights = await Promise.all(
      of.map(({ _id }) => partOf(`/evaluations/${_id}/deal-insights`, dealInsightsSchema)),
    );
    const rubrics = await Promise.all(
      of.map(({ scorecardRef: { id } }) => partOf(`/scorecards/${id}`, scorecardSchema)),
    );
    expect([insights.includes(null), rubrics.includes(null)]).toEqual([true, true]);
    const open = JSON.stringify([insights.map((part) => part?.insights), rubrics.map((part) => part?.rubric)]);
    expect(INTERNAL.filter((member) => open.includes(`"${member}":`))).toEqual([]);
  });
});

describe('scored cards', () => {
  test('fit the scores of their evaluation, with numbers and texts, and comments that are at times null', async () => {
    const kinds = new Set<string>();
    for (const { _id, categoryScores, overallScore } of completed().slice(0, 200)) {
      const part = await partOf(`/evaluations/${_id}/scorecard`, scoredCardSchema);
      expect(part?.scorecard.sections.map(({ name }) => name)).toEqual(categoryScores.map(({ label }) => label));
      expect(part?.coachingPlan.focusArea.questionSuggestions.length).toBeGreaterThan(0);
      const known = categoryScores.flatMap(({ value }) => value ?? []);
      expect(overallScore).toBeCloseTo(known.reduce((a, b) => a + b, 0) / Math.max(1, known.length), 0);
      for (const { score, comment } of part?.scorecard.sections.flatMap(({ criteria }) => criteria) ?? []) {
        kinds.add(typeof score).add(comment === null ? 'no comment' : 'comment');
      }
      expect(JSON.stringify(part)).not.toMatch(/undefined|NaN|\{\w+\}/);
    }
    expect([...kinds].toSorted()).toEqual(['comment', 'no comment', 'number', 'string']);
  });
});

/** A crude look at what a body is, independent of how it was written. */
function kindOf({ body }: TranscriptRecord): string {
  if (body === '') return 'empty';
  if (body.startsWith('WEBVTT')) return 'webvtt';
  if (body.startsWith('[{') || body.startsWith('[\n')) return 'utterances_json';
  if (/^1\r?\n\d\d:\d\d:\d\d,\d{3} --> /.test(body)) return 'srt';
  return /^(?:\[\d\d:\d\d:\d\d\] )?\p{L}[^:\n]{1,40}: /u.test(body) ? 'speaker_text' : 'prose';
}

describe('transcripts', () => {
  let transcripts: readonly TranscriptRecord[];
  beforeAll(async () => {
    const { hugeTranscriptId } = sample.data;
    const ids = completed()
      .flatMap(({ _id }) => (_id === hugeTranscriptId ? [] : _id))
      .slice(0, 700);
    const parts: (TranscriptRecord | null)[] = [];
    for (const id of ids) parts.push(await partOf(`/evaluations/${id}/transcript`, transcriptSchema));
    transcripts = parts.filter((part) => part !== null);
  });

  test('are of all four formats with and without saying so, of no format, and empty', () => {
    const kinds = new Set(transcripts.map((record) => `${kindOf(record)} sent as ${record.format}`));
    for (const kind of ['speaker_text', 'webvtt', 'srt', 'utterances_json']) {
      expect(kinds).toContain(`${kind} sent as ${kind}`);
      expect(kinds).toContain(`${kind} sent as null`);
    }
    expect([...kinds].filter((kind) => /^(?:empty|prose)/.test(kind)).length).toBeGreaterThan(1);
  });

  test('hold emoji, right-to-left text, combining marks, control characters, half an emoji, and CR LF', () => {
    const all = transcripts.map(({ body }) => body).join('\n');
    for (const pattern of [/👨‍👩‍👧‍👦/u, /\p{Script=Hebrew}/u, /\p{Script=Arabic}/u, /e\u0301/, /\r\n/])
      expect(all).toMatch(pattern);
    expect([all.isWellFormed(), all.includes('\0'), all.includes('\u0007')]).toEqual([false, false, true]);
    const withCr = transcripts.filter(({ body }) => body.includes('\r'));
    for (const { body } of withCr) expect(body.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
  });

  test('read like a call, from greeting to goodbye', async () => {
    const part = await partOf(`/evaluations/${sample.data.demo.reportId}/transcript`, transcriptSchema);
    const lines = part?.body.trimEnd().split('\n') ?? [];
    expect(lines.length).toBeGreaterThan(50);
    expect(lines[0]).toMatch(/: Hi /);
    expect(lines.at(-1)).toMatch(/: Bye\.$/);
    expect(part?.body).not.toMatch(/[{}|]|undefined|NaN/);
  });

  test('of one known evaluation: just under 2 MB, and whole to the last line', async () => {
    const part = await partOf(`/evaluations/${sample.data.hugeTranscriptId}/transcript`, transcriptSchema);
    const { body = '', format } = part ?? {};
    expect(format).toBe('speaker_text');
    expect(Buffer.byteLength(body)).toBeGreaterThan(1_990_000);
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(2_000_000);
    expect([body.isWellFormed(), body.endsWith('\n')]).toEqual([true, true]);
  });
});
