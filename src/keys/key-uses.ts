/** When keys were last used, gathered here and handed on from time to time, all at once. */
import type { KeyHash } from './key.ts';

export class KeyUses {
  readonly #hand: (uses: ReadonlyMap<KeyHash, number>) => Promise<void>;
  /** Only keys that were let in are noted, so there are never more than issued ones. */
  #uses = new Map<KeyHash, number>();
  #handing: Promise<void> = Promise.resolve();

  /** `hand` may be given a use that it was given before, never an older one after a newer one. */
  constructor(hand: (uses: ReadonlyMap<KeyHash, number>) => Promise<void>) {
    this.#hand = hand;
  }

  note(hash: KeyHash, nowMs: number): void {
    this.#uses.set(hash, nowMs);
  }

  /** Hands on what was noted. Never rejects: what could not be handed on is kept for the next time. */
  flush(): Promise<void> {
    this.#handing = this.#handing.then(() => this.#flush());
    return this.#handing;
  }

  async #flush(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = this.#uses;
    this.#uses = new Map();
    try {
      await this.#hand(uses);
    } catch {
      this.#uses = new Map([...uses, ...this.#uses]);
    }
  }
}
