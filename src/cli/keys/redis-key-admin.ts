/**
 * Keys in Redis itself, by the rules of the admin listener; no gateway needs to run. Running gateways notice every change at
 * once, and show it in their audit.
 */
import { userInfo } from 'node:os';
import { isoOrNull } from '../../admin/api.ts';
import { Audit } from '../../admin/audit.ts';
import { keyEditBody, newKeyBody } from '../../admin/bodies.ts';
import { AdminError } from '../../admin/errors.ts';
import { mustBe } from '../../admin/input.ts';
import { keyCreated, keyEdited, keyRotated, keysImported, keyView } from '../../admin/key-changes.ts';
import { KEY_USE, keyUseOf } from '../../admin/stats/stats.ts';
import { readSteps, stepTimes } from '../../admin/stats/steps.ts';
import { systemClock } from '../../clock.ts';
import { type ApiKey, InvalidKeyError, type KeyEdit, KeyStateError, RegistryUnavailableError } from '../../keys/key.ts';
import { RedisKeyTable } from '../../keys/redis-table.ts';
import { KeyDirectory } from '../../keys/registry.ts';
import { replyCode } from '../../redis/connection.ts';
import { CliError } from '../command.ts';
import { openAnsweringRedis } from '../redis.ts';
import type { KeyAdmin } from './key-admin.ts';

/** Warns on standard error of each record that `list` leaves out. Rejects with CliError if Redis can't be used. */
export async function openRedisKeyAdmin(url: string): Promise<KeyAdmin> {
  const link = await openAnsweringRedis('state', url);
  const table = new RedisKeyTable({
    redis: link,
    onBrokenRecord: ({ message }) => void process.stderr.write(`${message}. It is left out here.\n`),
  });
  const registry = new KeyDirectory(table, systemClock);
  // Recording never rejects. An entry that cannot be written is lost: the change stands, and a new key is still shown.
  const audit = new Audit({ link, clock: systemClock, sink: () => {} });
  const who = caller();
  const existing = async (keyId: string): Promise<ApiKey> => (await registry.get(keyId)) ?? noKey(keyId);
  const edit = async (keyId: string, wanted: KeyEdit) => {
    const edited = (await registry.edit(keyId, wanted)) ?? noKey(keyId);
    const change = keyEdited(who, wanted, edited);
    if (change !== null) await audit.record(change);
    return keyView(edited.after);
  };
  return {
    create: (wanted) =>
      changing(async () => {
        const { key, token } = await registry.create(mustBe(newKeyBody(systemClock.nowMs()), wanted));
        await audit.record(keyCreated(who, key));
        return { key: keyView(key), token };
      }),
    list: () => reading(async () => (await registry.list()).map(keyView)),
    show: (keyId) =>
      reading(async () => {
        const key = keyView(await existing(keyId));
        const times = stepTimes(KEY_USE.stepMs, systemClock.nowMs());
        const uses = keyUseOf((await readSteps(link, KEY_USE, times)).flat());
        const { requests = 0, refused = 0 } = uses.find((use) => use.keyId === keyId) ?? {};
        return { key, lastHour: { requests, refused, problem: null } };
      }),
    edit: (keyId, wanted) => changing(async () => edit(keyId, mustBe(keyEditBody(systemClock.nowMs()), wanted))),
    revoke: (keyId) => changing(() => edit(keyId, { status: 'revoked' })),
    rotate: (keyId, overlapMs) =>
      changing(async () => {
        const before = await existing(keyId);
        const { key: successor, token } = (await registry.rotate(keyId, overlapMs)) ?? noKey(keyId);
        // The successor is shown even if this fails.
        const after = (await registry.get(keyId).catch(() => null)) ?? before;
        await audit.record(keyRotated(who, { before, after, successor }));
        return { key: keyView(successor), token };
      }),
    exportKeys: () => reading(async () => (await registry.list()).map(exportedKey)),
    importKeys: (lines) =>
      changing(async () => {
        const keys = lines.map(({ key }) => key);
        const counts = await registry.importKeys(keys);
        await audit.record(keysImported(who, keys, counts));
        return counts;
      }),
    close: () => link.close(),
  };
}

/** The caller's name in the audit: the account on this machine. */
function caller(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    // In a container the user's number may have no name.
    return `cli:${process.getuid?.() ?? 'unknown'}`;
  }
}

/** A line of an import. */
function exportedKey(key: ApiKey): unknown {
  const { keyId, lastUsedAt: _, ...rest } = keyView(key);
  const { hash, ownExpiresAtMs } = key;
  return { keyId, hash, ...rest, ...(ownExpiresAtMs === undefined ? {} : { ownExpiresAt: isoOrNull(ownExpiresAtMs) }) };
}

function noKey(keyId: string): never {
  throw new CliError(`There is no key with the id ${keyId}. \`evalgate keys list\` shows the ids.`);
}

const reading = explaining('Try again; `evalgate doctor` checks Redis.');
/** A lost answer leaves open whether the change was made. */
const changing = explaining(
  'The change may have been made all the same: `evalgate keys list` shows. `evalgate doctor` checks Redis.',
);
const FULL_ADVICE =
  'Nothing was changed: raise maxmemory there or free memory. Keys can be revoked and deprecated meanwhile.';

/** `advice`: what to do if Redis could not be asked. */
function explaining(advice: string) {
  return async <T>(act: () => Promise<T>): Promise<T> => {
    try {
      return await act();
    } catch (error) {
      if (error instanceof AdminError) throw new CliError(error.publicMessage);
      if (error instanceof KeyStateError || error instanceof InvalidKeyError) throw new CliError(error.message);
      if (!(error instanceof RegistryUnavailableError)) throw error;
      throw new CliError(`${error.message}. ${replyCode(error.cause) === 'OOM' ? FULL_ADVICE : advice}`);
    }
  };
}
