/** Keys that exist as long as this process, over a registry that knows nothing of them. */
import type { ApiKey, ImportedKey, IssuedKey, KeyHash, KeyRegistry, KeyStatus, NewKey } from './key.ts';

/** `transient` is asked first; keys are created, listed and changed in `registry` alone. */
export function overlayRegistry(transient: KeyRegistry, registry: KeyRegistry): KeyRegistry {
  return new OverlayRegistry(transient, registry);
}

class OverlayRegistry implements KeyRegistry {
  readonly #transient: KeyRegistry;
  readonly #registry: KeyRegistry;

  constructor(transient: KeyRegistry, registry: KeyRegistry) {
    this.#transient = transient;
    this.#registry = registry;
  }

  async find(hash: KeyHash): Promise<ApiKey | null> {
    return (await this.#transient.find(hash)) ?? (await this.#registry.find(hash));
  }

  peek(hash: KeyHash): ApiKey | undefined {
    return this.#transient.peek(hash) ?? this.#registry.peek(hash);
  }

  isIssued(hash: KeyHash): boolean {
    return this.#transient.peek(hash) !== undefined || (this.#registry.isIssued?.(hash) ?? false);
  }

  touch(key: ApiKey): void {
    const owner = this.#transient.peek(key.hash) === undefined ? this.#registry : this.#transient;
    owner.touch(key);
  }

  list(): Promise<readonly ApiKey[]> {
    return this.#registry.list();
  }

  get(keyId: string): Promise<ApiKey | null> {
    return this.#registry.get(keyId);
  }

  create(key: NewKey): Promise<IssuedKey> {
    return this.#registry.create(key);
  }

  setStatus(keyId: string, status: KeyStatus): Promise<ApiKey | null> {
    return this.#registry.setStatus(keyId, status);
  }

  rotate(keyId: string, overlapMs: number): Promise<IssuedKey | null> {
    return this.#registry.rotate(keyId, overlapMs);
  }

  importKeys(keys: readonly ImportedKey[]): Promise<{ readonly added: number; readonly replaced: number }> {
    return this.#registry.importKeys(keys);
  }
}
