/**
 * What the first process and its workers say to each other. Both ends check what arrives: it may be of another release
 * for a moment, where the files of the program were replaced under a running one.
 */
import { z } from 'zod';

/** What a gateway is started with, and its answers to questions, are known only to those who hand them in. */
const payload = z.unknown();

/** How many workers are ready, of how many there are to be, since when (Unix milliseconds). */
const standingSchema = z.object({ ready: z.int(), wanted: z.int(), sinceMs: z.number() });

const toWorkerSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('start'), payload }),
  z.object({ kind: z.literal('reload'), payload }),
  /** The configuration was read again and is invalid; told to one worker, which counts it for all. */
  z.object({ kind: z.literal('reload-failed') }),
  z.object({ kind: z.literal('drain'), delayMs: z.number().min(0) }),
  z.object({ kind: z.literal('standing'), standing: standingSchema }),
  /** The worker is to answer for itself. */
  z.object({ kind: z.literal('question'), id: z.int(), topic: z.string() }),
  /** What came of the worker's own question to all. */
  z.object({ kind: z.literal('summary'), id: z.int(), value: payload }),
]);

const toPrimarySchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('hello') }),
  z.object({ kind: z.literal('ready'), publicUrl: z.string(), adminUrl: z.string() }),
  /** It can't start as it is configured; the message is for the operator. */
  z.object({ kind: z.literal('failed'), message: z.string() }),
  /** The worker wants to know something of all workers. */
  z.object({ kind: z.literal('ask'), id: z.int(), topic: z.string() }),
  z.object({ kind: z.literal('answer'), id: z.int(), value: payload }),
]);

export type Standing = Readonly<z.infer<typeof standingSchema>>;
export type ToWorker = z.infer<typeof toWorkerSchema>;
export type ToPrimary = z.infer<typeof toPrimarySchema>;

/** Null for anything else. */
export function readToWorker(message: unknown): ToWorker | null {
  return toWorkerSchema.safeParse(message).data ?? null;
}

/** Null for anything else. */
export function readToPrimary(message: unknown): ToPrimary | null {
  return toPrimarySchema.safeParse(message).data ?? null;
}
