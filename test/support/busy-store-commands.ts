/** What a store of limited strength is told, and what it tells of itself. */
import { z } from 'zod';

export const strengthSchema = z.object({
  /** How long an answer takes while no more requests are in flight than it bears. */
  serviceMs: z.number(),
  /** So many at a time; beyond it each takes longer, by the square, and beyond four times as many it refuses. */
  bears: z.int(),
});
export type Strength = Readonly<z.output<typeof strengthSchema>>;

export const busyCommandSchema = z.discriminatedUnion('name', [
  /** Every request is answered with 503 from now on, or no more. */
  z.object({ name: z.literal('fail'), isFailing: z.boolean() }),
  /** What was seen since it was last asked. */
  z.object({ name: z.literal('look') }),
]);
export type BusyCommand = z.output<typeof busyCommandSchema>;

export const seenSchema = z.object({
  /** Unix milliseconds, with fractions. */
  arrivedAtMs: z.array(z.number()),
  mostInFlight: z.int(),
});
export type Seen = Readonly<z.output<typeof seenSchema>>;
