/** What is asked of a process that only watches traffic, and what it answers. Between processes, so it is checked. */
import { z } from 'zod';

export const whatIfCommandSchema = z.discriminatedUnion('name', [
  /** Resolves once it knows so many processes, itself among them. */
  z.object({ name: z.literal('know'), processes: z.int() }),
  /** Makes reads for that time. Without `isWatched` nothing is told of them: what the traffic itself costs. */
  z.object({
    name: z.literal('read'),
    durationMs: z.number(),
    perSecond: z.number(),
    seed: z.int(),
    isWatched: z.boolean(),
  }),
  z.object({ name: z.literal('advice') }),
]);
export type WhatIfCommand = z.output<typeof whatIfCommandSchema>;

export const readsSchema = z.object({
  /** Of the whole process. */
  cpuMs: z.number(),
  /** Which key was read when, Unix milliseconds. */
  reads: z.array(z.tuple([z.string(), z.number()])),
});
export const listAdviceSchema = z.object({
  reads: z.number(),
  curve: z.array(z.object({ freshMs: z.number(), hitRatio: z.number() })),
});
