/** The key registry in this process's memory: what a gateway without Redis uses. It forgets all keys when it ends. */
import type { Clock } from '../clock.ts';
import type { ApiKey, ImportedKey, IssuedKey, KeyHash, KeyRegistry, KeyStatus, NewKey } from './key.ts';
import { adoptKey, issueKey, rotateKey, withStatus } from './lifecycle.ts';
import { inOrderOfCreation } from './order.ts';
import { parseImportedKey, parseNewKey } from './schema.ts';

/** Keys by both of their names. A key never changes either, so putting one replaces it under both. */
class KeyTable {
  readonly #byHash = new Map<KeyHash, ApiKey>();
  readonly #byId = new Map<string, ApiKey>();

  put(key: ApiKey): void {
    this.#byHash.set(key.hash, key);
    this.#byId.set(key.keyId, key);
  }

  withHash(hash: KeyHash): ApiKey | undefined {
    return this.#byHash.get(hash);
  }

  withId(keyId: string): ApiKey | undefined {
    return this.#byId.get(keyId);
  }

  all(): ApiKey[] {
    return [...this.#byId.values()];
  }
}

class MemoryRegistry implements KeyRegistry {
  readonly #keys = new KeyTable();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    return this.#keys.withHash(hash) ?? null;
  }

  peek(hash: KeyHash): ApiKey | undefined {
    return this.#keys.withHash(hash);
  }

  async list(): Promise<readonly ApiKey[]> {
    return this.#keys.all().toSorted(inOrderOfCreation);
  }

  async get(keyId: string): Promise<ApiKey | null> {
    return this.#keys.withId(keyId) ?? null;
  }

  async create(key: NewKey): Promise<IssuedKey> {
    const issued = issueKey(parseNewKey(key), this.#clock.nowMs());
    this.#keys.put(issued.key);
    return issued;
  }

  async setStatus(keyId: string, status: KeyStatus): Promise<ApiKey | null> {
    const key = this.#keys.withId(keyId);
    if (key === undefined) return null;
    const changed = withStatus(key, status);
    this.#keys.put(changed);
    return changed;
  }

  async rotate(keyId: string, overlapMs: number): Promise<IssuedKey | null> {
    const key = this.#keys.withId(keyId);
    if (key === undefined) return null;
    const { successor, retired } = rotateKey(key, this.#clock.nowMs(), overlapMs);
    this.#keys.put(retired);
    this.#keys.put(successor.key);
    return successor;
  }

  async importKeys(keys: readonly ImportedKey[]): Promise<{ readonly added: number; readonly replaced: number }> {
    // All of them are checked before the first is kept, so that an import happens whole or not at all.
    const staged = new KeyTable();
    const adopted: ApiKey[] = [];
    let replaced = 0;
    for (const input of keys) {
      const imported = parseImportedKey(input);
      const existing = this.#existing(imported, staged);
      if (existing !== undefined) replaced += 1;
      const key = adoptKey(imported, existing);
      staged.put(key);
      adopted.push(key);
    }
    for (const key of adopted) this.#keys.put(key);
    return { added: adopted.length - replaced, replaced };
  }

  touch(key: ApiKey): void {
    const current = this.#keys.withId(key.keyId);
    const nowMs = this.#clock.nowMs();
    if (current === undefined || current.lastUsedAtMs === nowMs) return;
    this.#keys.put({ ...current, lastUsedAtMs: nowMs });
  }

  #existing(imported: ImportedKey, staged: KeyTable): ApiKey | undefined {
    return (
      staged.withId(imported.keyId) ??
      staged.withHash(imported.hash) ??
      this.#keys.withId(imported.keyId) ??
      this.#keys.withHash(imported.hash)
    );
  }
}

/** A registry in memory. `list` is in the order of creation; `create` and `importKeys` may also throw InvalidKeyError. */
export function createMemoryRegistry({ clock }: { readonly clock: Clock }): KeyRegistry {
  return new MemoryRegistry(clock);
}
