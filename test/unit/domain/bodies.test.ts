import { describe, expect, test } from 'vitest';
import { toDealInsightsBody } from '../../../src/domain/deal-insights.ts';
import { callErrorSchema, reportErrorSchema, reportListErrorSchema } from '../../../src/domain/errors.ts';
import { toRubricBody } from '../../../src/domain/rubric.ts';
import { toScoredCardView } from '../../../src/domain/scored-card.ts';
import { toCallTranscript, toReportTranscript } from '../../../src/domain/transcript.ts';
import { aScoredCard, aScorecard, dealInsights } from '../../support/records.ts';

describe('toScoredCardView', () => {
  test('gives the scorecard and the coaching plan in their public names', () => {
    const record = aScoredCard({
      scorecard: {
        name: 'Scorecard',
        sections: [
          { name: 'Opening', criteria: [{ id: 'c1', name: 'Agenda', score: '4/5', comment: 'Clear.' }] },
          { name: 'Closing', criteria: [] },
        ],
      },
      coachingPlan: {
        focusArea: {
          biggestImprovementOpportunity: 'Ask first',
          recommendation: 'Two questions',
          tryThis: 'Wait',
          questionSuggestions: ['Why now?'],
        },
        strengths: [{ name: 'Rapport', comment: 'Warm.' }],
        areasForImprovement: [{ name: 'Next steps', comment: 'None.' }],
      },
    });
    expect(JSON.stringify(toScoredCardView(record))).toBe(
      JSON.stringify({
        scorecard: {
          name: 'Scorecard',
          sections: [
            { name: 'Opening', criteria: [{ id: 'c1', name: 'Agenda', score: '4/5', comment: 'Clear.' }] },
            { name: 'Closing', criteria: [] },
          ],
        },
        coaching_plan: {
          focus_area: {
            biggest_improvement_opportunity: 'Ask first',
            recommendation: 'Two questions',
            try_this: 'Wait',
            question_suggestions: ['Why now?'],
          },
          strengths: [{ name: 'Rapport', comment: 'Warm.' }],
          areas_for_improvement: [{ name: 'Next steps', comment: 'None.' }],
        },
      }),
    );
  });

  test.each([
    [4, '4'],
    [3.5, '3.5'],
    [0, '0'],
    [-0, '0'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    ['', ''],
    ['n/a', 'n/a'],
  ])('a score of %j is the string %j', (score, text) => {
    const criteria = [{ id: 'c', name: 'C', score, comment: null }];
    const view = toScoredCardView(aScoredCard({ scorecard: { name: 'S', sections: [{ name: 'A', criteria }] } }));
    expect(view.scorecard.sections).toStrictEqual([
      { name: 'A', criteria: [{ id: 'c', name: 'C', score: text, comment: '' }] },
    ]);
  });
});

describe('toRubricBody and toDealInsightsBody', () => {
  test('the rubric is passed on as it is', () => {
    const rubric = { sections: [{ title: 'Opening', weight: 0.25 }], note: null };
    expect(toRubricBody(aScorecard({ _id: 'sc_1', name: 'Scorecard', rubric }))).toStrictEqual({
      scorecard: { id: 'sc_1', name: 'Scorecard', content: rubric },
    });
  });

  test('the insights are passed on as they are', () => {
    const insights = { risk: 'medium', blockers: [{ topic: 'budget' }] };
    const record = dealInsights({ evaluationId: 'ev_1', permalink: 'https://app.example/ev_1', insights });
    expect(toDealInsightsBody(record)).toStrictEqual({
      evaluation_id: 'ev_1',
      link: 'https://app.example/ev_1',
      deal_insights: insights,
    });
  });
});

describe('transcripts', () => {
  test("T1: a report's transcript is the body as it is", () => {
    expect(toReportTranscript({ body: 'A: b\r\n', isFormatSupported: false })).toStrictEqual({
      transcript: 'A: b\r\n',
      isFormatSupported: false,
    });
  });

  test("a page of a call's transcript has its text, segments and pagination, and nothing else of what it was cut from", () => {
    const segment = { index: 3, text: 'A: b', start: 10, end: 14 };
    const cut = {
      page: 2,
      pageSize: 1,
      text: 'A: b',
      segments: [segment],
      totalCount: 5,
      totalPages: 4,
      hasMore: true,
      truncated: false,
      isFormatSupported: true,
    };
    expect(JSON.stringify(toCallTranscript(cut))).toBe(
      JSON.stringify({
        transcript: { text: 'A: b', is_format_supported: true, segments: [{ index: 3, text: 'A: b' }] },
        pagination: { page: 2, page_size: 1, total_count: 5, total_pages: 4, has_more: true },
        truncated: false,
      }),
    );
  });
});

describe('error bodies', () => {
  test('each surface has its own form', () => {
    expect(reportErrorSchema.safeParse({ error: 'x' }).success).toBe(true);
    expect(reportErrorSchema.safeParse({ error: { message: 'x' } }).success).toBe(false);
    expect(callErrorSchema.safeParse({ error: { message: 'x' } }).success).toBe(true);
    expect(callErrorSchema.safeParse({ error: 'x' }).success).toBe(false);
  });

  test("S3: the list's error carries an empty list", () => {
    expect(reportListErrorSchema.safeParse({ reports: [], error: 'x' }).success).toBe(true);
    expect(reportListErrorSchema.safeParse({ error: 'x' }).success).toBe(false);
  });
});
