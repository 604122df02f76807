/** Keys in this process's memory: of a gateway without Redis, and keys that must end with the process. */
import { type ApiKey, type KeyHash, serializeKey } from './key.ts';
import { type KeyChange, KeyDirectory, type KeyLookup, type Made, type StoredKey } from './registry.ts';

/** A key never changes its id or hash, so storing one replaces it under both. */
export class MemoryRegistry extends KeyDirectory implements KeyLookup {
  readonly #keys = new Map<KeyHash, ApiKey>();
  readonly #hashOf = new Map<string, KeyHash>();

  async find(hash: KeyHash): Promise<ApiKey | null> {
    return this.#keys.get(hash) ?? null;
  }

  peek(hash: KeyHash): ApiKey | undefined {
    return this.#keys.get(hash);
  }

  isIssued(hash: KeyHash): boolean {
    return this.#keys.has(hash);
  }

  override census() {
    return { known: this.#keys.size, loss: null };
  }

  touch({ hash }: ApiKey): void {
    const key = this.#keys.get(hash);
    const lastUsedAtMs = this.clock.nowMs();
    if (key !== undefined && key.lastUsedAtMs !== lastUsedAtMs) this.#keys.set(hash, { ...key, lastUsedAtMs });
  }

  protected async stored(
    ids: readonly string[],
    hashes: readonly KeyHash[] = [],
  ): Promise<ReadonlyMap<KeyHash, StoredKey>> {
    const found = new Map<KeyHash, StoredKey>();
    for (const hash of [...hashes, ...ids.map((id) => this.#hashOf.get(id) ?? '')]) {
      const key = this.#keys.get(hash);
      if (key !== undefined) found.set(hash, { key, record: serializeKey(key) });
    }
    return found;
  }

  async *pages(): AsyncGenerator<readonly ApiKey[]> {
    yield [...this.#keys.values()];
  }

  protected async commit(changes: readonly KeyChange[]): Promise<Made | null> {
    const isCurrent = ({ key, replaces }: KeyChange): boolean => {
      const current = this.#keys.get(key.hash);
      const owner = this.#hashOf.get(key.keyId) ?? key.hash;
      return (current === undefined ? null : serializeKey(current)) === replaces && owner === key.hash;
    };
    if (!changes.every(isCurrent)) return null;
    for (const { key } of changes) {
      const lastUsedAtMs = this.#keys.get(key.hash)?.lastUsedAtMs ?? key.lastUsedAtMs;
      this.#keys.set(key.hash, { ...key, lastUsedAtMs });
      this.#hashOf.set(key.keyId, key.hash);
    }
    return { isConfirmed: null };
  }
}

/** Looks a key up among the memory's, which answer at once, and asks `other` for the rest. */
export function overlayLookup(memory: MemoryRegistry, other: KeyLookup): KeyLookup {
  return {
    find: async (hash) => memory.peek(hash) ?? (await other.find(hash)),
    peek: (hash) => memory.peek(hash) ?? other.peek(hash),
    isIssued: (hash) => memory.isIssued(hash) || other.isIssued(hash),
    touch: (key) => (memory.isIssued(key.hash) ? memory : other).touch(key),
  };
}
