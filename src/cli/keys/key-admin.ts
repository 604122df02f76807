/** How the commands reach the keys: in Redis if one is configured, else through the admin listener of a gateway. */
import type { Command } from 'commander';
import { z } from 'zod';
import { looksLikeToken, type KeyView as ListedKey } from '../../admin/api.ts';
import { shownKeySchema, type ShownKeyView } from '../../admin/stats-api.ts';
import { loadConfig } from '../../config/load.ts';
import { ID_PATTERN } from '../../domain/records.ts';
import { formatDuration } from '../../duration.ts';
import { type ImportedKey, KEY_STATUSES } from '../../keys/key.ts';
import { adminAddress, type AdminRequest, callAdmin, withAdminOption } from '../admin-client.ts';
import { CliError, EXIT_CODES } from '../command.ts';

const keySchema = z.looseObject({
  keyId: z.string(),
  name: z.string(),
  status: z.enum(KEY_STATUSES),
  workspaceIds: z.array(z.string()),
  scopes: z.array(z.string()),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
  limits: z.object({ perMinute: z.number().nullable(), perHour: z.number().nullable() }),
  quotaId: z.string(),
  lastUsedAt: z.string().nullable(),
});
const shownKeyAnswer = z.object({ key: keySchema, lastHour: shownKeySchema.shape.lastHour.optional() });
const issuedKeySchema = z.object({ key: keySchema, token: z.string() });
/** A gateway of 0.1 answers with all keys at once and without a cursor. */
const pageSchema = z.object({ keys: z.array(keySchema), nextCursor: z.string().nullish() });

/** A key without its hash. A newer listener may know more scopes than this program. */
export type KeyView = Omit<ListedKey, 'scopes'> & { readonly scopes: readonly string[] };

/** A key with its requests of the last hour; null if the gateway is of a version that does not count them. */
export interface ShownKey {
  readonly key: KeyView;
  readonly lastHour: Pick<ShownKeyView['lastHour'], 'since' | 'requests' | 'refused' | 'problem'> | null;
}

/** A new key with its token, which is shown only this once. */
export interface IssuedKeyView {
  readonly key: KeyView;
  readonly token: string;
}

/** The properties of a key, in the words of the admin listener. A new key needs name, workspaces and scopes. */
export interface KeyInput {
  readonly name?: string;
  readonly status?: 'active' | 'deprecated';
  readonly workspaceIds?: readonly string[];
  readonly scopes?: readonly string[];
  /** Null: the gateway's limit. */
  readonly perMinute?: number | null;
  readonly perHour?: number | null;
  /** ISO 8601; null: never. */
  readonly expiresAt?: string | null;
}

/** A checked line of an import: as it was written, and parsed. */
export interface ImportLine {
  readonly written: unknown;
  readonly key: ImportedKey;
}

/** Every method rejects with CliError, in the same words for Redis and the listener. */
export interface KeyAdmin {
  create(wanted: KeyInput): Promise<IssuedKeyView>;
  list(): Promise<readonly KeyView[]>;
  show(keyId: string): Promise<ShownKey>;
  /** Properties that are left out stay as they are. */
  edit(keyId: string, edit: KeyInput): Promise<KeyView>;
  revoke(keyId: string): Promise<KeyView>;
  rotate(keyId: string, overlapMs: number): Promise<IssuedKeyView>;
  /** All keys with their hashes, in the form that an import takes. Only Redis has it. */
  exportKeys(): Promise<readonly unknown[]>;
  /** All or none. */
  importKeys(lines: readonly ImportLine[]): Promise<{ readonly added: number; readonly replaced: number }>;
  close(): Promise<void>;
}

/** Adds `--admin URL` to a command of keys. */
export function withKeyAdminOption(command: Command): Command {
  return withAdminOption(command).addHelpText(
    'after',
    'With REDIS_URL (or redis.url in the configuration file) it acts on Redis directly, unless --admin is given.',
  );
}

/** Adds the argument ID. */
export function withKeyId(command: Command): Command {
  return command.argument('<id>', 'the id of the key, not the key itself', parseKeyId);
}

/** Refuses the key itself in place of its id, and never repeats what was given: commander would print it. */
export function parseKeyId(text: string): string {
  if (ID_PATTERN.test(text) && !looksLikeToken(text)) return text;
  throw new CliError(
    'The id of a key is needed, as `evalgate keys list` shows it, not the key itself.',
    EXIT_CODES.usage,
  );
}

/** Rejects with CliError, and with ConfigError if the configuration cannot be read. */
export async function useKeyAdmin<T>(command: Command, act: (admin: KeyAdmin) => Promise<T>): Promise<T> {
  const admin = await openKeyAdmin(command);
  try {
    return await act(admin);
  } finally {
    await admin.close();
  }
}

async function openKeyAdmin(command: Command): Promise<KeyAdmin> {
  const url = adminAddress(command).isGiven ? null : loadConfig({ env: process.env }).config.redis.url;
  if (url === null) return httpKeyAdmin(command);
  // A command that goes through a gateway needs no Redis client, and starts faster without.
  const { openRedisKeyAdmin } = await import('./redis-key-admin.ts');
  return openRedisKeyAdmin(url);
}

const FIRST_PAGE = '/api/keys?limit=1000';

function httpKeyAdmin(command: Command): KeyAdmin {
  const call = <T>(request: AdminRequest<T>): Promise<T> =>
    callAdmin(command, request).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error;
      // The listener names its own endpoints; the command line has a command for this one.
      const message = error.message.replace('GET /api/keys lists', '`evalgate keys list` shows');
      throw new CliError(message, error.exitCode);
    });
  const issue = (path: string, body: unknown): Promise<IssuedKeyView> =>
    call({ method: 'POST', path, body, answer: issuedKeySchema });
  const callForKey = async (method: 'GET' | 'PATCH' | 'DELETE', keyId: string, body?: unknown): Promise<KeyView> => {
    const { key } = await call({ method, path: `/api/keys/${keyId}`, body, answer: z.object({ key: keySchema }) });
    return key;
  };
  return {
    create: (wanted) => issue('/api/keys', wanted),
    list: async () => {
      const keys: KeyView[] = [];
      for (let path: string | null = FIRST_PAGE; path !== null;) {
        const page: z.output<typeof pageSchema> = await call({ method: 'GET', path, answer: pageSchema });
        keys.push(...page.keys);
        const { nextCursor } = page;
        path = typeof nextCursor === 'string' ? `${FIRST_PAGE}&cursor=${encodeURIComponent(nextCursor)}` : null;
      }
      return keys;
    },
    show: async (keyId) => {
      const path = `/api/keys/${encodeURIComponent(keyId)}`;
      const { key, lastHour = null } = await call({ method: 'GET', path, answer: shownKeyAnswer });
      return { key, lastHour };
    },
    edit: (keyId, edit) => callForKey('PATCH', keyId, edit),
    revoke: (keyId) => callForKey('DELETE', keyId),
    rotate: (keyId, overlapMs) => issue(`/api/keys/${keyId}/rotate`, { overlap: formatDuration(overlapMs) }),
    exportKeys: async () => {
      throw new CliError(
        'The hashes of keys never leave the admin listener: set REDIS_URL to the Redis of the gateways, and export from there without --admin.',
      );
    },
    importKeys: (lines) => {
      const body = { keys: lines.map(({ written }) => written) };
      const answer = z.object({ added: z.number(), replaced: z.number() });
      return call({ method: 'POST', path: '/api/keys/import', body, answer });
    },
    close: async () => {},
  };
}
