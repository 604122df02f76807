/** What a test asks of a gateway process's cache, and what it is answered. Between processes, so it is checked. */
import { z } from 'zod';

/** Times are Unix milliseconds, which all processes of a machine share. */
export const readsSchema = z.object({
  reads: z.array(
    z.object({
      endedAtMs: z.number(),
      durationMs: z.number(),
      /** An outcome of the cache, or `failed: ` and the kind of the error. */
      outcome: z.string(),
      title: z.string(),
    }),
  ),
});

export const hammeredSchema = z.object({
  /** How many reads had each outcome. */
  outcomes: z.record(z.string(), z.number()),
  longestMs: z.number(),
});

export const seenSchema = z.object({ seenAtMs: z.number() });
export const doneSchema = z.object({});

export const commandSchema = z.discriminatedUnion('name', [
  /** So many readers of one evaluation, all at once. */
  z.object({ name: z.literal('read'), id: z.string(), readers: z.number() }),
  /** Readers that read one evaluation again and again. */
  z.object({
    name: z.literal('hammer'),
    id: z.string(),
    readers: z.number(),
    durationMs: z.number(),
    pauseMs: z.number(),
  }),
  /** Reads one evaluation again and again until it has that title. */
  z.object({ name: z.literal('watch'), id: z.string(), title: z.string(), timeoutMs: z.number() }),
  z.object({ name: z.literal('purge'), id: z.string() }),
]);
export type Command = z.output<typeof commandSchema>;

/** To a worker, and back. */
export const requestSchema = z.object({ call: z.int(), command: commandSchema });
export const replySchema = z.object({ call: z.int(), result: z.unknown().optional(), error: z.string().optional() });

export const settingsSchema = z.object({
  redisUrl: z.string(),
  storeUrl: z.string(),
  storeToken: z.string(),
  /** Of evaluations. */
  times: z.object({ freshMs: z.number(), staleMs: z.number(), errorMs: z.number() }),
});
export type WorkerSettings = z.output<typeof settingsSchema>;

/** The first message of a worker. */
export const readySchema = z.object({ url: z.string() });
