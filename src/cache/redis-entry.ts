/**
 * An entry as it lies in Redis: what is known of the record as JSON, small enough to be read alone, and the record's
 * bytes beside it. What is read back is checked as strictly as what the store sends: anybody may have written it.
 */
import { z } from 'zod';
import {
  dealInsightsSchema,
  evaluationSchema,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
} from '../domain/records.ts';
import type { ResourceKind } from '../upstream/resources.ts';
import type { Absent, Found } from '../upstream/store.ts';
import { singleKey } from './cache-key.ts';
import { Entry } from './entry.ts';
import type { Tagged } from './ports.ts';
import { BODY_CODINGS, decodeBody, encodeBody } from './redis-body.ts';
import type { StoredEntry } from './stored.ts';
import type { Tag } from './tags.ts';
import { CACHE_CLASSES } from './ttl-policy.ts';

/** Goes up with every change of this file that an older release could not read. */
const FORMAT = 1;
const NO_BYTES = Buffer.alloc(0);

export interface EncodedEntry {
  /** JSON. Scripts read `filledAtMs`, `fetchedAtMs` and `position` of it. */
  readonly meta: string;
  readonly body: Buffer;
}

/** What lies there is no entry of that key. It counts as nothing. */
export class BrokenEntryError extends Error {
  override readonly name = 'BrokenEntryError';
}

const TAG_NAMES = ['workspace:', 'evaluation:', 'scorecard:', 'lists-of:'] as const;
const CLASS_TAGS: ReadonlySet<string> = new Set(CACHE_CLASSES.map((name) => `class:${name}`));

/** Of stored entries, and of purges. */
export const tagSchema = z.custom<Tag>(
  (value) =>
    typeof value === 'string' &&
    (value === 'all' || CLASS_TAGS.has(value) || TAG_NAMES.some((name) => value.startsWith(name))),
  'expected a tag',
);

const recordSchemas = {
  list: z.object({ items: z.array(evaluationSchema), total: z.int().nonnegative() }),
  evaluation: evaluationSchema,
  transcript: transcriptSchema,
  scorecard: scoredCardSchema,
  dealInsights: dealInsightsSchema,
  rubric: scorecardSchema,
} satisfies Record<ResourceKind, z.ZodType>;

const answerSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('found'),
    etag: z.string().nullable(),
    bytes: z.int().nonnegative(),
    coding: z.enum(BODY_CODINGS),
    decodedBytes: z.int().nonnegative(),
  }),
  z.object({ kind: z.literal('absent'), code: z.enum(['NOT_FOUND', 'NOT_READY']) }),
]);

const metaSchema = z.object({
  format: z.literal(FORMAT),
  key: z.string(),
  kind: z.enum(['list', 'evaluation', 'transcript', 'scorecard', 'dealInsights', 'rubric']),
  filledAtMs: z.int(),
  fetchedAtMs: z.int(),
  tags: z.array(tagSchema).readonly(),
  position: z.object({ history: z.string(), sequence: z.int().nonnegative() }),
  answer: answerSchema,
});
type Meta = z.output<typeof metaSchema>;

export async function encodeEntry(key: string, stored: StoredEntry): Promise<EncodedEntry> {
  const { kind, entry, tags, position, fetchedAtMs } = stored;
  const about = { format: FORMAT, key, kind, filledAtMs: entry.filledAtMs, fetchedAtMs, tags, position } as const;
  const write = (answer: Meta['answer']): string => JSON.stringify({ ...about, answer } satisfies Meta);
  if (entry.answer.kind === 'absent') return { meta: write(entry.answer), body: NO_BYTES };
  const { record, etag, bytes } = entry.answer;
  const { coding, decodedBytes, bytes: body } = await encodeBody(record);
  return { meta: write({ kind: 'found', etag, bytes, coding, decodedBytes }), body };
}

/** Rejects with a BrokenEntryError. */
export async function decodeEntry(key: string, { meta, body }: EncodedEntry): Promise<StoredEntry> {
  try {
    const { kind, filledAtMs, fetchedAtMs, tags, position, answer } = parseMeta(key, meta);
    const read = answer.kind === 'absent' ? answer : await readFound({ key, kind, answer }, body);
    return { kind, entry: new Entry(read, filledAtMs), tags, position, fetchedAtMs };
  } catch (error) {
    throw asBroken(key, error);
  }
}

/** What `read` gives; undefined where it fails because what is there is no entry, which `onBroken` is told of. */
export async function unlessBroken<R>(
  read: () => R | Promise<R>,
  onBroken: (error: BrokenEntryError) => void,
): Promise<R | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof BrokenEntryError)) throw error;
    onBroken(error);
    return undefined;
  }
}

/** The entry in the two fields of its hash, as Redis gives them; undefined where there is none, or what is there is none. */
export async function readEntry(
  key: string,
  [meta, body]: readonly unknown[],
  onBroken: (error: BrokenEntryError) => void,
): Promise<StoredEntry | undefined> {
  if (!Buffer.isBuffer(meta) || !Buffer.isBuffer(body)) return undefined;
  return await unlessBroken(() => decodeEntry(key, { meta: meta.toString(), body }), onBroken);
}

/** What a purge goes by, without the record. Throws a BrokenEntryError. */
export function decodeTagged(meta: string): Tagged {
  try {
    return metaSchema.parse(JSON.parse(meta));
  } catch (error) {
    throw asBroken('an unknown key', error);
  }
}

/** When the fetch that filled it began, Unix milliseconds. Throws a BrokenEntryError. */
export function decodeFilledAtMs(key: string, meta: string): number {
  try {
    return parseMeta(key, meta).filledAtMs;
  } catch (error) {
    throw asBroken(key, error);
  }
}

function parseMeta(key: string, text: string): Meta {
  const meta = metaSchema.parse(JSON.parse(text));
  if (meta.key !== key) throw new RangeError(`it is the entry of ${meta.key}`);
  return meta;
}

interface FoundMeta {
  readonly key: string;
  readonly kind: ResourceKind;
  readonly answer: Extract<Meta['answer'], { kind: 'found' }>;
}

async function readFound({ key, kind, answer }: FoundMeta, bytes: Buffer): Promise<Found<unknown> | Absent> {
  const { etag, bytes: size, coding, decodedBytes } = answer;
  const record = recordSchemas[kind].parse(await decodeBody({ coding, decodedBytes, bytes }));
  if (kind !== 'list' && singleKey(kind, idOf(record)) !== key) throw new RangeError('the record is of another id');
  return { kind: 'found', record, etag, bytes: size };
}

/** Whose record it is; lists have none. */
function idOf(record: z.output<(typeof recordSchemas)[ResourceKind]>): string {
  if ('_id' in record) return record['_id'];
  return 'evaluationId' in record ? record.evaluationId : '';
}

/** Names no values: what is broken may be somebody's record. */
function asBroken(key: string, cause: unknown): BrokenEntryError {
  return new BrokenEntryError(`what is stored of ${key} is no entry: ${reasonOf(cause)}`);
}

function reasonOf(cause: unknown): string {
  if (cause instanceof z.ZodError) return `wrong at ${cause.issues[0]?.path.join('.') ?? 'its root'}`;
  if (cause instanceof SyntaxError) return 'it is not JSON';
  return cause instanceof Error ? cause.message : String(cause);
}
