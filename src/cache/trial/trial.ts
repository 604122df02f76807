/** A trial of a time: another `fresh` for a share of a class's keys, with an end, measured beside the rest of them. */
import { z } from 'zod';
import { CACHE_CLASSES, type CacheClass } from '../times.ts';

/**
 * What a trial went back for:
 * - `store-load`: its keys asked the store more often than they may
 * - `arm-errors`: their calls failed more often than those of the others
 * - `store-errors`: the store as a whole failed more often than before
 * - `breaker`: so many calls failed that they were held back
 */
export const ROLLBACK_CAUSES = ['store-load', 'arm-errors', 'store-errors', 'breaker'] as const;
export type RollbackCause = (typeof ROLLBACK_CAUSES)[number];

/** The trial's keys, and all others of the class. */
export const ARMS = ['trial', 'control'] as const;
export type ArmName = (typeof ARMS)[number];

const timeMs = z.int().min(0).max(8.64e15);
const ratio = z.number().min(0).max(1);

/** What the what-if model says of a time. */
const predictedSchema = z.object({ hitRatio: ratio, storeCallsPerRead: ratio });
export type Predicted = z.output<typeof predictedSchema>;

const endSchema = z.object({
  /** By time, by an operator, by itself because it did harm, or by an operator who wants it for all keys. */
  state: z.enum(['ended', 'stopped', 'rolled-back', 'adopted']),
  /** Set where it was rolled back. */
  cause: z.enum(ROLLBACK_CAUSES).nullable(),
  /** In words, for people; null where there is nothing to say. */
  reason: z.string().nullable(),
  atMs: timeMs,
  /** Which process has ended it. */
  writer: z.string(),
  /** As they were then. */
  controlFreshMs: z.number().min(0),
  predicted: z.object({ trial: predictedSchema.nullable(), control: predictedSchema.nullable() }),
});

export type TrialEnd = Readonly<z.output<typeof endSchema>>;

const limitsSchema = z.object({
  /** How many times as often as the others its keys may ask the store. */
  maxStoreLoad: z.number().min(1),
  /** By how much more the share of calls that fail may be, 0 to 1. */
  maxErrors: ratio,
});

export type TrialLimits = Readonly<z.output<typeof limitsSchema>>;

/** As it is kept and handed from process to process. */
export const trialSchema = z.object({
  id: z.string(),
  class: z.enum(CACHE_CLASSES),
  freshMs: z.number().min(0),
  /** What was in force when it began. */
  controlFreshMs: z.number().min(0),
  /** Of the class's keys, 0 to 1. */
  share: ratio,
  limits: limitsSchema,
  startedAtMs: timeMs,
  startedBy: z.string(),
  untilMs: timeMs,
  /** Null while nobody has ended it; past `untilMs` it is over all the same. */
  end: endSchema.nullable(),
});

export type Trial = Readonly<z.output<typeof trialSchema>>;

/** A trial with how it has ended. */
export type EndedTrial = Trial & { readonly end: TrialEnd };

/** What an operator asks for. */
export interface TrialPlan {
  readonly class: CacheClass;
  readonly freshMs: number;
  readonly share: number;
  readonly forMs: number;
  readonly limits: TrialLimits;
}

/** Whether it rules its keys, by the clock that tells that time. */
export function isRunning({ end, untilMs }: Pick<Trial, 'end' | 'untilMs'>, nowMs: number): boolean {
  return end === null && nowMs < untilMs;
}
