/** What a load generator is asked for, and what it tells. */
import { z } from 'zod';

const targetSchema = z.object({
  /** The whole address. */
  url: z.string(),
  /** Without one, none is sent. */
  key: z.string().nullable(),
  /** Names what it is for, to tell samples apart. */
  tag: z.string(),
});
export type Target = Readonly<z.output<typeof targetSchema>>;

export const loadCommandSchema = z.discriminatedUnion('name', [
  z.object({ name: z.literal('begin'), targets: z.array(targetSchema), perSecond: z.number() }),
  z.object({ name: z.literal('end') }),
  z.object({ name: z.literal('slowloris'), url: z.string(), sockets: z.int() }),
]);
export type LoadCommand = z.output<typeof loadCommandSchema>;

const sampleSchema = z.object({
  tag: z.string(),
  url: z.string(),
  /** When it was sent, Unix milliseconds. */
  atMs: z.number(),
  tookMs: z.number(),
  /** 0 where no whole answer came. */
  status: z.int(),
  cacheStatus: z.string().nullable(),
  ageSeconds: z.number().nullable(),
  /** The first `id` and `name` in the body. */
  id: z.string().nullable(),
  title: z.string().nullable(),
});
export type Sample = Readonly<z.output<typeof sampleSchema>>;
export const samplesSchema = z.array(sampleSchema);

/** How long a connection stood, and what was said on it at the end. */
export const closedSchema = z.array(z.object({ afterMs: z.number(), status: z.int() }));
export type Closed = z.output<typeof closedSchema>[number];
