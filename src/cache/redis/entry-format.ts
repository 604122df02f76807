/**
 * An entry as it is kept in Redis: a hash of `meta`, JSON that is small enough to be read alone, and `body`, the record's
 * bytes. Anything that is read back is checked as strictly as the store's answers: anybody may have written it.
 */
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress, zstdDecompressSync } from 'node:zlib';
import { z } from 'zod';
import { CacheNames } from '../../redis/names.ts';
import { CLOCK_TOLERANCE_MS } from '../../time/clock.ts';
import { parseJson as parseExactJson } from '../../upstream/json.ts';
import { RESOURCE_KINDS, type ResourceKind, RESOURCES } from '../../upstream/resources.ts';
import type { Absent, Found } from '../../upstream/store.ts';
import { classOf, Entry, type FetchStamp, type StoredEntry } from '../entry.ts';
import { type Tagged, tagSchema } from '../purge-log.ts';
import type { Address } from '../address.ts';
import { isOfAddress } from '../request.ts';
import { TTL_NAMES, type TtlPolicy, type TtlState } from '../ttl-policy.ts';
import { type RecordCipher, UndecryptableError } from './encryption.ts';

/** Goes up with every change that an older release could not read, together with KEY_VERSION in request.ts. */
const ENTRY_VERSION = 3;
const NO_BYTES = Buffer.alloc(0);

/** Null for what is not JSON of that form. */
export function parseJson<S extends z.ZodType>(schema: S, text: string): z.output<S> | null {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

const answerSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('found'),
    etag: z.string().nullable(),
    bytes: z.int().nonnegative(),
    coding: z.enum(['identity', 'zstd']),
    decodedBytes: z.int().nonnegative(),
    /** The key with which the body is encrypted, after it was coded; none if it is not. */
    keyId: z.string().optional(),
  }),
  z.object({
    kind: z.literal('absent'),
    code: z.enum(['NOT_FOUND', 'NOT_READY']),
    keyId: z.string().optional(),
    /** Authenticates all other metadata by that key, in base64. */
    seal: z.base64().optional(),
  }),
]);

const metaSchema = z.object({
  format: z.literal(ENTRY_VERSION),
  key: z.string(),
  owner: z.string(),
  kind: z.enum(RESOURCE_KINDS),
  requestedAtMs: z.int(),
  receivedAtMs: z.int(),
  tags: z.array(tagSchema).readonly(),
  position: z.object({ history: z.string(), sequence: z.int().nonnegative() }),
  answer: answerSchema,
});
type Meta = z.output<typeof metaSchema>;
type FoundMeta = Extract<Meta['answer'], { kind: 'found' }>;
type AbsentMeta = Extract<Meta['answer'], { kind: 'absent' }>;

/** A list of all workspaces of a key, with its tags, has some 15 kB. */
const MAX_META_BYTES = 64 * 1024;
/** The stored form of an answer is hardly longer than the answer, unless it is of numbers such as 1e20. */
const MAX_GROWTH = 2;

/** An entry as scripts write it. They read the two times and `position` of `meta`. */
export interface EncodedEntry {
  readonly meta: string;
  readonly body: Buffer;
  readonly keepMs: number;
  /** How long a copy is kept that came in a list, and that nobody reads alone. */
  readonly briefMs: number;
}

/** For those who wait for it: an entry of a class whose TTLs are all 0 is kept so long, too. */
const LEAST_KEPT_MS = 5000;
const MAX_KEPT_MS = 30 * 24 * 60 * 60 * 1000;
/** Later than any other time. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/**
 * How long Redis keeps an entry: `longestMs` from its fill, but not past `untilMs` (Unix milliseconds), when the last TTL
 * that was set for a while has ended; from then on `lastingMs` from its fill.
 */
export interface Retention {
  readonly lastingMs: number;
  readonly longestMs: number;
  readonly untilMs: number;
}

/**
 * Longer than an entry is served: past its TTLs its validator may still save a transfer. The TTLs in force when it is
 * read decide what it is worth; this only clears away what nobody reads any more.
 */
export function retentionOf({ ttl, set, afterwards }: TtlState): Retention {
  const ends = Object.values(set).filter((endMs) => endMs !== null);
  // TTLs that are set for a while may end one after the other, so each name counts with the longer of its two.
  const longest = TTL_NAMES.map((name) => Math.max(ttl[name], afterwards[name]));
  return {
    lastingMs: keptMs(TTL_NAMES.map((name) => afterwards[name])),
    longestMs: keptMs(longest),
    untilMs: ends.length === 0 ? NEVER_MS : Math.max(...ends),
  };
}

function keptMs(ttls: readonly number[]): number {
  const wholeMs = ttls.reduce((sum, ms) => sum + ms, 0);
  return Math.min(MAX_KEPT_MS, Math.max(LEAST_KEPT_MS, wholeMs));
}

/** The place of an entry in Redis. */
export interface EntryPlace extends Address {
  /** Its name there. */
  readonly name: string;
}

interface FoundFields {
  readonly kind: ResourceKind;
  readonly answer: FoundMeta;
  readonly bytes: Buffer;
}

export interface EntryFormatOptions {
  readonly names: CacheNames;
  readonly cipher: RecordCipher;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  /** The longest answer of the store that is accepted (`upstream.maxResponse`). */
  readonly maxAnswerBytes: number;
  /** Called for something that can't be read and so counts as no entry; with an UndecryptableError if no key can read it. */
  readonly onBroken: (error: Error) => void;
}

/** Where the entries of one store are, how they are written and how they are read. */
export class EntryFormat {
  readonly #options: EntryFormatOptions;

  constructor(options: EntryFormatOptions) {
    this.#options = options;
  }

  get names(): CacheNames {
    return this.#options.names;
  }

  copyAt({ key, owner }: Address): EntryPlace {
    return { key, owner, name: this.names.of(key).copy(owner) };
  }

  /** `owner` is the set of the readers. */
  negativeAt({ key, owner }: Address): EntryPlace {
    return { key, owner, name: this.names.of(key).negative(owner) };
  }

  async encode({ key, owner, name }: EntryPlace, stored: StoredEntry): Promise<EncodedEntry> {
    const { cipher, ttl } = this.#options;
    const { kind, entry, tags, position, receivedAtMs } = stored;
    const state = ttl.stateOf(classOf(kind, entry));
    const { lastingMs, longestMs, untilMs } = retentionOf(state);
    const keepMs = Math.max(lastingMs, Math.min(longestMs, untilMs - receivedAtMs));
    const briefMs = Math.min(keepMs, keptMs([state.ttl.freshMs, state.ttl.staleMs]));
    const about = {
      format: ENTRY_VERSION,
      key,
      owner,
      kind,
      requestedAtMs: entry.requestedAtMs,
      receivedAtMs,
      tags,
      position,
    } as const;
    const write = (answer: Meta['answer']): string => JSON.stringify({ ...about, answer } satisfies Meta);
    const { keyId } = cipher;
    if (entry.answer.kind === 'absent') {
      const none = { body: NO_BYTES, keepMs, briefMs };
      if (keyId === null) return { meta: write(entry.answer), ...none };
      const answer = { ...entry.answer, keyId };
      const seal = cipher.encrypt(keyId, NO_BYTES, { name, meta: write(answer) }).toString('base64');
      return { meta: write({ ...answer, seal }), ...none };
    }
    const { record, etag, bytes } = entry.answer;
    const plain = Buffer.from(JSON.stringify(record));
    const isCompressed = plain.length >= COMPRESS_FROM_BYTES;
    const coding = isCompressed ? 'zstd' : 'identity';
    const body = isCompressed ? await compress(plain) : plain;
    const found = { kind: 'found', etag, bytes, coding, decodedBytes: plain.length } as const;
    if (keyId === null) return { meta: write(found), body, keepMs, briefMs };
    const meta = write({ ...found, keyId });
    return { meta, body: cipher.encrypt(keyId, body, { name, meta }), keepMs, briefMs };
  }

  /** The entry in `meta`, `body` and `changed` of its hash; null if there is none, or if it is broken, which is reported. */
  async decode(
    place: EntryPlace,
    [metaField, body, changed]: readonly unknown[],
    onBroken = this.#options.onBroken,
  ): Promise<StoredEntry | null> {
    const { key, owner } = place;
    if (!Buffer.isBuffer(metaField)) return null;
    try {
      if (metaField.length > MAX_META_BYTES) throw new RangeError('its metadata are too long');
      const meta = metaField.toString();
      const { kind, requestedAtMs, receivedAtMs, tags, position, answer, ...about } = metaSchema.parse(
        JSON.parse(meta),
      );
      if (about.key !== key || about.owner !== owner)
        throw new RangeError(`it is the entry of ${about.key} ${about.owner}`);
      if (answer.kind === 'found' && !Buffer.isBuffer(body)) return null;
      const bytes = Buffer.isBuffer(body) ? body : NO_BYTES;
      const read =
        answer.kind === 'absent'
          ? this.#readAbsent(answer, meta, place)
          : await this.#readFound({ kind, answer, bytes }, meta, place);
      const entry = { kind, owner, entry: new Entry(read, requestedAtMs), tags, position, receivedAtMs };
      if (!Buffer.isBuffer(changed)) return entry;
      return { ...entry, changed: changed.toString() === 'announced' ? 'announced' : 'shown' };
    } catch (error) {
      onBroken(asBroken(key, error));
      return null;
    }
  }

  /** An entry without its record; null, and reported, if it is broken. */
  decodeTagged(meta: string): (Tagged & FetchStamp) | null {
    try {
      const { tags, position, requestedAtMs, receivedAtMs } = metaSchema.parse(JSON.parse(meta));
      return { tags, position, requestedAtMs, receivedAtMs };
    } catch (error) {
      this.#options.onBroken(asBroken('an unknown key', error));
      return null;
    }
  }

  /** Throws UndecryptableError. The seal is the last of the metadata that it is made of. */
  #readAbsent({ code, keyId, seal = '' }: AbsentMeta, meta: string, { name }: EntryPlace): Absent {
    const { cipher } = this.#options;
    cipher.open(keyId, Buffer.from(seal, 'base64'), { name, meta: meta.replace(`,"seal":"${seal}"`, '') });
    return { kind: 'absent', code };
  }

  /** Rejects if it is no record of that key, or one that the store could not have sent. Takes its time in steps. */
  async #readFound(
    { kind, answer, bytes }: FoundFields,
    meta: string,
    { key, owner, name }: EntryPlace,
  ): Promise<Found<unknown>> {
    const { cipher, maxAnswerBytes } = this.#options;
    if (Math.max(answer.bytes, answer.decodedBytes / MAX_GROWTH, bytes.length / MAX_GROWTH) > maxAnswerBytes) {
      throw new RangeError(`it is of an answer larger than ${maxAnswerBytes} bytes`);
    }
    const plain = await decodeBody(answer, cipher.open(answer.keyId, bytes, { name, meta }));
    const resource = RESOURCES[kind];
    const validation = await resource.validate(await parseExactJson(plain, resource));
    if (!validation.ok) throw new RangeError(`wrong at ${validation.path}`);
    const { record } = validation;
    if (!isOfAddress(kind, { key, owner }, record)) throw new RangeError('the record is of another id or workspace');
    // Memory is reckoned by it, so it is not believed to be less than what is there.
    return { kind: 'found', record, etag: answer.etag, bytes: Math.max(answer.bytes, plain.length) };
  }
}

/**
 * A list of ten records is 6 kB, and a third of that compressed. But lists read from Redis as fast as possible made two
 * full collections a second when each was decompressed, and almost none when not. Zstandard at its default level is as
 * small as gzip for a page of records in a quarter of its time.
 */
const COMPRESS_FROM_BYTES = 16 * 1024;
/** Up to here decompressing takes less time than parsing the result, and less than a hop to the thread pool. */
const DECOMPRESS_AT_ONCE_BYTES = 256 * 1024;

const compress = promisify(zstdCompress);
const decompress: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer> = promisify(zstdDecompress);

/** Rejects if the bytes are not what was encoded. Never yields more than they are said to hold. */
async function decodeBody({ coding, decodedBytes }: FoundMeta, bytes: Buffer): Promise<Buffer> {
  const plain = coding === 'identity' ? bytes : await decompressed(bytes, decodedBytes);
  if (plain.length !== decodedBytes) throw new RangeError(`${plain.length} bytes instead of ${decodedBytes}`);
  return plain;
}

async function decompressed(bytes: Buffer, maxOutputLength: number): Promise<Buffer> {
  if (maxOutputLength <= DECOMPRESS_AT_ONCE_BYTES) return zstdDecompressSync(bytes, { maxOutputLength });
  return await decompress(bytes, { maxOutputLength });
}

/** Names no values: a broken entry may be somebody's record. */
function asBroken(key: string, cause: unknown): Error {
  if (cause instanceof UndecryptableError) return cause;
  return new Error(`what is stored of ${key} is no entry: ${reasonOf(cause)}`);
}

function reasonOf(cause: unknown): string {
  if (cause instanceof z.ZodError) return `wrong at ${cause.issues[0]?.path.join('.') ?? 'its root'}`;
  if (cause instanceof SyntaxError) return 'it is not JSON';
  return cause instanceof Error ? cause.message : String(cause);
}

/**
 * Fields of a hash, so that what is known of an entry can be read without its record: `meta`, `body`, `by`, the API key whose
 * read has brought it, `changed`, of a copy from before a change that is forgotten: `announced` or `shown`; and `whole`, of a
 * copy that came in a list and was never read alone: until when it is kept once it is (`use`), Unix milliseconds. `read`
 * returns the members that scripts compare by; nil for what is no entry. `isFromFuture` goes by Redis's clock (C9: it judges
 * between those of the gateways): what is from the future beats nothing. `isLater` compares times of requests, as its twin
 * in ../entry.ts does.
 */
export const ENTRY_LUA = `
local function keepAtLeast(key, keepMs)
  if redis.call('PTTL', key) < tonumber(keepMs) then redis.call('PEXPIRE', key, keepMs) end
end
local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function write(key, meta, body, keepMs, by, briefMs)
  redis.call('DEL', key)
  redis.call('HSET', key, 'meta', meta, 'body', body, 'by', by)
  redis.call('PEXPIRE', key, briefMs or keepMs)
  if briefMs then redis.call('HSET', key, 'whole', string.format('%.0f', nowMs() + keepMs)) end
end
local function use(key)
  local wholeAtMs = redis.call('HGET', key, 'whole')
  if not wholeAtMs then return end
  redis.call('HDEL', key, 'whole')
  redis.call('PEXPIREAT', key, wholeAtMs)
end
local function read(key)
  local text = redis.pcall('HGET', key, 'meta')
  if type(text) ~= 'string' then return nil end
  local isRead, meta = pcall(cjson.decode, text)
  if not isRead or type(meta) ~= 'table' or type(meta.position) ~= 'table' then return nil end
  if type(meta.requestedAtMs) ~= 'number' or type(meta.receivedAtMs) ~= 'number' then return nil end
  if type(meta.answer) ~= 'table' then return nil end
  return meta
end
local function isFromFuture(atMs)
  return atMs > nowMs() + ${CLOCK_TOLERANCE_MS}
end
local function isLater(atMs, thanMs)
  return atMs > thanMs and not isFromFuture(atMs)
end
`;

/** In the hash of a key's owners: there is a copy. For any other owner it holds when the fetch began that ended its copies. */
export const HAS_COPY = 'copy';

/** The name of an entry; of a copy, also that of its key's owners. */
export function withOwners(name: string): readonly string[] {
  const copy = CacheNames.copyIn(name);
  return copy === null ? [name] : [name, copy.owners];
}
