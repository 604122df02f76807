/** Whatever the store sends, the public forms are as the document says and hold nothing that is not listed. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { toCallBody } from '../../src/domain/call.ts';
import { toDealInsightsBody } from '../../src/domain/deal-insights.ts';
import { toCallsPage, toReportsPage } from '../../src/domain/pages.ts';
import { dealInsightsSchema, evaluationSchema, scorecardSchema, scoredCardSchema } from '../../src/domain/records.ts';
import { toReportBody } from '../../src/domain/report.ts';
import { toRubricBody } from '../../src/domain/rubric.ts';
import { toScoredCardView } from '../../src/domain/scored-card.ts';
import { buildOpenApiDocument } from '../../src/http/openapi/document.ts';
import { DocumentSchemas } from '../support/openapi-schemas.ts';
import { dealInsights, evaluation, planted, PLANTED, scorecard, scoredCard } from './arbitrary-records.ts';

const schemas = new DocumentSchemas(buildOpenApiDocument({ limits: { perMinute: 120, perHour: 3000 } }));

/** The members of the specification's tables, told here once more so that nothing is compared with itself. */
const REPORT = `id name owner_id score score_breakdown scorecard scorecard_id created_at duration_in_minutes source
  status evaluatee_user share participants attendees crm_deals`;
const CALL = `id name owner_id score score_breakdown scorecard scorecard_id created_at duration_in_minutes source
  evaluatee_user_id evaluatee_user_name evaluatee_email participants attendees crm_objects`;
const EVALUATEE_USER = 'name first_name email id avatar_url';
const SCORED_CARD = `scorecard coaching_plan name sections criteria id score comment focus_area
  biggest_improvement_opportunity recommendation try_this question_suggestions strengths areas_for_improvement`;
/** Members whose keys are the store's own. */
const OPEN = new Set(['score_breakdown', 'content', 'deal_insights']);

interface Form {
  readonly name: string;
  readonly component: string;
  readonly members: string;
  /** From the JSON of a record to the JSON of its public form. */
  readonly publish: (json: string) => string;
  readonly record: fc.Arbitrary<unknown>;
}

const forms: readonly Form[] = [
  {
    name: 'a report',
    component: 'ReportBody',
    members: `report ${REPORT} ${EVALUATEE_USER} deactivated_at url`,
    publish: publisher(evaluationSchema, toReportBody),
    record: evaluation,
  },
  {
    name: 'a page of reports',
    component: 'ReportsPage',
    members: `reports page total_count ${REPORT} ${EVALUATEE_USER} deactivated_at url`,
    publish: publisher(evaluationSchema, (record) => toReportsPage({ items: [record], total: 1 }, 1)),
    record: evaluation,
  },
  {
    name: 'a call',
    component: 'CallBody',
    members: `call ${CALL} url type`,
    publish: publisher(evaluationSchema, toCallBody),
    record: evaluation,
  },
  {
    name: 'a page of calls',
    component: 'CallsPage',
    members: `calls pagination page page_size total_count total_pages ${CALL} url type`,
    publish: publisher(evaluationSchema, (record) =>
      toCallsPage({ items: [record], total: 1 }, { page: 1, pageSize: 1 }),
    ),
    record: evaluation,
  },
  {
    name: 'a scored scorecard',
    component: 'ScoredCardBody',
    members: SCORED_CARD,
    publish: publisher(scoredCardSchema, toScoredCardView),
    record: scoredCard,
  },
  {
    name: 'deal insights',
    component: 'DealInsightsBody',
    members: 'evaluation_id link deal_insights',
    publish: publisher(dealInsightsSchema, toDealInsightsBody),
    record: dealInsights,
  },
  {
    name: 'a rubric',
    component: 'RubricBody',
    members: 'scorecard id name content',
    publish: publisher(scorecardSchema, toRubricBody),
    record: scorecard,
  },
];

function publisher<T>(schema: z.ZodType<T>, toForm: (record: T) => object): (json: string) => string {
  return (json) => JSON.stringify(toForm(schema.parse(JSON.parse(json))));
}

describe('whatever the store sends, its public form is as documented and holds nothing else', () => {
  test.each(forms)('$name', ({ component, members, publish, record }) => {
    const check = schemas.checkAt(['components', 'schemas', component]);
    const listed = new Set(members.split(/\s+/));
    fc.assert(
      fc.property(planted(record), (json) => {
        const published = publish(json);
        expect(published).not.toContain(PLANTED);
        const body: unknown = JSON.parse(published);
        expect(check(body)).toEqual([]);
        expect(namesIn(body).filter((name) => !listed.has(name))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test('records do get unknown members planted, at every depth', () => {
    const texts = fc.sample(planted(evaluation), { numRuns: 200, seed: 1 });
    const places = texts.flatMap((text) => placesOf(PLANTED, JSON.parse(text)));
    expect([...new Set(places)].toSorted()).toEqual(
      expect.arrayContaining(['', 'categoryScores', 'crmLinks', 'evaluatee', 'people', 'scorecardRef', 'shareLink']),
    );
  });
});

/** The names of all members, at any depth, but for those whose keys are open. */
function namesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => [
    name,
    ...(OPEN.has(name) ? [] : namesIn(member)),
  ]);
}

/** Under which top-level member (`''` for the record itself) an object has a member that holds the marker directly. */
function placesOf(marker: string, value: unknown, top = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    if (Array.isArray(member) && member[0] === marker) return [top];
    return placesOf(marker, member, top === '' ? name : top);
  });
}
