/** What one process's model has learned, as it travels to those that give advice: sums and shares, to be added up. */
import { z } from 'zod';
import { CACHE_CLASSES } from '../ttl-policy.ts';
import { GHOSTS } from './candidates.ts';
import { BUCKETS } from './log-scale.ts';

const amount = z.number().nonnegative();
const bucket = z
  .int()
  .min(0)
  .max(BUCKETS - 1);

const pointSchema = z.strictObject({
  freshMs: amount,
  /** Since when the ghost runs, and since when its figures were counted, Unix milliseconds. */
  startedMs: amount,
  sinceMs: amount,
  reads: amount,
  /** Calls to the store. */
  calls: amount,
  /** The ages of what was served: the first bucket that holds any, and shares of 10,000 from there on. */
  firstAge: bucket,
  ages: z.array(amount).max(BUCKETS),
});

const classSchema = z.strictObject({
  class: z.enum(CACHE_CLASSES),
  /** A point a time that was tried out. */
  points: z.array(pointSchema).max(GHOSTS),
  /** Refreshes, by how long the old copy was held: the bucket, how many there were, how many brought a change. */
  refreshes: z.array(z.tuple([bucket, amount, amount])).max(BUCKETS),
});

export const whatIfSnapshotSchema = z.strictObject({
  version: z.literal(1),
  /** When it was taken, Unix milliseconds. */
  atMs: amount,
  classes: z.array(classSchema).max(CACHE_CLASSES.length),
});

export type WhatIfSnapshot = z.output<typeof whatIfSnapshotSchema>;
export type ClassSnapshot = WhatIfSnapshot['classes'][number];
export type PointSnapshot = ClassSnapshot['points'][number];
