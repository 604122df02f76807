/** The last sighting of each call, by workspace: in the process, or in Redis for all processes. */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import { type Address, addressText } from './address.ts';
import { keyOf, type MarkOf } from './change-table.ts';
import type { LastSeen } from './digest.ts';

/** Some 200 bytes each. */
const MAX_IN_MEMORY = 100_000;

export interface Sighting {
  /** The key of the evaluation, and its workspace. */
  readonly address: Address;
  readonly seen: LastSeen;
  /** Whether nothing was known of the call. */
  readonly isFirst: boolean;
}

/** Every method may reject. */
export interface SeenCalls {
  /** In their order; null for a call that nothing is known of. */
  read(addresses: readonly Address[]): Promise<readonly (LastSeen | null)[]>;
  /** For each group of addresses, whether the shared cache has a copy at one of them. */
  haveCopies(groups: readonly (readonly Address[])[]): Promise<readonly boolean[]>;
  /** Keeps each, unless a later answer has been kept. */
  write(sightings: readonly Sighting[]): Promise<void>;
  forget(addresses: readonly Address[]): Promise<void>;
  /** Notes that an announced change is forgotten, of a call that no answer has shown since. */
  noteAnnounced(address: Address, announced: number): Promise<void>;
}

/** An announced change of a call is forgotten: what was seen of the call before remembers it. Rejects as `noteAnnounced` does. */
export async function noteForgotten(one: MarkOf, seenCalls: Pick<SeenCalls, 'noteAnnounced'>): Promise<void> {
  const { kind, workspace: owner, mark } = one;
  const key = keyOf(one);
  if (kind !== 'evaluation' || mark.announced === 0 || key === null) return;
  await seenCalls.noteAnnounced({ key, owner }, mark.announced);
}

export class MemorySeenCalls implements SeenCalls {
  readonly #seen = new LRUCache<string, LastSeen>(atMost(MAX_IN_MEMORY));

  async read(addresses: readonly Address[]): Promise<readonly (LastSeen | null)[]> {
    return addresses.map((address) => this.#seen.get(addressText(address)) ?? null);
  }

  async haveCopies(groups: readonly (readonly Address[])[]): Promise<readonly boolean[]> {
    return groups.map(() => false);
  }

  async write(sightings: readonly Sighting[]): Promise<void> {
    for (const { address, seen } of sightings) this.#seen.set(addressText(address), seen);
  }

  async forget(addresses: readonly Address[]): Promise<void> {
    for (const address of addresses) this.#seen.delete(addressText(address));
  }

  async noteAnnounced(address: Address, announced: number): Promise<void> {
    const name = addressText(address);
    const seen = this.#seen.peek(name);
    if (seen !== undefined && seen.position.sequence < announced) this.#seen.set(name, { ...seen, announced });
  }
}
