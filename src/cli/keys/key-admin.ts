/** Where the commands reach the keys: in Redis if one is configured, else through the admin listener of a gateway. */
import type { Command } from 'commander';
import type { KeyView as ShownKey } from '../../admin/api.ts';
import { loadConfig } from '../../config/load.ts';
import { ID_PATTERN } from '../../domain/records.ts';
import type { ImportedKey } from '../../keys/key.ts';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import type { Terminal } from '../terminal.ts';
import { matching } from '../command.ts';
import { httpKeyAdmin } from './http-key-admin.ts';

/** A newer listener may know scopes that this program doesn't. */
export type KeyView = Omit<ShownKey, 'scopes'> & { readonly scopes: readonly string[] };

/** A key just made, with its token, which is shown this once. */
export interface IssuedKeyView {
  readonly key: KeyView;
  readonly token: string;
}

/** A request for a new key, in the words of the admin listener. */
export interface WantedKey {
  readonly name: string;
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly string[];
  readonly perMinute?: number;
  readonly perHour?: number;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

/** Changes of a key, in the words of the admin listener. Members that are left out stay as they are. */
export interface WantedEdit {
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

/** A key with its hash, as a line of an import. */
export type ExportedKey = Omit<KeyView, 'lastUsedAt'> & { readonly hash: string };

/** Every method rejects with CliError, in the same words for Redis and the listener. */
export interface KeyAdmin {
  create(wanted: WantedKey): Promise<IssuedKeyView>;
  list(): Promise<readonly KeyView[]>;
  show(keyId: string): Promise<KeyView>;
  edit(keyId: string, edit: WantedEdit): Promise<KeyView>;
  revoke(keyId: string): Promise<KeyView>;
  rotate(keyId: string, overlapMs: number): Promise<IssuedKeyView>;
  /** All keys, in the form that an import takes. Only Redis has it: hashes never leave the admin listener. */
  exportKeys(): Promise<readonly ExportedKey[]>;
  /** All or none. */
  importKeys(lines: readonly ImportLine[]): Promise<{ readonly added: number; readonly replaced: number }>;
  close(): Promise<void>;
}

/** Adds `--admin URL` to a command of keys. */
export function withKeyAdminOption(command: Command, terminal: Terminal): Command {
  return withAdminOption(command, terminal).addHelpText(
    'after',
    'With REDIS_URL (or redis.url in the configuration file) it acts on Redis directly, unless --admin is given.',
  );
}

/** Adds the argument ID. A key itself is never taken for its id: it would be shown and logged. */
export function withKeyId(command: Command): Command {
  const parseId = matching(ID_PATTERN, 'the id of a key, as `evalgate keys list` shows it');
  return command.argument('<id>', 'the id of the key, not the key itself', (text) =>
    matching(/^(?!evg_)/, 'the id of the key, not the key itself')(parseId(text)),
  );
}

/** Rejects with CliError, and with ConfigError if the configuration cannot be read. */
export async function useKeyAdmin<T>(
  command: Command,
  terminal: Terminal,
  act: (admin: KeyAdmin) => Promise<T>,
): Promise<T> {
  const admin = await openKeyAdmin(command, terminal);
  try {
    return await act(admin);
  } finally {
    await admin.close();
  }
}

async function openKeyAdmin(command: Command, terminal: Terminal): Promise<KeyAdmin> {
  const isAdminGiven = command.getOptionValueSource('admin') === 'cli';
  const url = isAdminGiven ? null : loadConfig({ env: terminal.env }).config.redis.url;
  if (url === null) return httpKeyAdmin(adminClientOf(command, terminal));
  // A command that goes through a gateway needs no Redis client, and starts faster without.
  const { openRedisKeyAdmin } = await import('./redis-key-admin.ts');
  return openRedisKeyAdmin({ url, warn: (warning) => terminal.err(`${warning}\n`) });
}
