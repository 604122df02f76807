/**
 * The key registry in Redis without any memory of its own: every call asks Redis. What a command line uses, and what a
 * gateway's registry is built on.
 */
import type { RedisCommands } from '../redis/connection.ts';
import type { Clock } from '../clock.ts';
import {
  type ApiKey,
  type ImportedKey,
  type IssuedKey,
  type KeyHash,
  type KeyRegistry,
  type KeyStatus,
  type NewKey,
  RegistryUnavailableError,
} from './key.ts';
import { adoptKey, issueKey, rotateKey, withStatus } from './lifecycle.ts';
import { inOrderOfCreation } from './order.ts';
import { type KeyChange, RedisKeyTable, type StoredKey } from './redis-key-table.ts';
import { InvalidKeyError, parseImportedKey, parseNewKey } from './schema.ts';

/** One script takes them all; more would hold Redis up. */
const MAX_IMPORTED = 10_000;
/** Tries of a change that others keep getting ahead of. */
const MAX_TRIES = 10;

export interface RedisKeyStoreOptions {
  /** To the state Redis. It stays its owner's to close. */
  readonly redis: RedisCommands;
  readonly clock: Clock;
  /** Told of a record that `list` had to leave out. The message is private. */
  readonly onBrokenRecord?: (error: RegistryUnavailableError) => void;
  /** Told of the keys that this process has just changed, and of the version that this made. */
  readonly onCommitted?: (hashes: readonly KeyHash[], version: string) => void;
}

interface Plan<T> {
  readonly result: T;
  readonly changes: readonly KeyChange[];
}

class RedisKeyStore implements KeyRegistry {
  readonly #options: RedisKeyStoreOptions;
  readonly #table: RedisKeyTable;

  constructor(options: RedisKeyStoreOptions) {
    this.#options = options;
    this.#table = new RedisKeyTable(options.redis);
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    return (await this.#table.read(hash))?.key ?? null;
  }

  peek(): undefined {
    return undefined;
  }

  async list(): Promise<readonly ApiKey[]> {
    const keys = await this.#table.all((error) => this.#options.onBrokenRecord?.(error));
    return keys.toSorted(inOrderOfCreation);
  }

  async get(keyId: string): Promise<ApiKey | null> {
    return (await this.#table.readById(keyId))?.key ?? null;
  }

  async create(request: NewKey): Promise<IssuedKey> {
    const parsed = parseNewKey(request);
    return this.#commit(async () => {
      const issued = issueKey(parsed, this.#options.clock.nowMs());
      return { result: issued, changes: [{ key: issued.key, from: null }] };
    });
  }

  async setStatus(keyId: string, status: KeyStatus): Promise<ApiKey | null> {
    return this.#commit(async () => {
      const stored = await this.#table.readById(keyId);
      if (stored === null) return { result: null, changes: [] };
      const changed = withStatus(stored.key, status);
      return { result: changed, changes: changed === stored.key ? [] : [{ key: changed, from: stored.text }] };
    });
  }

  async rotate(keyId: string, overlapMs: number): Promise<IssuedKey | null> {
    return this.#commit(async () => {
      const stored = await this.#table.readById(keyId);
      if (stored === null) return { result: null, changes: [] };
      const { successor, retired } = rotateKey(stored.key, this.#options.clock.nowMs(), overlapMs);
      const changes = [
        { key: retired, from: stored.text },
        { key: successor.key, from: null },
      ];
      return { result: successor, changes };
    });
  }

  async importKeys(inputs: readonly ImportedKey[]): Promise<{ readonly added: number; readonly replaced: number }> {
    if (inputs.length > MAX_IMPORTED) {
      throw new InvalidKeyError('Invalid import', [`must be at most ${MAX_IMPORTED} keys at once; split the file`]);
    }
    const imported = inputs.map(parseImportedKey);
    return this.#commit(async () => {
      const hashes = imported.map((key) => key.hash);
      const present = await this.#table.readAny({ ids: imported.map((key) => key.keyId), hashes });
      return planImport(imported, present);
    });
  }

  /** A process without memory has no use to tell of. */
  touch(): void {}

  /** Plans and makes the changes; where another process was quicker, from the start again. */
  async #commit<T>(plan: () => Promise<Plan<T>>): Promise<T> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const { result, changes } = await plan();
      if (changes.length === 0) return result;
      const version = await this.#table.commit(changes);
      if (version === null) continue;
      this.#options.onCommitted?.(
        changes.map(({ key }) => key.hash),
        version,
      );
      return result;
    }
    throw new RegistryUnavailableError('The key was changed by others again and again while it was to be changed.');
  }
}

/** Throws KeyStateError where a key contradicts one that is there or an earlier one of the same import. */
function planImport(
  imported: readonly ImportedKey[],
  present: ReadonlyMap<KeyHash, StoredKey>,
): Plan<{ readonly added: number; readonly replaced: number }> {
  const byHash = new Map<KeyHash, ApiKey>([...present].map(([hash, { key }]) => [hash, key]));
  const byId = new Map<string, ApiKey>([...byHash.values()].map((key) => [key.keyId, key]));
  const staged = new Map<KeyHash, ApiKey>();
  let replaced = 0;
  for (const key of imported) {
    const existing = byId.get(key.keyId) ?? byHash.get(key.hash);
    if (existing !== undefined) replaced += 1;
    const adopted = adoptKey(key, existing);
    byHash.set(adopted.hash, adopted);
    byId.set(adopted.keyId, adopted);
    staged.set(adopted.hash, adopted);
  }
  const changes = [...staged.values()].map((key) => ({ key, from: present.get(key.hash)?.text ?? null }));
  return { result: { added: imported.length - replaced, replaced }, changes };
}

/**
 * A registry that asks Redis each time, without subscription, timer or memory: right for a process that lives for one
 * command. `peek` knows nothing and `touch` does nothing.
 */
export function createRedisKeyStore(options: RedisKeyStoreOptions): KeyRegistry {
  return new RedisKeyStore(options);
}
