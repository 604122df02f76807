/** What the first process hands a worker: never through arguments or the environment, which others can read. */
import { z } from 'zod';
import type { KeptFiles } from './config/load.ts';
import { type ImportedKey } from './keys/key.ts';
import { parseImportedKey } from './keys/schema.ts';

const filesSchema = z.record(z.string(), z.string());

const sampleSchema = z.object({
  url: z.string(),
  token: z.string(),
  keys: z.array(z.unknown().transform((key): ImportedKey => parseImportedKey(key))),
});

const startSchema = z.object({
  /** Variables over those of the environment. */
  env: z.record(z.string(), z.string()),
  /** What the configuration was read from when the gateway was started. */
  files: filesSchema,
  /** What it was read from since, for what changes while it runs. */
  reloaded: filesSchema.nullable(),
  /** The sample store that all workers share; null in front of a real store. */
  sample: sampleSchema.nullable(),
});

export type StartPayload = Readonly<z.infer<typeof startSchema>>;

/** Throws ZodError for anything else. */
export function readStartPayload(payload: unknown): StartPayload {
  return startSchema.parse(payload);
}

/** The same for a new configuration. */
export function readReloadPayload(payload: unknown): KeptFiles {
  return filesSchema.parse(payload);
}
