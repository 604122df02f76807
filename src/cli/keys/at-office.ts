/** Which way a command goes to the keys: to Redis where it is configured, else to the admin listener. */
import type { Command } from 'commander';
import { loadConfig } from '../../config/load.ts';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import type { Terminal } from '../terminal.ts';
import { adminOffice } from './admin-office.ts';
import type { KeyOffice } from './office.ts';

/** Adds `--admin URL` to a command of keys. */
export function withOfficeOption(command: Command, terminal: Terminal): Command {
  return withAdminOption(command, terminal).addHelpText(
    'after',
    'With REDIS_URL (or redis.url in the configuration file) it acts on Redis directly, unless --admin is given.',
  );
}

/** Does it where the keys are. Rejects with CliError, and with ConfigError where it can't be told where that is. */
export async function atKeyOffice<T>(
  command: Command,
  terminal: Terminal,
  act: (office: KeyOffice) => Promise<T>,
): Promise<T> {
  const office = await openOffice(command, terminal);
  try {
    return await act(office);
  } finally {
    await office.close();
  }
}

async function openOffice(command: Command, terminal: Terminal): Promise<KeyOffice> {
  const isAdminAsked = command.getOptionValueSource('admin') === 'cli';
  const url = isAdminAsked ? null : loadConfig({ env: terminal.env }).config.redis.url;
  if (url === null) return adminOffice(adminClientOf(command, terminal));
  // Who goes through a gateway needs no Redis client, and starts faster without.
  const { openRedisOffice } = await import('./redis-office.ts');
  return openRedisOffice({ url, warn: (warning) => terminal.err(`${warning}\n`) });
}
