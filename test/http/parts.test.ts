/** The parts of an evaluation, and rubrics: their bodies, to the byte. */
import { describe, expect, test } from 'vitest';
import { startTestGateway } from '../support/gateway.ts';
import { forFile } from '../support/opened.ts';
import { aScorecard, aScoredCard, dealInsights } from '../support/records.ts';
import {
  GET_CALL_SCORECARD,
  GET_REPORT_DEAL_INSIGHTS,
  GET_REPORT_SCORECARD,
  GET_RUBRIC,
  PARTS,
} from './common/endpoints.ts';
import { newSubject, putSubject, readerOf } from './common/subject.ts';

const gateway = await forFile(startTestGateway());

/** A new subject without records, and what holds it in every part. */
function newPart() {
  const subject = newSubject();
  return { subject, part: { evaluationId: subject.id, workspaceId: subject.workspaceId } };
}

describe.each([GET_REPORT_SCORECARD, GET_CALL_SCORECARD])('$name: the same on both surfaces', (endpoint) => {
  test('scores and comments are always strings, and internal members never shown', async () => {
    const { subject, part } = newPart();
    const card = aScoredCard(part);
    gateway.store.scoredCards.set(subject.id, {
      ...card,
      costCents: 3,
      scorecard: { ...card.scorecard, modelRun: 'internal' },
      coachingPlan: { ...card.coachingPlan, reviewerNotes: 'internal' },
    });
    const reply = await (await readerOf(gateway, endpoint, { subject, scopes: [endpoint.scope] })).ask();
    expect(reply.status).toBe(200);
    expect(reply.text).toBe(
      JSON.stringify({
        scorecard: {
          name: 'Discovery scorecard',
          sections: [
            {
              name: 'Opening',
              criteria: [
                { id: 'c1', name: 'Sets an agenda', score: '4', comment: 'Clear from the start.' },
                { id: 'c2', name: 'Confirms the time', score: 'n/a', comment: '' },
              ],
            },
          ],
        },
        coaching_plan: {
          focus_area: {
            biggest_improvement_opportunity: 'Ask before pitching',
            recommendation: 'Leave two questions unanswered before showing a slide.',
            try_this: 'Ask what happens if nothing changes.',
            question_suggestions: ['What would a good quarter look like?'],
          },
          strengths: [{ name: 'Rapport', comment: 'Warm and brief.' }],
          areas_for_improvement: [{ name: 'Next steps', comment: 'None was agreed.' }],
        },
      }),
    );
  });

  test('a score is shown as a string, whatever it is', async () => {
    const { subject, part } = newPart();
    const scores = [4, 3.5, 0, -0, 1e21, 1e-7, '', '4/5'];
    const criteria = scores.map((score, i) => ({ id: `c${i}`, name: 'C', score, comment: null }));
    const scorecard = { name: 'S', sections: [{ name: 'A', criteria }] };
    gateway.store.put({ scoredCards: [aScoredCard({ ...part, scorecard })] });
    const { text } = await (await readerOf(gateway, endpoint, { subject })).ask();
    const shown = [...text.matchAll(/"score":([^,]*),/g)].map(([, score]) => score);
    expect(shown).toEqual(['"4"', '"3.5"', '"0"', '"0"', '"1e+21"', '"1e-7"', '""', '"4/5"']);
  });

  test('an empty card has empty arrays', async () => {
    const { subject, part } = newPart();
    const focusArea = { biggestImprovementOpportunity: '', recommendation: '', tryThis: '', questionSuggestions: [] };
    const coachingPlan = { focusArea, strengths: [], areasForImprovement: [] };
    gateway.store.put({ scoredCards: [aScoredCard({ ...part, scorecard: { name: '', sections: [] }, coachingPlan })] });
    expect((await (await readerOf(gateway, endpoint, { subject })).ask()).text).toBe(
      '{"scorecard":{"name":"","sections":[]},"coaching_plan":{"focus_area":{"biggest_improvement_opportunity":"",' +
        '"recommendation":"","try_this":"","question_suggestions":[]},"strengths":[],"areas_for_improvement":[]}}',
    );
  });
});

describe('deal insights', () => {
  test.each([
    [
      'passed on as they are, internal members left out',
      { risk: 'medium', blockers: [{ topic: 'budget', weight: 0.4, costCents: 7 }], none: null, '': [] },
      { risk: 'medium', blockers: [{ topic: 'budget', weight: 0.4 }], none: null, '': [] },
    ],
    ['none: an empty object', {}, {}],
  ])('are %s', async (_what, insights, expected) => {
    const { subject, part } = newPart();
    gateway.store.dealInsights.set(subject.id, { ...dealInsights({ ...part, insights }), modelRun: 'internal' });
    const reply = await (await readerOf(gateway, GET_REPORT_DEAL_INSIGHTS, { subject })).ask();
    const link = 'https://app.example.com/evaluations/ev_1';
    expect(reply.text).toBe(JSON.stringify({ evaluation_id: subject.id, link, deal_insights: expected }));
  });
});

describe('a rubric', () => {
  test.each([
    [
      'passed on as it is, internal members left out',
      { sections: [{ title: 'Opening', weight: 0.25, reviewerNotes: 'internal' }], version: 3 },
      { sections: [{ title: 'Opening', weight: 0.25 }], version: 3 },
    ],
    ['empty: an empty object', {}, {}],
  ])('is %s', async (_what, rubric, content) => {
    const { subject, ask } = await readerOf(gateway, GET_RUBRIC, { subject: newSubject() });
    const { scorecardId: id, workspaceId } = subject;
    gateway.store.scorecards.set(id, { ...aScorecard({ _id: id, workspaceId, rubric }), modelRun: 'internal' });
    expect((await ask()).text).toBe(JSON.stringify({ scorecard: { id, name: 'Discovery scorecard', content } }));
  });
});

test.each(PARTS)('Q5: $name of an evaluation that is not completed is served if the store has it', async (endpoint) => {
  for (const state of ['QUEUED', 'SCORING', 'FAILED'] as const) {
    const subject = putSubject(gateway.store, newSubject(), { state });
    expect((await (await readerOf(gateway, endpoint, { subject })).ask()).status).toBe(200);
  }
});
