import { describe, expect, test } from 'vitest';
import {
  dealInsightsSchema,
  evaluationSchema,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
} from '../../../src/domain/records.ts';
import { createSampleData, demo } from '../../../src/sample/index.ts';

const data = createSampleData({ seed: 9, evaluations: 1500 });
const completed = data.evaluations.filter(({ state }) => state === 'COMPLETED');
const cards = completed.map(({ _id }) => scoredCardSchema.parse(data.scorecard(_id)));
const criteria = cards.flatMap(({ scorecard }) => scorecard.sections.flatMap((section) => section.criteria));

describe('the scores of the sample', () => {
  test('overall is the mean of the categories that have one, between 0 and 100', () => {
    for (const { categoryScores, overallScore } of completed) {
      const values = categoryScores.flatMap(({ value }) => value ?? []);
      const mean = values.length === 0 ? 0 : values.reduce((a, b) => a + b, 0) / values.length;
      expect(Math.abs(overallScore - mean)).toBeLessThan(0.051);
      expect(overallScore).toBeGreaterThanOrEqual(0);
      expect(overallScore).toBeLessThanOrEqual(100);
    }
  });

  test('of a criterion are numbers or texts, and comments are at times null', () => {
    const types = new Set(criteria.map(({ score }) => typeof score));
    expect([...types].toSorted()).toEqual(['number', 'string']);
    expect(criteria.some(({ comment }) => comment === null)).toBe(true);
    for (const example of ['4/5', 'Proficient', 'N/A', 3])
      expect(criteria.map(({ score }) => score)).toContain(example);
  });

  test('of a criterion fit its comment: praise from 60 of 100 on, criticism below', () => {
    const framed = criteria.filter(({ id, score, comment }) => {
      return id === 'frames_value_first' && typeof score === 'number' && score > 5 && comment !== null;
    });
    const praised = framed.filter(({ comment }) => comment?.startsWith('Set ')).map(({ score }) => Number(score));
    const criticised = framed.filter(({ comment }) => comment?.startsWith('Gave ')).map(({ score }) => Number(score));
    expect(praised.length + criticised.length).toBe(framed.length);
    expect(Math.min(...praised)).toBeGreaterThanOrEqual(60);
    expect(Math.max(...criticised)).toBeLessThan(60);
  });

  test('categories are the sections of the scored card', () => {
    completed.forEach(({ categoryScores, scorecardRef }, index) => {
      const scorecard = cards[index]?.scorecard;
      expect(scorecard?.sections.map(({ name }) => name)).toEqual(categoryScores.map(({ label }) => label));
      expect(scorecardRef.name.startsWith(scorecard?.name ?? '-')).toBe(true);
    });
  });
});

describe('the coaching plans of the sample', () => {
  test('speak of criteria of the same card and leave no slot open', () => {
    for (const { scorecard, coachingPlan } of cards) {
      const names = scorecard.sections.flatMap((section) => section.criteria.map(({ name }) => name));
      const spoken = [...coachingPlan.strengths, ...coachingPlan.areasForImprovement];
      expect(spoken.filter(({ name }) => !names.includes(name))).toEqual([]);
      expect(coachingPlan.areasForImprovement).toHaveLength(2);
      expect(coachingPlan.focusArea.questionSuggestions.length).toBeGreaterThanOrEqual(2);
      expect(JSON.stringify(coachingPlan)).not.toMatch(/\{\w+\}|\{\d+-\d+\}|undefined/);
    }
  });

  test('begin with the weakest criterion, and praise nothing that they also criticise', () => {
    for (const { coachingPlan } of cards) {
      const [weakest] = coachingPlan.areasForImprovement;
      expect(coachingPlan.focusArea.biggestImprovementOpportunity).toBe(`${weakest?.name}. ${weakest?.comment}`);
      const criticised = coachingPlan.areasForImprovement.map(({ name }) => name);
      expect(coachingPlan.strengths.filter(({ name }) => criticised.includes(name))).toEqual([]);
    }
  });

  test('say the same about a criterion as its card does', () => {
    for (const { scorecard, coachingPlan } of cards) {
      const comments = new Map(
        scorecard.sections.flatMap(({ criteria: all }) => all.map((it) => [it.name, it.comment])),
      );
      for (const { name, comment } of coachingPlan.strengths) expect([comment, null]).toContain(comments.get(name));
    }
  });
});

describe('the examples', () => {
  test.each([1, 2, 100, 1500])('of a sample of %i are whole in every part, in one workspace', (evaluations) => {
    const sample = createSampleData({ seed: 9, evaluations });
    const { workspaceId, reportId, callId, scorecardId } = demo(sample);
    for (const id of [reportId, callId]) {
      expect(evaluationSchema.parse(sample.evaluation(id))).toMatchObject({ workspaceId, state: 'COMPLETED' });
      expect(scoredCardSchema.parse(sample.scorecard(id)).workspaceId).toBe(workspaceId);
      expect(dealInsightsSchema.parse(sample.dealInsights(id)).workspaceId).toBe(workspaceId);
      expect(transcriptSchema.parse(sample.transcript(id)).format).toMatch(/^(?:speaker_text|webvtt)$/);
    }
    expect(scorecardSchema.parse(sample.rubric(scorecardId)).workspaceId).toBe(workspaceId);
    expect(scorecardId).toMatch(/^[0-9a-f-]{36}$/);
    expect(reportId === callId).toBe(evaluations === 1);
  });

  test('are on the first page of their workspace', () => {
    const { workspaceId, reportId, callId } = demo(data);
    const page = completed.filter((record) => record.workspaceId === workspaceId).slice(0, 50);
    expect(page.map(({ _id }) => _id)).toEqual(expect.arrayContaining([reportId, callId]));
  });
});
