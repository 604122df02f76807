/**
 * Keys in Redis itself, by the rules of the admin listener; no gateway needs to run. Running gateways notice every change at
 * once, and show it in their audit and log.
 */
import { userInfo } from 'node:os';
import type { z } from 'zod';
import type { IssuedKeyView, KeyView, ReadonlyDeep, ShownKeyView } from '../../operations/answers.ts';
import { Audit } from '../../operations/audit.ts';
import { keyEditBody, newKeyBody } from '../../operations/bodies.ts';
import { AdminError } from '../../operations/errors.ts';
import { mustBe } from '../../operations/input.ts';
import {
  acknowledgeLoss,
  createKey,
  editKey,
  existingKey,
  importKeys,
  keyView,
  rotateKey,
} from '../../operations/key-changes.ts';
import { exportedKey } from '../../operations/state.ts';
import { KEY_USE, keyUseOf } from '../../operations/stats/stats.ts';
import { readBuckets, bucketTimes } from '../../operations/stats/time-buckets.ts';
import { systemClock } from '../../time/clock.ts';
import {
  type ImportedCounts,
  type ImportedKey,
  InvalidKeyError,
  KeyStateError,
  RegistryUnavailableError,
} from '../../keys/key.ts';
import { RedisDirectory } from '../../keys/redis-directory.ts';
import type { RedisLink } from '../../redis/connection.ts';
import { replyCode } from '../../redis/errors.ts';
import { inOurWords } from '../admin-client.ts';
import { CliError } from '../command.ts';
import { write } from '../output.ts';
import { openAnsweringRedis } from '../redis.ts';

type LastHour = Pick<ShownKeyView['lastHour'], 'requests' | 'refused' | 'problem'>;

/** A checked line of an import: as it was written, and parsed. */
export interface ImportLine {
  /** Its place in the file, from 1. */
  readonly number: number;
  readonly written: unknown;
  readonly key: ImportedKey;
}

export interface KeyAdmin {
  create(wanted: ReadonlyDeep<z.input<ReturnType<typeof newKeyBody>>>): Promise<IssuedKeyView>;
  list(): Promise<readonly KeyView[]>;
  show(keyId: string): Promise<{ readonly key: KeyView; readonly lastHour: LastHour }>;
  /** Properties that are left out stay as they are. */
  edit(keyId: string, edit: ReadonlyDeep<z.input<ReturnType<typeof keyEditBody>>>): Promise<KeyView>;
  revoke(keyId: string): Promise<KeyView>;
  rotate(keyId: string, overlapMs: number): Promise<IssuedKeyView>;
  acknowledgeLoss(): Promise<{ readonly lostAt: string | null; readonly keys: number }>;
  /** All keys with their hashes, in the form that an import takes. Only Redis has it. */
  exportKeys(): Promise<readonly unknown[]>;
  /** All or none. A refusal names the keys by their place: `keys[0]`. */
  importKeys(lines: readonly ImportLine[]): Promise<ImportedCounts>;
}

interface RedisAccess {
  readonly url: string;
  /** Null if nobody says who acts. */
  readonly operator: string | null;
}

/** Rejects with CliError if Redis can't be used, or for what the listener would refuse too. */
export function useRedisKeys<T>(access: RedisAccess, act: (admin: KeyAdmin) => Promise<T>): Promise<T> {
  return useStateRedis(access, (link, who) => act(redisKeyAdmin(link, who)));
}

/** The same for any change of the state Redis, by `who`. */
export async function useStateRedis<T>(
  { url, operator }: RedisAccess,
  act: (link: RedisLink, who: string) => Promise<T>,
): Promise<T> {
  const link = await openAnsweringRedis('state', url);
  try {
    return await act(link, operator ?? account());
  } catch (error) {
    throw explained(error);
  } finally {
    await link.close();
  }
}

/** Warns on standard error of each record that `list` leaves out. */
export function openDirectory(link: RedisLink): RedisDirectory {
  return new RedisDirectory({
    redis: link,
    clock: systemClock,
    onBrokenRecord: ({ message }) => write('stderr', `${message}. It is left out here.\n`),
  });
}

function redisKeyAdmin(link: RedisLink, who: string): KeyAdmin {
  const registry = openDirectory(link);
  // Recording never rejects. An entry that cannot be written is lost: the change stands, and a new key is still shown.
  const audit = new Audit({ link, clock: systemClock, sink: null });
  const by = { registry, audit, who };
  return {
    create: async (wanted) => createKey(by, mustBe(newKeyBody(systemClock.nowMs()), wanted)),
    list: async () => (await registry.list()).map(keyView),
    show: async (keyId) => {
      const key = keyView(await existingKey(registry, keyId));
      const times = bucketTimes(KEY_USE.stepMs, systemClock.nowMs());
      const uses = keyUseOf((await readBuckets(link, KEY_USE, times)).flat());
      const { requests = 0, refused = 0 } = uses.find((use) => use.keyId === keyId) ?? {};
      return { key, lastHour: { requests, refused, problem: null } };
    },
    edit: async (keyId, wanted) => editKey(by, keyId, mustBe(keyEditBody(systemClock.nowMs()), wanted)),
    revoke: (keyId) => editKey(by, keyId, { status: 'revoked' }),
    rotate: (keyId, overlapMs) => rotateKey(by, keyId, overlapMs),
    exportKeys: async () => (await registry.list()).map(exportedKey),
    acknowledgeLoss: () => acknowledgeLoss(by),
    importKeys: (lines) => {
      const keys = lines.map(({ key }) => key);
      return importKeys(by, keys);
    },
  };
}

/** Who acts if nobody says so: the account on this machine. */
function account(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    // In a container the user's number may have no name.
    return `cli:${process.getuid?.() ?? 'unknown'}`;
  }
}

const FULL_ADVICE =
  'Nothing was changed: raise maxmemory there or free memory. Keys can be revoked and deprecated meanwhile.';
/** A lost answer leaves open whether the change was made. */
const LOST_ADVICE =
  'The change may have been made all the same: `evalgate keys list` shows. `evalgate doctor` checks Redis.';
const READ_ADVICE = 'Try again; `evalgate doctor` checks Redis.';

/** The CliError for an error of a change; any other as it is. */
export function explained(error: unknown): unknown {
  // That of a change carries the registry's error as its cause.
  const isLostChange = error instanceof AdminError && error.cause !== undefined;
  const reason = isLostChange ? error.cause : error;
  if (reason instanceof AdminError) return new CliError(inOurWords(reason.publicMessage));
  if (reason instanceof KeyStateError || reason instanceof InvalidKeyError) return new CliError(reason.message);
  if (!(reason instanceof RegistryUnavailableError)) return error;
  const advice = isLostChange ? LOST_ADVICE : READ_ADVICE;
  return new CliError(`${reason.message}. ${replyCode(reason.cause) === 'OOM' ? FULL_ADVICE : advice}`);
}
