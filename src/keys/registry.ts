/** How the gateway finds keys for requests, and how operators show and change them, wherever keys are stored. */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../time/clock.ts';
import {
  type ApiKey,
  byCreation,
  type ImportedCounts,
  type EditedKey,
  type ImportedKey,
  InvalidKeyError,
  type IssuedKey,
  type KeyEdit,
  type KeyHash,
  type KeyLoss,
  KeyStateError,
  type NewKey,
  RegistryUnavailableError,
} from './key.ts';
import { adoptKey, editKey, issueKey, rotateKey } from './lifecycle.ts';

export interface KeyLookup {
  /** The key with that hash, whatever its status; null if none was issued. Rejects with RegistryUnavailableError. */
  find(hash: KeyHash): Promise<ApiKey | null>;
  /** The key if this process holds a copy that it may use without a look-up; else undefined. */
  peek(hash: KeyHash): ApiKey | undefined;
  /**
   * Whether this process knows the hash as one of an issued key, even if the key itself must be looked up. A hint: it may
   * be false for an issued key.
   */
  isIssued(hash: KeyHash): boolean;
  /** Notes that the key was used now. Never throws, never waits. */
  touch(key: ApiKey): void;
}

/** One commit takes a whole import; a larger one would hold Redis up. */
const MAX_IMPORTED = 10_000;
/** Attempts at a change that other processes keep overtaking. */
const MAX_ATTEMPTS = 10;

export interface StoredKey {
  readonly key: ApiKey;
  /** Its text as it is stored, as `serializeKey` writes it or as an earlier release did. */
  readonly record: string;
}

export interface KeyChange {
  readonly key: ApiKey;
  /** The record that the change was worked out from; null if there must be none. */
  readonly replaces: string | null;
}

interface Plan<T> {
  readonly result: T;
  readonly changes: readonly KeyChange[];
  readonly isIssue?: boolean;
  readonly onMade?: (made: Made) => void;
}

/** Changes that were made. */
export interface Made {
  /** Whether a replica has them: false if none says so in time, null if there is none that could take over, or it was not asked. */
  readonly isConfirmed: boolean | null;
}

/** The keys, for operators. Subclasses store them. Every method may reject with RegistryUnavailableError. */
export abstract class KeyDirectory {
  protected readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The keys that have one of the ids or one of the hashes, by their hash. */
  protected abstract stored(
    ids: readonly string[],
    hashes?: readonly KeyHash[],
  ): Promise<ReadonlyMap<KeyHash, StoredKey>>;
  /** All keys in pages, each key once, in no order. For a registry of any size: no page is large. */
  abstract pages(): AsyncGenerator<readonly ApiKey[]>;
  /**
   * Compare and set: makes all changes in one step, or none and returns null if one of the records is not the one to be
   * replaced any more, or if an id belongs to another hash. `isIssue`: keys that it adds were just made, so that they can't have been there before.
   */
  protected abstract commit(changes: readonly KeyChange[], isIssue: boolean): Promise<Made | null>;

  /** Takes note that an operator knows of a loss of keys; returns it as it was before, null if there is none. */
  async acknowledgeLoss(): Promise<KeyLoss | null> {
    return null;
  }

  /** How many keys there are, as far as that is known without asking; and their loss, if some were lost. */
  census(): { readonly known: number | null; readonly loss: KeyLoss | null } {
    return { known: null, loss: null };
  }

  /** All keys, in the order of `byCreation`. */
  async list(): Promise<readonly ApiKey[]> {
    const keys: ApiKey[] = [];
    for await (const page of this.pages()) keys.push(...page);
    return keys.toSorted(byCreation);
  }

  async get(keyId: string): Promise<ApiKey | null> {
    const [found] = (await this.stored([keyId])).values();
    return found?.key ?? null;
  }

  create(request: NewKey): Promise<IssuedKey> {
    return this.#make(async () => {
      const issued = issueKey(request, this.clock.nowMs());
      return { result: issued, changes: [{ key: issued.key, replaces: null }], isIssue: true };
    });
  }

  /**
   * The key before and after the change; null if there is no such key. A revocation or deprecation that is repeated is written
   * again, so that a replica can confirm it now. Rejects with KeyStateError as `editKey` throws it.
   */
  async edit(keyId: string, edit: KeyEdit): Promise<EditedKey | null> {
    let isConfirmed: boolean | null = null;
    const onMade = (made: Made): void => {
      ({ isConfirmed } = made);
    };
    const edited = await this.#change(keyId, ({ key: before, record }) => {
      const after = editKey(before, edit);
      const isEndedAgain = edit.status === before.status && edit.status !== 'active';
      const changes = after === before && !isEndedAgain ? [] : [{ key: after, replaces: record }];
      return { result: { before, after }, changes, onMade };
    });
    return edited === null ? null : { ...edited, isConfirmed };
  }

  /** Issues a successor as `rotateKey` makes it, or rejects with its KeyStateError; null if there is no such key. */
  rotate(keyId: string, overlapMs: number): Promise<IssuedKey | null> {
    return this.#change(keyId, ({ key, record }) => {
      const { successor, retired } = rotateKey(key, this.clock.nowMs(), overlapMs);
      const changes = [
        { key: retired, replaces: record },
        { key: successor.key, replaces: null },
      ];
      return { result: successor, changes, isIssue: true };
    });
  }

  /**
   * Stores all of the keys or none. A key that is stored already is changed if id and hash are the same, else it rejects
   * with KeyStateError. A revoked key that is no longer so in the import is left out. Rejects with InvalidKeyError if there are more than 10,000. `isDryRun`: only counts, or rejects.
   */
  async importKeys(imported: readonly ImportedKey[], isDryRun = false): Promise<ImportedCounts> {
    if (imported.length > MAX_IMPORTED) {
      throw new InvalidKeyError(`Invalid import: must be at most ${MAX_IMPORTED} keys at once; split the file`);
    }
    const [ids, hashes] = [imported.map(({ keyId }) => keyId), imported.map(({ hash }) => hash)];
    return this.#make(async () => {
      const plan = planImport(imported, await this.stored(ids, hashes), this.clock.nowMs());
      return isDryRun ? { ...plan, changes: [] } : plan;
    });
  }

  #change<T>(keyId: string, plan: (stored: StoredKey) => Plan<T>): Promise<T | null> {
    return this.#make<T | null>(async () => {
      const [found] = (await this.stored([keyId])).values();
      return found === undefined ? { result: null, changes: [] } : plan(found);
    });
  }

  /** Plans the changes and makes them; plans again if another process was quicker. */
  async #make<T>(plan: () => Promise<Plan<T>>): Promise<T> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { result, changes, isIssue = false, onMade } = await plan();
      if (changes.length === 0) return result;
      const made = await this.commit(changes, isIssue);
      if (made === null) continue;
      onMade?.(made);
      return result;
    }
    throw new RegistryUnavailableError('Other processes changed the key again and again during the change.');
  }
}

/** Throws KeyStateError with every key that contradicts a stored one or an earlier one of the same import, by its place. */
function planImport(
  imported: readonly ImportedKey[],
  stored: ReadonlyMap<KeyHash, StoredKey>,
  nowMs: number,
): Plan<ImportedCounts> {
  const byHash = new Map<KeyHash, ApiKey>([...stored].map(([hash, { key }]) => [hash, key]));
  const byId = new Map<string, ApiKey>([...byHash.values()].map((key) => [key.keyId, key]));
  const adopted = new Map<KeyHash, ApiKey>();
  const counts = { added: 0, replaced: 0, unchanged: 0, leftOut: 0 };
  const refusals: string[] = [];
  for (const [index, one] of imported.entries()) {
    const existing = byId.get(one.keyId) ?? byHash.get(one.hash);
    let key: ApiKey | null;
    try {
      key = adoptKey(one, existing, nowMs);
    } catch (error) {
      if (!(error instanceof KeyStateError)) throw error;
      refusals.push(`keys[${index}]: ${error.message}`);
      continue;
    }
    if (key === null) {
      counts.leftOut += 1;
      continue;
    }
    if (isDeepStrictEqual(key, existing)) {
      counts.unchanged += 1;
      continue;
    }
    counts[existing === undefined ? 'added' : 'replaced'] += 1;
    byHash.set(key.hash, key);
    byId.set(key.keyId, key);
    adopted.set(key.hash, key);
  }
  if (refusals.length > 0) {
    const count = refusals.length === 1 ? '1 key is' : `${refusals.length} keys are`;
    throw new KeyStateError([`Nothing was imported: ${count} refused.`, ...refusals].join('\n- '));
  }
  const changes = [...adopted.values()].map((key) => ({ key, replaces: stored.get(key.hash)?.record ?? null }));
  return { result: counts, changes };
}
