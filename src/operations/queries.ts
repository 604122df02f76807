/** The parameters of the admin listener's queries. The descriptions say what they may hold: refusals quote them. */
import { z } from 'zod';
import type { Position } from '../journal/journal.ts';
import type { PlaceInList } from '../keys/key.ts';
import { parseDuration } from '../time/duration.ts';
import { MAX_TTL_MS } from './bodies.ts';

const text = z.string();

export function limit(most: number, otherwise: number) {
  return text
    .regex(/^[0-9]{1,4}$/)
    .transform(Number)
    .pipe(z.int().min(1).max(most))
    .prefault(String(otherwise))
    .describe(`an integer from 1 to ${most}; ${otherwise} if it is left out`);
}

/** The place of the last key on a page. */
export const placeInList = text.regex(/^[0-9]{1,15}\.[A-Za-z0-9_-]{1,64}$/).transform((cursor): PlaceInList => {
  const [createdAtMs, keyId = ''] = cursor.split('.');
  return { createdAtMs: Number(createdAtMs), keyId };
});

/** A place in the journal: its history and the number of an event. */
export const placeInJournal = text.regex(/^[A-Za-z0-9-]{1,64}\.[0-9]{1,15}$/).transform((cursor): Position => {
  const [history = '', sequence] = cursor.split('.');
  return { history, sequence: Number(sequence) };
});

/** A what-if of two classes at once: the one is given, the other has its curve for that. */
export const freshTime = text
  .transform((given) => parseDuration(given) ?? Number.NaN)
  .refine((ms) => ms >= 0 && ms <= MAX_TTL_MS)
  .optional()
  .describe('a fresh time, such as 45s: the answer is as if it were in force');
