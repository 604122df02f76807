/** A scored scorecard with its coaching plan: the same body on both surfaces. */
import { z } from 'zod';
import type { ScoredCardRecord } from './records.ts';

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

/** The body of a scored scorecard. */
export const scoredCardViewSchema = z
  .strictObject({ scorecard: scorecardSchema, coaching_plan: coachingPlanSchema })
  .meta({ id: 'ScoredCardBody' });

export type ScoredCardView = z.output<typeof scoredCardViewSchema>;

/** The public form of a scored scorecard: scores and comments are always strings. */
export function toScoredCardView(record: ScoredCardRecord): ScoredCardView {
  return {
    scorecard: {
      name: record.scorecard.name,
      sections: record.scorecard.sections.map(({ name, criteria }) => ({
        name,
        criteria: criteria.map((criterion) => ({
          id: criterion.id,
          name: criterion.name,
          score: String(criterion.score),
          comment: criterion.comment ?? '',
        })),
      })),
    },
    coaching_plan: toCoachingPlan(record.coachingPlan),
  };
}

function toCoachingPlan(plan: ScoredCardRecord['coachingPlan']): ScoredCardView['coaching_plan'] {
  return {
    focus_area: {
      biggest_improvement_opportunity: plan.focusArea.biggestImprovementOpportunity,
      recommendation: plan.focusArea.recommendation,
      try_this: plan.focusArea.tryThis,
      question_suggestions: [...plan.focusArea.questionSuggestions],
    },
    strengths: plan.strengths.map(({ name, comment }) => ({ name, comment })),
    areas_for_improvement: plan.areasForImprovement.map(({ name, comment }) => ({ name, comment })),
  };
}
