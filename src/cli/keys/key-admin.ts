/** How the commands reach the keys: in Redis if one is configured, else through the admin listener of a gateway. */
import type { Command } from 'commander';
import type { KeyView } from '../../operations/answers.ts';
import { ROUTES } from '../../operations/api.ts';
import { loadConfig } from '../../config/load.ts';
import { formatDuration } from '../../time/duration.ts';
import { adminAddress, adminCommand, callAdmin, operatorOf } from '../admin-client.ts';
import { CliError, type CommandTexts } from '../command.ts';
import type { KeyAdmin } from './redis-key-admin.ts';

/** A command that prints an answer, and acts on Redis if it can. */
export function keyCommand(texts: CommandTexts): Command {
  return adminCommand(texts).addHelpText(
    'after',
    'With REDIS_URL (or redis.url in the configuration file) the command acts on Redis directly, unless --admin is given.',
  );
}

/** Rejects with CliError, and with ConfigError if the configuration cannot be read. */
export async function useKeyAdmin<T>(command: Command, act: (admin: KeyAdmin) => Promise<T>): Promise<T> {
  const url = redisUrlOf(command);
  if (url === null) return act(listenerKeyAdmin(command));
  // A command that goes through a gateway needs no Redis client, and starts faster without.
  const { useRedisKeys } = await import('./redis-key-admin.ts');
  return useRedisKeys({ url, operator: operatorOf(command) }, act);
}

/** The address of the Redis that the command acts on; null if it goes through the admin listener. */
export function redisUrlOf(command: Command): string | null {
  return adminAddress(command).isGiven ? null : loadConfig({ env: process.env }).config.redis.url;
}

function listenerKeyAdmin(command: Command): KeyAdmin {
  return {
    create: (wanted) => callAdmin(command, ROUTES.createKey, { body: wanted }),
    list: async () => {
      const keys: KeyView[] = [];
      const query = new URLSearchParams({ limit: '1000' });
      for (;;) {
        const page = await callAdmin(command, ROUTES.listKeys, { query });
        keys.push(...page.keys);
        if (page.nextCursor === null) return keys;
        query.set('cursor', page.nextCursor);
      }
    },
    show: (keyId) => callAdmin(command, ROUTES.showKey, { params: { keyId } }),
    edit: async (keyId, body) => (await callAdmin(command, ROUTES.editKey, { params: { keyId }, body })).key,
    revoke: async (keyId) => (await callAdmin(command, ROUTES.revokeKey, { params: { keyId } })).key,
    rotate: (keyId, overlapMs) => {
      const body = { overlap: formatDuration(overlapMs) };
      return callAdmin(command, ROUTES.rotateKey, { params: { keyId }, body });
    },
    acknowledgeLoss: () => callAdmin(command, ROUTES.acknowledgeLoss),
    exportKeys: async () => {
      throw new CliError(
        'The hashes of keys never leave the admin listener: set REDIS_URL to the Redis of the gateways, and export from there without --admin.',
      );
    },
    importKeys: (lines) =>
      callAdmin(command, ROUTES.importKeys, { body: { keys: lines.map(({ written }) => written) } }),
  };
}
