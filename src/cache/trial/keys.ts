/** Which keys of a class a trial has: the same in every process, and others in every trial. Pure. */
import { hash32, mix32 } from '../hash.ts';
import type { ArmName, Trial } from './trial.ts';

/** Keys of an arm are counted in so many groups: how much these differ tells how far chance goes. */
export const GROUPS = 32;

const ALL = 2 ** 32;

export class TrialKeys {
  readonly #salt: number;
  readonly #below: number;

  constructor({ id, share }: Pick<Trial, 'id' | 'share'>) {
    this.#salt = hash32(id);
    this.#below = share * ALL;
  }

  /** `keyHash` is `hash32` of the key. */
  has(keyHash: number): boolean {
    return mix32(keyHash ^ this.#salt) < this.#below;
  }

  armOf(keyHash: number): ArmName {
    return this.has(keyHash) ? 'trial' : 'control';
  }

  /** From 0 up to `GROUPS`, by bits of the key that say nothing of its arm. */
  groupOf(keyHash: number): number {
    return mix32(keyHash ^ this.#salt) % GROUPS;
  }
}
