/** API keys: what a key is, what it may do, the rules of its members, and the record that a registry stores. */
import { z } from 'zod';
import { ID_PATTERN, type Scope, SCOPES, UUID_PATTERN } from '../domain/vocabulary.ts';
import { messageOf } from '../log/error.ts';
import { canonicalSubnet } from './client-address.ts';

/** Lower-case hex SHA-256 of the whole token: the only form in which a key is ever stored (K2: no token is stored). */
export type KeyHash = string;

export const KEY_STATUSES = ['active', 'deprecated', 'revoked'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

/** The last millisecond that RFC 3339 can write. */
export const MAX_TIMESTAMP_MS = 253_402_300_799_999;
/** Counted in code points. Control characters would let a name rewrite the terminal that lists it. */
const NAME = /^(?=.*\S)[^\p{Cc}\p{Cs}]{1,100}$/u;
const SHA256_HEX = /^[0-9a-f]{64}$/;

function distinct<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

/** The rules of single members, for every form in which a key is written. Workspaces become lower case, nothing is double. */
export const keyMembers = {
  id: z.string().regex(ID_PATTERN, 'must be 1 to 64 of the characters A-Z a-z 0-9 _ -'),
  name: z.string().regex(NAME, 'must be 1 to 100 characters, without control characters, and not blank'),
  workspaceIds: z
    .array(z.string().regex(UUID_PATTERN, 'must be a UUID').describe('a UUID'))
    .min(1)
    .max(50)
    .transform((ids) => distinct(ids.map((id) => id.toLowerCase()))),
  scopes: z
    .array(z.enum(SCOPES).describe(`one of ${SCOPES.join(', ')}`))
    .min(1)
    .transform(distinct<Scope>),
  limit: z.int().min(1).max(1_000_000_000).nullable(),
  from: z
    .array(
      z
        .string()
        .transform((cidr, context) => {
          const canonical = canonicalSubnet(cidr);
          if (canonical === null) context.addIssue({ code: 'custom', message: 'must be a subnet or an address' });
          return canonical ?? z.NEVER;
        })
        .describe('a subnet or an address, such as 203.0.113.0/24, 2001:db8::/32 or 203.0.113.7'),
    )
    .min(1)
    .max(50)
    .transform(distinct<string>),
};
const { id, limit, name, workspaceIds, scopes, from } = keyMembers;
const timestamp = z.int().min(0).max(MAX_TIMESTAMP_MS);

/**
 * The record of a key, in the order in which its members are written. No defaults here: a record without its status must
 * not become active. Members that a later release adds are ignored.
 */
const recordSchema = z.object({
  // Safe to log.
  keyId: id,
  hash: z.string().regex(SHA256_HEX, 'must be a SHA-256 in lower-case hex'),
  name,
  status: z.enum(KEY_STATUSES),
  workspaceIds,
  scopes,
  createdAtMs: timestamp,
  expiresAtMs: timestamp.nullable(),
  // The key's own limits; if one is null, the gateway's applies.
  limits: z.object({ perMinute: limit, perHour: limit }),
  // Names the quota that the key draws on. A rotated key and its successor have the same one.
  quotaId: id,
  // Only of a rotated key: the expiry that it had before, which a further successor gets.
  ownExpiresAtMs: timestamp.nullable().exactOptional(),
  // Only of a key that is bound to addresses (K11: from any other it is refused).
  from: from.exactOptional(),
});
const { status, createdAtMs, expiresAtMs, limits } = recordSchema.shape;
const importedKeySchema = recordSchema.extend({
  status: status.exactOptional(),
  createdAtMs: createdAtMs.exactOptional(),
  expiresAtMs: expiresAtMs.exactOptional(),
  limits: limits.exactOptional(),
  quotaId: id.exactOptional(),
  // Null: bound to none.
  from: from.nullable().exactOptional(),
});

export interface ApiKey extends Readonly<z.output<typeof recordSchema>> {
  readonly lastUsedAtMs: number | null;
}

/** K3: the members of a key that an operator decides on. Workspaces and scopes hold nothing twice. */
export type NewKey = Pick<ApiKey, 'name' | 'workspaceIds' | 'scopes' | 'expiresAtMs' | 'limits' | 'from'>;

/** Changes of a key: members that are undefined stay as they are. `from`: null binds it to no address. */
export type KeyEdit = Optional<
  Pick<ApiKey, 'name' | 'status' | 'workspaceIds' | 'scopes' | 'expiresAtMs'> &
    ApiKey['limits'] & { readonly from: readonly string[] | null }
>;
type Optional<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

export interface EditedKey {
  readonly before: ApiKey;
  readonly after: ApiKey;
  /** For a key that was ended: false if a failover may undo it, because no replica has said in time that it has the change. */
  readonly isConfirmed: boolean | null;
}

/** A key just made. The token is shown to its owner once and stored nowhere. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly token: string;
}

/** A key from elsewhere, already hashed. Members that are left out are those of the stored key, or those of a new one. */
export type ImportedKey = Readonly<z.output<typeof importedKeySchema>>;

/** The keys of an import: new ones, those that it changed, those that were stored just so, and revoked ones, which stay so. */
export interface ImportedCounts {
  readonly added: number;
  readonly replaced: number;
  readonly unchanged: number;
  readonly leftOut: number;
}

/** The registry does not answer, so a key can be neither accepted nor refused. The message is private. */
export class RegistryUnavailableError extends Error {
  override readonly name = 'RegistryUnavailableError';
}

/** The key's state forbids the change. The message says why and what is possible, and may be shown to an operator. */
export class KeyStateError extends Error {
  override readonly name = 'KeyStateError';
}

/** The input is no key. The message names the members and the rules, and may be shown to an operator. */
export class InvalidKeyError extends Error {
  override readonly name = 'InvalidKeyError';
}

/** Whether the key may be used at that time: neither deprecated nor revoked, and not yet expired. */
export function isActive(key: ApiKey, nowMs: number): boolean {
  return key.status === 'active' && (key.expiresAtMs === null || nowMs < key.expiresAtMs);
}

export function hasScope(key: ApiKey, scope: Scope): boolean {
  return key.scopes.includes(scope);
}

export type PlaceInList = Pick<ApiKey, 'createdAtMs' | 'keyId'>;

/** Compares keys for lists: by creation, keys of the same millisecond by id. */
export function byCreation(a: PlaceInList, b: PlaceInList): number {
  if (a.createdAtMs !== b.createdAtMs) return a.createdAtMs - b.createdAtMs;
  if (a.keyId === b.keyId) return 0;
  return a.keyId < b.keyId ? -1 : 1;
}

/** Checks a hashed key that another process sends. Throws InvalidKeyError. */
export function parseImportedKey(input: unknown): ImportedKey {
  return parse(importedKeySchema, input, 'Invalid imported key');
}

function parse<T>(schema: z.ZodType<T>, input: unknown, what: string): T {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => [...path.map(String), message].join(': '));
  throw new InvalidKeyError(`${what}: ${problems.join('; ')}`);
}

const WRITTEN_MEMBERS = [recordSchema, recordSchema.shape.limits].flatMap(({ shape }) => Object.keys(shape));

/** The record of a key: JSON without the time of the last use, which changes too often to be part of it. */
export function serializeKey(key: ApiKey): string {
  return JSON.stringify(key, WRITTEN_MEMBERS);
}

/**
 * The key of a record that is stored under that hash. Throws RegistryUnavailableError for a broken record: it says neither
 * that its holder may come in nor that the key was never issued. Only the start of the hash is in the message, which is logged.
 */
export function deserializeKey(record: string, hash: KeyHash, lastUsedAtMs: number | null): ApiKey {
  try {
    const key = parse(recordSchema, JSON.parse(record), 'Invalid record');
    if (key.hash !== hash) throw new Error('it holds another hash than it is stored under');
    return { ...key, lastUsedAtMs };
  } catch (error) {
    const message = `The record of the key with the hash ${hash.slice(0, 12)}... is broken: ${messageOf(error)}`;
    throw new RegistryUnavailableError(message, { cause: error });
  }
}

/** Redis had more keys than it has: it was emptied, has evicted them, or was restored from an old copy. */
export interface KeyLoss {
  /** When a process noticed, in Unix milliseconds. */
  readonly atMs: number;
  /** How many there were. */
  readonly keys: number;
  /** How many were left. */
  readonly left: number;
  /** How many have been added since that were created after it, so that they are none of the lost ones. */
  readonly created: number;
  /** Whether an operator knows of it: then it is no trouble any more. */
  readonly isAcknowledged: boolean;
}

/** How many keys there would be if none were lost. */
export function expectedKeys({ keys, created }: KeyLoss): number {
  return keys + created;
}

/** For operators, with the time in UTC. `known`: how many keys there are now. */
export function lossText({ atMs, keys, left, created }: KeyLoss, known: number): string {
  const what = left === 0 ? 'its data' : 'keys';
  const there = Math.max(0, known - created);
  const are = there === 1 || keys === 1 ? 'is' : 'are';
  return `Redis lost ${what} at ${new Date(atMs).toISOString().slice(11, 16)}; ${there} of ${keys === 1 ? '1 key' : `${keys} keys`} ${are} left`;
}

export const LOSS_ADVICE =
  'import a backup: `evalgate state import FILE`, or acknowledge the loss: `evalgate keys acknowledge-loss`';
