/**
 * Keys in Redis itself, by the rules of the admin listener; no gateway need run. Those that do hear of every change at
 * once. The audit is a gateway's: what is changed here is not in it.
 */
import { AdminError } from '../../admin/errors.ts';
import { mustBe } from '../../admin/faults.ts';
import { newKeyRules } from '../../admin/key-rules.ts';
import { keyView } from '../../admin/key-view.ts';
import { systemClock } from '../../clock.ts';
import {
  type IssuedKey,
  type KeyRegistry,
  KeyStateError,
  type KeyStatus,
  RegistryUnavailableError,
} from '../../keys/key.ts';
import { createRedisKeyStore } from '../../keys/redis-key-store.ts';
import { InvalidKeyError } from '../../keys/schema.ts';
import { CliError } from '../errors.ts';
import { openAnsweringRedis } from '../redis.ts';
import type { IssuedKeyView, KeyOffice, KeyView } from './office.ts';

export interface RedisOfficeOptions {
  readonly url: string;
  /** Told of records that `list` has to leave out, in whole sentences. */
  readonly warn: (warning: string) => void;
}

/** Rejects with CliError where Redis can't be used. */
export async function openRedisOffice({ url, warn }: RedisOfficeOptions): Promise<KeyOffice> {
  const link = await openAnsweringRedis({ role: 'state', url });
  const registry = createRedisKeyStore({
    client: link.client,
    clock: systemClock,
    onBrokenRecord: ({ message }) => warn(`${message}. It is left out here.`),
  });
  return { ...officeOf(registry), close: () => link.close() };
}

function officeOf(registry: KeyRegistry): Omit<KeyOffice, 'close'> {
  const setStatus = (keyId: string, status: KeyStatus): Promise<KeyView> =>
    changing(async () => keyView((await registry.setStatus(keyId, status)) ?? noKey(keyId)));
  return {
    create: (wanted) =>
      changing(async () => issuedView(await registry.create(mustBe(newKeyRules(systemClock.nowMs()), wanted)))),
    list: () => reading(async () => (await registry.list()).map((key) => keyView(key))),
    show: (keyId) => reading(async () => keyView((await registry.get(keyId)) ?? noKey(keyId))),
    deprecate: (keyId) => setStatus(keyId, 'deprecated'),
    revoke: (keyId) => setStatus(keyId, 'revoked'),
    rotate: (keyId, overlapMs) =>
      changing(async () => issuedView((await registry.rotate(keyId, overlapMs)) ?? noKey(keyId))),
    importKeys: (lines) => changing(() => registry.importKeys(lines.map(({ key }) => key))),
  };
}

function issuedView({ key, token }: IssuedKey): IssuedKeyView {
  return { key: keyView(key), token };
}

function noKey(keyId: string): never {
  throw new CliError(`There is no key with the id ${keyId}. \`evalgate keys list\` shows the ids.`);
}

function reading<T>(act: () => Promise<T>): Promise<T> {
  return told(act, 'Try again; `evalgate doctor` looks at Redis.');
}

/** An answer that is lost says nothing of whether the change was made. */
function changing<T>(act: () => Promise<T>): Promise<T> {
  return told(
    act,
    'The change may have been made all the same: `evalgate keys list` shows. `evalgate doctor` looks at Redis.',
  );
}

async function told<T>(act: () => Promise<T>, advice: string): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof AdminError) throw new CliError(error.publicMessage);
    if (error instanceof KeyStateError || error instanceof InvalidKeyError) throw new CliError(error.message);
    if (error instanceof RegistryUnavailableError) throw new CliError(`${error.message}. ${advice}`);
    throw error;
  }
}
