/**
 * The records of the upstream store, as zod schemas: what is required, of what type, and nothing else. Parsing a
 * record with them drops every member that the interface does not list, so internal members end at this edge.
 */
import { z } from 'zod';
import { EVALUATION_STATES, ID_PATTERN, TRANSCRIPT_FORMATS, UUID_PATTERN } from './vocabulary.ts';

/** The range of Unix milliseconds that RFC 3339 can write: years 0000 to 9999. */
const timestampMs = z.int().min(-62_167_219_200_000).max(253_402_300_799_999);
const id = z.string().regex(ID_PATTERN);
/** Lower case, so that equal workspaces are equal strings. */
const workspaceId = z
  .string()
  .regex(UUID_PATTERN)
  .transform((value) => value.toLowerCase());

export const CRM_OBJECT_TYPES = ['deal', 'account', 'contact', 'lead'] as const;

export const evaluationSchema = z.object({
  _id: id,
  workspaceId,
  title: z.string(),
  ownerUserId: z.string(),
  state: z.enum(EVALUATION_STATES),
  overallScore: z.number(),
  categoryScores: z.array(z.object({ key: z.string(), label: z.string(), value: z.number().nullable() })),
  scorecardRef: z.object({ id: z.string().nullable(), name: z.string() }),
  createdAtMs: timestampMs,
  durationSeconds: z.number().nullable(),
  source: z.string().nullable(),
  evaluatee: z.object({
    userId: z.string().nullable().optional(),
    displayName: z.string(),
    givenName: z.string(),
    email: z.string(),
    avatar: z.string().nullable().optional(),
  }),
  shareLink: z.object({ id: z.string(), deactivatedAtMs: timestampMs.nullable() }).nullable().optional(),
  people: z.array(
    z.object({ name: z.string().nullable(), email: z.string().nullable(), spoke: z.boolean(), attended: z.boolean() }),
  ),
  crmLinks: z.array(
    z.object({
      objectType: z.enum(CRM_OBJECT_TYPES),
      externalId: z.string(),
      label: z.string(),
      href: z.string().nullable(),
    }),
  ),
});

export const transcriptSchema = z.object({
  evaluationId: id,
  workspaceId,
  format: z.enum(TRANSCRIPT_FORMATS).nullable(),
  body: z.string(),
});

const namedComment = z.object({ name: z.string(), comment: z.string() });

export const scoredCardSchema = z.object({
  evaluationId: id,
  workspaceId,
  scorecard: z.object({
    name: z.string(),
    sections: z.array(
      z.object({
        name: z.string(),
        criteria: z.array(
          z.object({
            id: z.string(),
            name: z.string(),
            score: z.union([z.string(), z.number()]),
            comment: z.string().nullable(),
          }),
        ),
      }),
    ),
  }),
  coachingPlan: z.object({
    focusArea: z.object({
      biggestImprovementOpportunity: z.string(),
      recommendation: z.string(),
      tryThis: z.string(),
      questionSuggestions: z.array(z.string()),
    }),
    strengths: z.array(namedComment),
    areasForImprovement: z.array(namedComment),
  }),
});

/** An object whose members the interface leaves open; they are passed on as they are. */
export const openObjectSchema = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'expected an object',
);

export const dealInsightsSchema = z.object({
  evaluationId: id,
  workspaceId,
  permalink: z.string(),
  insights: openObjectSchema,
});

export const scorecardSchema = z.object({ _id: id, workspaceId, name: z.string(), rubric: openObjectSchema });

export type EvaluationRecord = z.output<typeof evaluationSchema>;
export type EvaluationState = EvaluationRecord['state'];
export type TranscriptRecord = z.output<typeof transcriptSchema>;
export type ScoredCardRecord = z.output<typeof scoredCardSchema>;
export type DealInsightsRecord = z.output<typeof dealInsightsSchema>;
export type ScorecardRecord = z.output<typeof scorecardSchema>;

/** One page of a list: the records that are whole, how many others the store sent, and how many it says there are in all. */
export interface EvaluationPage {
  readonly items: readonly EvaluationRecord[];
  readonly omitted: number;
  /** The ids of all records that the store sent, in its order; null for one without a valid id. */
  readonly sentIds: readonly (string | null)[];
  readonly total: number;
}
