/**
 * The messages between the first process and its workers. Both ends check what arrives: it may be of another release
 * for a moment, if the files of the program were replaced under a running one.
 */
import { z } from 'zod';
import { type ImportedKey, parseImportedKey } from '../keys/key.ts';

/** The texts of configuration files, by path. They hold secrets: never passed by arguments or environment variables. */
export const filesSchema = z.record(z.string(), z.string());

const configFaultsSchema = z.array(
  z.object({ name: z.string(), given: z.string().nullable(), problem: z.string().nullable(), allowed: z.string() }),
);
const secretFaultsSchema = z.array(z.object({ name: z.string(), problem: z.string() }));

/** The configuration and the sample that a worker starts with. */
export const startSchema = z.object({
  /** The files that the configuration was read from when the gateway was started. */
  files: filesSchema,
  /** The files of the last reload, for the settings that change while it runs; null if there was none. */
  reloaded: filesSchema.nullable(),
  secretFaults: secretFaultsSchema,
  /** The sample store that all workers share; null in front of a real store. */
  sample: z
    .object({
      url: z.string(),
      token: z.string(),
      keys: z.array(z.unknown().transform((key): ImportedKey => parseImportedKey(key))),
    })
    .nullable(),
});

const dependenciesSchema = z.array(
  z.object({
    name: z.string(),
    status: z.enum(['ok', 'degraded', 'unknown']),
    since: z.string(),
    detail: z.string(),
    severity: z.enum(['warning', 'critical']).exactOptional(),
    deadline: z.string().exactOptional(),
  }),
);

const statusSchema = z.object({
  /** How many workers answer, of how many there are to be, since when (Unix milliseconds). */
  ready: z.int(),
  wanted: z.int(),
  sinceMs: z.number(),
  /** Those that were ready and do not answer any more. */
  silent: z.array(z.object({ worker: z.int(), pid: z.int() })),
  /** The last report of each worker that answers: how its dependencies are doing. */
  dependencies: z.array(dependenciesSchema),
  /** Whether Redis has ever answered one of them. */
  hasRedisAnswered: z.boolean(),
});

const reportSchema = z.enum(['metrics', 'counts']);

/** Messages of the first process to a worker. */
export const toWorkerSchema = z.discriminatedUnion('kind', [
  /** `payload` is of `startSchema`; a worker that cannot read it ends. */
  z.object({ kind: z.literal('start'), payload: z.unknown() }),
  /** `files` are of `filesSchema`. */
  z.object({ kind: z.literal('reload'), files: z.unknown() }),
  /**
   * The findings of a look at the files of secrets. `files` are of `filesSchema`, null if none has changed. Only one worker
   * is sent what has changed: it audits it for all.
   */
  z.object({
    kind: z.literal('secrets'),
    files: z.unknown(),
    changed: z.array(z.string()),
    faults: secretFaultsSchema,
  }),
  /** The configuration was read again and is invalid; sent to one worker, which counts and reports it for all. */
  z.object({ kind: z.literal('reload-failed'), faults: configFaultsSchema }),
  z.object({ kind: z.literal('drain'), delayMs: z.number().min(0) }),
  z.object({ kind: z.literal('status'), status: statusSchema }),
  /** To be answered with a pong at once. */
  z.object({ kind: z.literal('ping') }),
  z.object({ kind: z.literal('report'), id: z.int(), what: reportSchema }),
  /** The metrics of all workers as one text, or a list of their counts. */
  z.object({ kind: z.literal('all-reports'), id: z.int(), value: z.unknown() }),
]);

/** Messages of a worker to the first process. */
export const fromWorkerSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('hello') }),
  z.object({ kind: z.literal('ready'), publicUrl: z.string(), adminUrl: z.string() }),
  /** Redis has answered this worker for the first time. */
  z.object({ kind: z.literal('redis-answered') }),
  /** It can't start as it is configured; the message is for the operator. */
  z.object({ kind: z.literal('failed'), message: z.string() }),
  z.object({ kind: z.literal('pong'), dependencies: dependenciesSchema }),
  /** Wants the files of secrets to be read again, and is answered with `secrets` in any case. */
  z.object({ kind: z.literal('look-at-secrets') }),
  /** The worker's own metrics, as prom-client hands them from process to process, or its counts. */
  z.object({ kind: z.literal('report'), id: z.int(), value: z.unknown() }),
  z.object({ kind: z.literal('request-reports'), id: z.int(), what: reportSchema }),
]);

export type StartPayload = Readonly<z.infer<typeof startSchema>>;
export type WorkersStatus = Readonly<z.infer<typeof statusSchema>>;
export type ToWorker = z.infer<typeof toWorkerSchema>;
export type FromWorker = z.infer<typeof fromWorkerSchema>;
