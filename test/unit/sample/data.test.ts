import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import {
  apiKeySchema,
  dealInsightsSchema,
  evaluationSchema,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
} from '../../../src/domain/records.ts';
import type { ApiKeyRecord } from '../../../src/domain/records.ts';
import { createSampleData, INTERNAL_MARKER, INTERNAL_MEMBERS } from '../../../src/sample/index.ts';
import type { SampleData } from '../../../src/sample/index.ts';

const data = createSampleData({ seed: 1, evaluations: 5000 });
const ids = data.evaluations.map(({ _id }) => _id);
const completed = data.evaluations.filter(({ state }) => state === 'COMPLETED');

/** Everything that the store would send of some evaluations, as text. */
function everything(sample: SampleData): string {
  const some = sample.evaluations.filter((_, index) => index % 29 === 0).map(({ _id }) => _id);
  return JSON.stringify([
    sample.workspaceIds,
    some.map((id) => [sample.evaluation(id), sample.transcript(id), sample.scorecard(id), sample.dealInsights(id)]),
    sample.evaluations.slice(0, 50).map(({ scorecardRef }) => sample.rubric(scorecardRef.id ?? '')),
  ]);
}

describe('the sample', () => {
  test('is the same for the same seed, to the last byte', () => {
    const small = { seed: 5, evaluations: 300 };
    expect(everything(createSampleData(small))).toBe(everything(createSampleData(small)));
  });

  test('is another for another seed', () => {
    const other = createSampleData({ seed: 2, evaluations: 300 });
    expect(other.workspaceIds).not.toEqual(data.workspaceIds);
    expect(other.evaluations.filter(({ _id }) => ids.includes(_id))).toEqual([]);
  });

  test('keeps its workspaces and its newest evaluations when there are fewer of them', () => {
    const fewer = createSampleData({ seed: 1, evaluations: 1000 });
    expect(fewer.workspaceIds).toEqual(data.workspaceIds);
    const firstOfBoth = fewer.evaluations.slice(0, 900);
    expect(firstOfBoth).toEqual(data.evaluations.slice(0, 900));
  });

  test('moves in time with the instant that it is given, and in nothing else', () => {
    const [early, late] = [1_700_000_000_000, 1_700_000_060_000].map(
      (nowMs) => createSampleData({ seed: 1, evaluations: 50, nowMs }).evaluations,
    );
    const shifted = early?.map((record) => {
      const later = { ...record, createdAtMs: record.createdAtMs + 60_000 };
      const endedAtMs = record.shareLink?.deactivatedAtMs ?? null;
      if (record.shareLink === null || record.shareLink === undefined || endedAtMs === null) return later;
      return { ...later, shareLink: { ...record.shareLink, deactivatedAtMs: endedAtMs + 60_000 } };
    });
    expect(late).toEqual(shifted);
    expect(early?.[0]?.createdAtMs).toBeLessThan(1_700_000_000_000);
  });

  test.each([0, -1, 1.5, 1_000_001, Number.NaN])('refuses to hold %s evaluations', (evaluations) => {
    expect(() => createSampleData({ seed: 1, evaluations })).toThrow(RangeError);
  });

  test('holds 5,000 evaluations with ids of their own in four workspaces of different size', () => {
    expect(new Set(ids).size).toBe(5000);
    const sizes = data.workspaceIds.map(
      (id) => data.evaluations.filter(({ workspaceId }) => workspaceId === id).length / 5000,
    );
    expect(sizes).toHaveLength(4);
    [0.4, 0.3, 0.2, 0.1].forEach((share, index) => {
      expect(Math.abs((sizes[index] ?? 0) - share)).toBeLessThan(0.03);
    });
  });

  test('is in every state; about one evaluation in eight is not completed', () => {
    expect(new Set(data.evaluations.map(({ state }) => state)).size).toBe(5);
    const share = 1 - completed.length / 5000;
    expect(share).toBeGreaterThan(0.1);
    expect(share).toBeLessThan(0.14);
  });

  test('has evaluations of the same millisecond, ordered by descending id', () => {
    const ties = data.evaluations.filter(
      ({ createdAtMs }, index) => data.evaluations[index + 1]?.createdAtMs === createdAtMs,
    );
    expect(ties.length).toBeGreaterThan(50);
    for (const { _id } of ties) expect(_id > (ids[ids.indexOf(_id) + 1] ?? '')).toBe(true);
  });

  test('gives evaluations that are not scored a score of 0 and no categories', () => {
    const unscored = data.evaluations.filter(({ state }) => state !== 'COMPLETED');
    expect(
      unscored.filter(({ overallScore, categoryScores }) => overallScore !== 0 || categoryScores.length > 0),
    ).toEqual([]);
    expect(completed.filter(({ categoryScores }) => categoryScores.length === 0)).toEqual([]);
  });
});

describe('what the interface warns of', () => {
  test('is there in exactly the six records that are known to be malformed', () => {
    const faults = ids.flatMap((id) => {
      const path = faultOf(evaluationSchema, data.evaluation(id));
      return path === null ? [] : [{ id, path }];
    });
    expect(faults).toEqual(data.malformed);
    expect(faults.map(({ path }) => path).toSorted()).toEqual([
      'createdAtMs',
      'crmLinks.0.objectType',
      'evaluatee.email',
      'overallScore',
      'people',
      'title',
    ]);
  });

  test('is only in completed records of one workspace, and on no first page', () => {
    const records = data.malformed.map(({ id }) => data.evaluations.find(({ _id }) => _id === id));
    expect(new Set(records.map((record) => record?.workspaceId))).toEqual(new Set([data.workspaceIds[1]]));
    expect(new Set(records.map((record) => record?.state))).toEqual(new Set(['COMPLETED']));
    const ofWorkspace = completed.filter(({ workspaceId }) => workspaceId === data.workspaceIds[1]);
    const firstPage = ofWorkspace.slice(0, 100).map(({ _id }) => _id);
    expect(data.malformed.filter(({ id }) => firstPage.includes(id))).toEqual([]);
  });

  test('lists and single reads send the same record, malformed ones too', () => {
    const query = { workspaceIds: data.workspaceIds, state: null, q: '', scorecardId: null, offset: 0, limit: 5000 };
    const { items, total } = data.list(query);
    expect(total).toBe(5000);
    expect(items).toEqual(ids.map((id) => data.evaluation(id)));
  });

  test('is never in a part: every transcript, scored card, insight and rubric is whole', () => {
    const faults = completed.flatMap(({ _id }) => {
      const insights = data.dealInsights(_id);
      return [
        faultOf(transcriptSchema, data.transcript(_id)),
        faultOf(scoredCardSchema, data.scorecard(_id)),
        insights === 'NOT_READY' ? null : faultOf(dealInsightsSchema, insights),
      ];
    });
    expect(new Set(faults)).toEqual(new Set([null]));
    const cards = new Set(data.evaluations.map(({ scorecardRef }) => scorecardRef.id ?? ''));
    const rubrics = [...cards].map((id) => data.rubric(id)).filter((rubric) => rubric !== 'NOT_FOUND');
    expect(rubrics).toHaveLength(20);
    for (const rubric of rubrics) expect(faultOf(scorecardSchema, rubric)).toBeNull();
  });

  test('internal members are on many records, at the top, in objects and in arrays; the schemas drop them all', () => {
    const records = ids
      .slice(0, 300)
      .map((id) => data.evaluation(id))
      .filter(isObject);
    const wire = JSON.stringify(records);
    for (const member of INTERNAL_MEMBERS) expect(wire).toContain(`"${member}":`);
    const withTop = records.filter((record) => INTERNAL_MEMBERS.some((member) => Object.hasOwn(record, member)));
    expect(withTop.length).toBeGreaterThan(50);
    const parsed = records.map((record) => evaluationSchema.parse(record));
    expect(parsed.some(({ people }, index) => !sameText(people, records[index]?.['people']))).toBe(true);
    expect(parsed.some(({ evaluatee }, index) => !sameText(evaluatee, records[index]?.['evaluatee']))).toBe(true);
    expect(JSON.stringify(parsed)).not.toContain(INTERNAL_MARKER);
    expect(parsed).toEqual(data.evaluations.slice(0, 300));
  });

  test('internal members are never inside insights and rubrics, which are published as they are', () => {
    const parts = [
      ...completed.slice(0, 200).map(({ _id }) => data.dealInsights(_id)),
      ...completed.slice(0, 200).map(({ scorecardRef }) => data.rubric(scorecardRef.id ?? '')),
    ].filter(isObject);
    const inside = JSON.stringify(parts.map(({ insights, rubric }) => insights ?? rubric));
    expect(JSON.stringify(parts)).toContain(INTERNAL_MARKER);
    expect(inside.length).toBeGreaterThan(100_000);
    for (const member of INTERNAL_MEMBERS) expect(inside).not.toContain(`"${member}":`);
  });

  test('nulls and missing optionals of every kind are there', () => {
    const some = (has: (record: (typeof data.evaluations)[number]) => boolean): boolean => data.evaluations.some(has);
    expect({
      shareNull: some(({ shareLink }) => shareLink === null),
      shareAbsent: some((record) => !Object.hasOwn(record, 'shareLink')),
      shareActive: some(({ shareLink }) => shareLink?.deactivatedAtMs === null),
      shareDeactivated: some(({ shareLink }) => typeof shareLink?.deactivatedAtMs === 'number'),
      sourceNull: some(({ source }) => source === null),
      durationNull: some(({ durationSeconds }) => durationSeconds === null),
      durationFraction: some(({ durationSeconds }) => !Number.isInteger(durationSeconds ?? 0)),
      scorecardIdNull: some(({ scorecardRef }) => scorecardRef.id === null),
      categoryNull: some(({ categoryScores }) => categoryScores.some(({ value }) => value === null)),
      userIdAbsent: some(({ evaluatee }) => !Object.hasOwn(evaluatee, 'userId')),
      avatarNull: some(({ evaluatee }) => evaluatee.avatar === null),
      avatarAbsent: some(({ evaluatee }) => !Object.hasOwn(evaluatee, 'avatar')),
      nameNull: some(({ people }) => people.some(({ name, email }) => name === null && email !== null)),
      emailNull: some(({ people }) => people.some(({ name, email }) => name !== null && email === null)),
      bothNull: some(({ people }) => people.some(({ name, email }) => name === null && email === null)),
      absentInvitee: some(({ people }) => people.some(({ spoke, attended }) => !spoke && !attended)),
      noLinks: some(({ crmLinks }) => crmLinks.length === 0),
      hrefNull: some(({ crmLinks }) => crmLinks.some(({ href }) => href === null)),
      insightsNotReady: completed.some(({ _id }) => data.dealInsights(_id) === 'NOT_READY'),
      rubricGone: some(({ scorecardRef: { id } }) => id !== null && data.rubric(id) === 'NOT_FOUND'),
    }).toSatisfy((found: Record<string, boolean>) => Object.values(found).every(Boolean));
    const types = new Set(data.evaluations.flatMap(({ crmLinks }) => crmLinks.map(({ objectType }) => objectType)));
    expect([...types].toSorted()).toEqual(['account', 'contact', 'deal', 'lead']);
  });

  test('parts of unfinished evaluations are not ready, of unknown ones not found', () => {
    const parts = (id: string) => [data.transcript(id), data.scorecard(id), data.dealInsights(id)];
    const idOf = (state: string): string => data.evaluations.find((record) => record.state === state)?._id ?? '';
    expect(parts(idOf('QUEUED'))).toEqual(['NOT_READY', 'NOT_READY', 'NOT_READY']);
    expect(parts(idOf('TRANSCRIBING'))).toEqual(['NOT_READY', 'NOT_READY', 'NOT_READY']);
    expect(parts(idOf('SCORING'))).toEqual([expect.any(Object), 'NOT_READY', 'NOT_READY']);
    expect(parts('nobody')).toEqual(['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND']);
    const failed = data.evaluations.filter(({ state }) => state === 'FAILED').map(({ _id }) => data.transcript(_id));
    expect(new Set(failed.map((part) => part === 'NOT_READY'))).toEqual(new Set([true, false]));
  });

  test('API keys are there when they were added, and not before', () => {
    const sample = createSampleData({ seed: 1, evaluations: 1 });
    const record: ApiKeyRecord = {
      keyId: 'key_1',
      name: 'Dashboard',
      status: 'ACTIVE',
      workspaceIds: [...sample.workspaceIds],
      scopes: ['calls.read'],
      expiresAtMs: null,
      limits: { perMinute: 5, perHour: 50 },
    };
    const hash = 'c0'.repeat(32);
    expect(sample.apiKey(hash)).toBe('NOT_FOUND');
    sample.addApiKey(hash, record);
    expect(apiKeySchema.parse(sample.apiKey(hash))).toEqual(record);
    expect(sample.apiKey('0c'.repeat(32))).toBe('NOT_FOUND');
  });
});

function sameText(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The path of the first member that a schema objects to. */
function faultOf(schema: z.ZodType, record: unknown): string | null {
  return schema.safeParse(record).error?.issues[0]?.path.join('.') ?? null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
