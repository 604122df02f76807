/** A scored scorecard has the same body on both surfaces, as the specification says; so it has the same tests. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { aScoredCard } from '../../support/records.ts';
import type { EndpointRow } from './endpoints.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

export function describeScoredCards(endpoint: EndpointRow): void {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(() => gateway.close());

  test('scores and comments are always strings, and internal members never shown', async () => {
    const subject = newSubject();
    const part = { evaluationId: subject.id, workspaceId: subject.workspaceId };
    const card = aScoredCard(part);
    gateway.store.scoredCards.set(subject.id, {
      ...card,
      costCents: 3,
      scorecard: { ...card.scorecard, modelRun: 'internal' },
      coachingPlan: { ...card.coachingPlan, reviewerNotes: 'internal' },
    });
    const key = await keyFor(gateway, subject, { scopes: [endpoint.scope] });
    const reply = await gateway.get(endpoint.path(subject), { key });
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
    const subject = newSubject();
    const part = { evaluationId: subject.id, workspaceId: subject.workspaceId };
    const scores = [4, 3.5, 0, -0, 1e21, 1e-7, '', '4/5'];
    const criteria = scores.map((score, i) => ({ id: `c${i}`, name: 'C', score, comment: null }));
    gateway.store.put({
      scoredCards: [aScoredCard({ ...part, scorecard: { name: 'S', sections: [{ name: 'A', criteria }] } })],
    });
    const reply = await gateway.get(endpoint.path(subject), { key: await keyFor(gateway, subject) });
    const shown = [...reply.text.matchAll(/"score":([^,]*),/g)].map(([, score]) => score);
    expect(shown).toEqual(['"4"', '"3.5"', '"0"', '"0"', '"1e+21"', '"1e-7"', '""', '"4/5"']);
  });

  test('an empty card has empty arrays', async () => {
    const subject = newSubject();
    const focusArea = { biggestImprovementOpportunity: '', recommendation: '', tryThis: '', questionSuggestions: [] };
    gateway.store.put({
      scoredCards: [
        {
          evaluationId: subject.id,
          workspaceId: subject.workspaceId,
          scorecard: { name: '', sections: [] },
          coachingPlan: { focusArea, strengths: [], areasForImprovement: [] },
        },
      ],
    });
    const reply = await gateway.get(endpoint.path(subject), { key: await keyFor(gateway, subject) });
    expect(reply.text).toBe(
      '{"scorecard":{"name":"","sections":[]},"coaching_plan":{"focus_area":{"biggest_improvement_opportunity":"",' +
        '"recommendation":"","try_this":"","question_suggestions":[]},"strengths":[],"areas_for_improvement":[]}}',
    );
  });

  test('Q5: the card of an evaluation that is not completed is served where the store has it', async () => {
    const subject = putSubject(gateway.store, newSubject(), { state: 'FAILED' });
    const reply = await gateway.get(endpoint.path(subject), { key: await keyFor(gateway, subject) });
    expect(reply.status).toBe(200);
  });
}
