/**
 * Keys in Redis itself, by the rules of the admin listener; no gateway needs to run. Running gateways notice every change at
 * once, and show it in their audit.
 */
import { userInfo } from 'node:os';
import type { KeyView } from '../../admin/answers.ts';
import { isoOrNull } from '../../admin/api.ts';
import { Audit, type AuditedChange } from '../../admin/audit.ts';
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
import { type RedisLink, replyCode } from '../../redis/connection.ts';
import { CliError } from '../command.ts';
import { openAnsweringRedis } from '../redis.ts';
import type { KeyAdmin, ShownKey } from './key-admin.ts';

const FULL_ADVICE =
  'Nothing was changed: raise maxmemory there or free memory. Keys can be revoked and deprecated meanwhile.';

/** Warns on standard error of each record that `list` leaves out. Rejects with CliError if Redis can't be used. */
export async function openRedisKeyAdmin(url: string): Promise<KeyAdmin> {
  const link = await openAnsweringRedis('state', url);
  const table = new RedisKeyTable({
    redis: link,
    onBrokenRecord: ({ message }) => void process.stderr.write(`${message}. It is left out here.\n`),
  });
  const registry = new KeyDirectory(table, systemClock);
  const audit = new Audit({ link, clock: systemClock, sink: () => {} });
  return { ...keyAdminOf(registry, audit, () => readKeyUse(link)), close: () => link.close() };
}

/** The use of keys in the last hour, as all gateway processes have counted it. */
async function readKeyUse(link: RedisLink): Promise<(keyId: string) => ShownKey['lastHour']> {
  const times = stepTimes(KEY_USE.stepMs, systemClock.nowMs());
  const steps = await readSteps(link, KEY_USE, times);
  const uses = keyUseOf(steps.flat());
  return (sought) => {
    const { requests, refused } = uses.find(({ keyId }) => keyId === sought) ?? { requests: 0, refused: 0 };
    return { requests, refused, problem: null };
  };
}

function keyAdminOf(
  registry: KeyDirectory,
  audit: Audit,
  keyUse: () => Promise<(keyId: string) => ShownKey['lastHour']>,
): Omit<KeyAdmin, 'close'> {
  const who = caller();
  // Recording never rejects. An entry that cannot be written is lost: the change stands, and a new key is still shown.
  const note = (change: AuditedChange | null): Promise<void> | null => change && audit.record(change);
  const existing = async (keyId: string): Promise<ApiKey> => (await registry.get(keyId)) ?? noKey(keyId);
  const edit = (keyId: string, parse: () => KeyEdit): Promise<KeyView> =>
    changing(async () => {
      const wanted = parse();
      const edited = (await registry.edit(keyId, wanted)) ?? noKey(keyId);
      await note(keyEdited(who, wanted, edited));
      return keyView(edited.after);
    });
  return {
    create: (wanted) =>
      changing(async () => {
        const issued = await registry.create(mustBe(newKeyBody(systemClock.nowMs()), wanted));
        await note(keyCreated(who, issued.key));
        return { key: keyView(issued.key), token: issued.token };
      }),
    list: () => reading(async () => (await registry.list()).map((key) => keyView(key))),
    show: (keyId) =>
      reading(async () => {
        const key = keyView(await existing(keyId));
        return { key, lastHour: (await keyUse())(keyId) };
      }),
    edit: (keyId, wanted) => edit(keyId, () => mustBe(keyEditBody(systemClock.nowMs()), wanted)),
    revoke: (keyId) => edit(keyId, () => ({ status: 'revoked' })),
    rotate: (keyId, overlapMs) =>
      changing(async () => {
        const before = await existing(keyId);
        const issued = (await registry.rotate(keyId, overlapMs)) ?? noKey(keyId);
        // The successor is shown even if this fails.
        const after = await registry.get(keyId).catch(() => null);
        await note(keyRotated(who, { before, after: after ?? before, successor: issued.key }));
        return { key: keyView(issued.key), token: issued.token };
      }),
    exportKeys: () => reading(async () => (await registry.list()).map(exportedKey)),
    importKeys: (lines) =>
      changing(async () => {
        const keys = lines.map(({ key }) => key);
        const result = await registry.importKeys(keys);
        await note(keysImported(who, keys, result));
        return result;
      }),
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
  const { ownExpiresAtMs } = key;
  const own = ownExpiresAtMs === undefined ? {} : { ownExpiresAt: isoOrNull(ownExpiresAtMs) };
  return { keyId, hash: key.hash, ...rest, ...own };
}

function noKey(keyId: string): never {
  throw new CliError(`There is no key with the id ${keyId}. \`evalgate keys list\` shows the ids.`);
}

function reading<T>(act: () => Promise<T>): Promise<T> {
  return explained(act, 'Try again; `evalgate doctor` looks at Redis.');
}

/** A lost answer leaves open whether the change was made. */
function changing<T>(act: () => Promise<T>): Promise<T> {
  return explained(
    act,
    'The change may have been made all the same: `evalgate keys list` shows. `evalgate doctor` looks at Redis.',
  );
}

async function explained<T>(act: () => Promise<T>, advice: string): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof AdminError) throw new CliError(error.publicMessage);
    if (error instanceof KeyStateError || error instanceof InvalidKeyError) throw new CliError(error.message);
    if (error instanceof RegistryUnavailableError) {
      throw new CliError(`${error.message}. ${replyCode(error.cause) === 'OOM' ? FULL_ADVICE : advice}`);
    }
    throw error;
  }
}
