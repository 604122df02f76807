/** The fields of an evaluation that both surfaces show, and how each is made from a record. */
import { z } from 'zod';
import { ID_LENGTH } from './vocabulary.ts';
import type { EvaluationRecord } from './records.ts';

/** RFC 3339 in UTC with milliseconds and `Z`, the one form in which the public API writes times. */
export const timestampSchema = z
  .string()
  .regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/)
  .meta({ format: 'date-time', description: 'A time in UTC, with milliseconds and `Z`.' });

/** An id that a read of the record takes. Others are the store's own, of any length. */
export const publicId = z.string().meta(ID_LENGTH);

/** The fields that Report and Call have in common, before those that differ, in the order of the specification. */
export const sharedFields = {
  id: publicId.meta({ description: 'The evaluation.' }),
  name: z.string().meta({ description: 'The title of the call.' }),
  owner_id: z.string().meta({ description: 'The user who owns the recording.' }),
  score: z.number().meta({ description: 'The overall score; 0 until the evaluation is scored.' }),
  score_breakdown: z.record(z.string(), z.number()).meta({
    description: 'The score of each category, by its key. A category without a score is left out.',
  }),
  scorecard: z.string().meta({ description: 'The name of the scorecard that the call was scored with.' }),
  scorecard_id: z.string().nullable().meta({ description: 'That scorecard; null where the store names none.' }),
  created_at: timestampSchema,
  duration_in_minutes: z.number().nullable().meta({
    description: 'Length of the call in minutes, rounded to 2 decimals; null where it is not known.',
  }),
  source: z.string().nullable().meta({ description: 'Where the recording comes from; null where it is not known.' }),
} as const;

/** Who took part, in both: behind the fields of the person who was evaluated. */
export const peopleFields = {
  participants: z.array(z.string()).meta({
    description: 'Those who spoke, each by name, else by e-mail address. Someone with neither is left out.',
  }),
  attendees: z.array(z.string()).meta({
    description: 'Those who attended, each by e-mail address, else by name. Someone with neither is left out.',
  }),
} as const;

/** Unix milliseconds within the years 0000 to 9999 become the public form of a time. */
export function toTimestamp(unixMs: number): string {
  return new Date(unixMs).toISOString();
}

/** With 2 decimals, to the nearest. Any finite number gives a finite one, and never -0. */
function toMinutes(seconds: number): number {
  return Number((seconds / 60).toFixed(2)) + 0;
}

/** The values of `sharedFields` for a record. */
export function toSharedFields(record: EvaluationRecord): z.output<z.ZodObject<typeof sharedFields>> {
  return {
    id: record._id,
    name: record.title,
    owner_id: record.ownerUserId,
    score: record.overallScore,
    score_breakdown: toScoreBreakdown(record.categoryScores),
    scorecard: record.scorecardRef.name,
    scorecard_id: record.scorecardRef.id,
    created_at: toTimestamp(record.createdAtMs),
    duration_in_minutes: record.durationSeconds === null ? null : toMinutes(record.durationSeconds),
    source: record.source,
  };
}

/** The values of `peopleFields` for a record. */
export function toPeople({ people }: EvaluationRecord): z.output<z.ZodObject<typeof peopleFields>> {
  return {
    participants: people.filter(({ spoke }) => spoke).flatMap(({ name, email }) => firstFilled(name, email)),
    attendees: people.filter(({ attended }) => attended).flatMap(({ name, email }) => firstFilled(email, name)),
  };
}

/** `Object.fromEntries` defines own properties, so a category called `__proto__` is a key like any other. */
function toScoreBreakdown(scores: EvaluationRecord['categoryScores']): Record<string, number> {
  return Object.fromEntries(scores.flatMap(({ key, value }) => (value === null ? [] : [[key, value] as const])));
}

/** A blank name says no more than none. */
function firstFilled(...candidates: readonly (string | null)[]): string[] {
  const filled = candidates.find((candidate) => candidate !== null && candidate.trim() !== '');
  return typeof filled === 'string' ? [filled] : [];
}
