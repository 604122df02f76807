/** Where the commands reach the keys: in Redis if one is configured, else through the admin listener of a gateway. */
import type { Command } from 'commander';
import type { KeyView as ShownKey } from '../../admin/key-view.ts';
import { loadConfig } from '../../config/load.ts';
import type { ImportedKey } from '../../keys/key.ts';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import type { Terminal } from '../terminal.ts';
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

/** A checked line of an import: as it was written, and parsed. */
export interface ImportLine {
  readonly written: unknown;
  readonly key: ImportedKey;
}

/** Every method rejects with CliError, in the same words for Redis and the listener. */
export interface KeyAdmin {
  create(wanted: WantedKey): Promise<IssuedKeyView>;
  list(): Promise<readonly KeyView[]>;
  show(keyId: string): Promise<KeyView>;
  deprecate(keyId: string): Promise<KeyView>;
  revoke(keyId: string): Promise<KeyView>;
  rotate(keyId: string, overlapMs: number): Promise<IssuedKeyView>;
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
