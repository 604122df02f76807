/** What a generator of load by new ids is asked for, and what it tells. */
import { z } from 'zod';

export const pressureCommandSchema = z.discriminatedUnion('name', [
  /** Asks so many times a second, whether answers come or not. */
  z.object({
    name: z.literal('open'),
    /** `%` stands for the id. */
    url: z.string(),
    key: z.string(),
    perSecond: z.number(),
    forMs: z.number(),
    /** Of how many ids; null for a new one each time. */
    ids: z.int().nullable(),
  }),
  /** Asks for a new id over so many connections, on each as soon as the last answer is there; counts whole answers. */
  z.object({ name: z.literal('closed'), url: z.string(), connections: z.int(), forMs: z.number() }),
]);
export type PressureCommand = z.output<typeof pressureCommandSchema>;

const answeredSchema = z.object({
  /** When it was to be sent, Unix milliseconds; it counts from then on, also where the generator was late. */
  dueAtMs: z.number(),
  tookMs: z.number(),
  /** How much of that was the generator's own lateness. */
  lateMs: z.number(),
  /** 0 where no whole answer came. */
  status: z.int(),
});
export type Answered = Readonly<z.output<typeof answeredSchema>>;
export const answeredListSchema = z.array(answeredSchema);
