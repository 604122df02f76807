/** The public forms of the parts of an evaluation, and of a rubric: the same for every surface that shows them. */
import { z } from 'zod';
import { publicId } from './evaluation.ts';
import type { DealInsightsRecord, ScorecardRecord, ScoredCardRecord } from './records.ts';

const criterionSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    score: z.string().meta({ description: 'The score as text. Where the store holds a number, as JSON writes it.' }),
    comment: z.string().meta({ description: 'Empty where there is none.' }),
  })
  .meta({ id: 'ScoredCriterion' });

const sectionSchema = z
  .strictObject({ name: z.string(), criteria: z.array(criterionSchema) })
  .meta({ id: 'ScoredSection' });

const scorecardSchema = z
  .strictObject({ name: z.string(), sections: z.array(sectionSchema) })
  .meta({ id: 'ScoredCard', description: 'The scorecard, with the score of each criterion.' });

const focusAreaSchema = z
  .strictObject({
    biggest_improvement_opportunity: z.string(),
    recommendation: z.string(),
    try_this: z.string(),
    question_suggestions: z.array(z.string()),
  })
  .meta({ id: 'FocusArea', description: 'The one thing to work on first.' });

const observationSchema = z.strictObject({ name: z.string(), comment: z.string() }).meta({ id: 'Observation' });

const coachingPlanSchema = z
  .strictObject({
    focus_area: focusAreaSchema,
    strengths: z.array(observationSchema),
    areas_for_improvement: z.array(observationSchema),
  })
  .meta({ id: 'CoachingPlan', description: 'What the evaluation advises.' });

export const scoredCardViewSchema = z
  .strictObject({ scorecard: scorecardSchema, coaching_plan: coachingPlanSchema })
  .meta({ id: 'ScoredCardBody' });

/** The public form of a scored scorecard: scores and comments are always strings. */
export function toScoredCardView({ scorecard, coachingPlan }: ScoredCardRecord): z.output<typeof scoredCardViewSchema> {
  const { focusArea, strengths, areasForImprovement } = coachingPlan;
  return {
    scorecard: {
      name: scorecard.name,
      sections: scorecard.sections.map(({ name, criteria }) => ({
        name,
        criteria: criteria.map((criterion) => ({
          id: criterion.id,
          name: criterion.name,
          score: String(criterion.score),
          comment: criterion.comment ?? '',
        })),
      })),
    },
    coaching_plan: {
      focus_area: {
        biggest_improvement_opportunity: focusArea.biggestImprovementOpportunity,
        recommendation: focusArea.recommendation,
        try_this: focusArea.tryThis,
        question_suggestions: focusArea.questionSuggestions,
      },
      strengths: strengths.map(({ name, comment }) => ({ name, comment })),
      areas_for_improvement: areasForImprovement.map(({ name, comment }) => ({ name, comment })),
    },
  };
}

/** The body of deal insights. The content of `deal_insights` is passed on as it is. */
export const dealInsightsBodySchema = z
  .strictObject({
    evaluation_id: publicId,
    link: z.string().meta({ description: 'Where a person can read the evaluation.' }),
    deal_insights: z.record(z.string(), z.unknown()).meta({
      description: 'What the evaluation says about the deal. Its inner structure is not fixed.',
    }),
  })
  .meta({ id: 'DealInsightsBody' });

/** The public form of deal insights. */
export function toDealInsightsBody(record: DealInsightsRecord): z.output<typeof dealInsightsBodySchema> {
  return { evaluation_id: record.evaluationId, link: record.permalink, deal_insights: record.insights };
}

/** The body of a rubric. `content` is the scorecard author's own and is passed on as it is. */
export const rubricBodySchema = z
  .strictObject({
    scorecard: z
      .strictObject({
        id: publicId,
        name: z.string(),
        content: z.record(z.string(), z.unknown()).meta({
          description: 'The rubric as its authors wrote it. Its inner structure is not fixed.',
        }),
      })
      .meta({ id: 'Rubric' }),
  })
  .meta({ id: 'RubricBody' });

/** The public form of a scorecard's rubric. */
export function toRubricBody(record: ScorecardRecord): z.output<typeof rubricBodySchema> {
  return { scorecard: { id: record._id, name: record.name, content: record.rubric } };
}
