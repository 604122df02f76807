/**
 * Changes of records in the store. The store announces them, or its answers show them: another digest of a call than the last
 * answer had (C11: a part is never older than the change that its reader has seen). Each is an event of the journal; by it every
 * process renews what is from before it, once that is read (change-table.ts). An answer that shows a change leaves only after the
 * journal has the event, and is not shared before.
 *
 * That fails as follows:
 * - The journal does not take the event: the change is in force only in this process. The next answer shows it again.
 * - The last sighting is not known, because a purge of the call has ended it, Redis has evicted it, or Redis does not answer and
 *   memory has no copy of the evaluation: a change goes unnoticed, and the parts go by their times.
 */
import { LRUCache } from 'lru-cache';
import type { Changed, EventOf, Journal, RecordChange } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import { EVALUATION_KINDS } from '../upstream/resources.ts';
import { type Address, addressText, type WorkspaceSet } from './address.ts';
import { digestOf, type Judgement, judge, type LastSeen } from './digest.ts';
import { type StoredEntry, stampOf } from './entry.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { PurgeLog } from './purge-log.ts';
import { type CacheRequest, idIn, keysOfEvaluation, recordKey, recordRequest } from './request.ts';
import type { SeenCalls, Sighting } from './seen-calls.ts';
import type { LastSeenOf } from './shared-cache.ts';

/** A change as the store announces it. */
export type AnnouncedChange = Omit<RecordChange, 'shown'>;

export interface ChangesOptions {
  readonly journal: Pick<Journal, 'append' | 'position'>;
  readonly purges: Pick<PurgeLog, 'forgetOld' | 'changeTable'>;
  readonly seenCalls: SeenCalls;
  readonly memory: Pick<MemoryTier, 'peek'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Something was asked of Redis in vain. */
  readonly onFailed: (operation: 'seen' | 'changes', error: unknown) => void;
}

/** The last sightings of the calls of a request, by address (`addressText`), as far as it was asked for. */
type Known = ReadonlyMap<string, LastSeen | null>;

/** Whose answer it is: of which request, for which readers. */
interface Asked<T> {
  readonly request: CacheRequest<T>;
  readonly set: WorkspaceSet;
}

/** One call in an answer, compared with what was seen of it last. */
interface Compared extends Judgement {
  readonly id: string;
  readonly address: Address;
  readonly digest: string;
  readonly isFirst: boolean;
}

/** How many changes of an announcement are looked up in Redis at once: reads have their turn between them. */
const LOOKED_UP_AT_ONCE = 25;
/** Unstable calls that are remembered by name. */
const MAX_UNSTABLE = 1000;

export class Changes {
  readonly #options: ChangesOptions;
  /** By id. */
  readonly #unstable = new LRUCache<string, true>({ max: MAX_UNSTABLE });

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  /** The calls of the last answers here that differ again and again: their parts go by their times. */
  unstable(): readonly string[] {
    return [...this.#unstable.keys()];
  }

  /**
   * Makes the event of announced changes, and resolves with what `append` makes of it: it appends the event to the journal, and
   * perhaps more in the same step. An id that was never shown in the workspace counts as created. Rejects as `append` does.
   */
  async announce<T>(
    mode: Changed['mode'],
    changes: readonly AnnouncedChange[],
    append: (event: EventOf<'changes'>) => Promise<T>,
  ): Promise<T> {
    const { purges, clock } = this.#options;
    const announced: RecordChange[] = [];
    for (let first = 0; first < changes.length; first += LOOKED_UP_AT_ONCE) {
      announced.push(...(await this.#withCreation(changes.slice(first, first + LOOKED_UP_AT_ONCE))));
    }
    const listed = announced.filter(
      ({ isCreated, isDeleted, previousWorkspace, kinds }) =>
        isCreated || isDeleted || previousWorkspace !== null || kinds.includes('evaluation'),
    );
    const lists = new Set(
      listed.flatMap(({ workspace, previousWorkspace }) => [workspace, previousWorkspace ?? workspace]),
    );
    await purges.forgetOld();
    const about = { mode, isAnnounced: true, atMs: clock.nowMs() };
    return await append({ kind: 'changes', ...about, changes: announced, lists: [...lists] });
  }

  /**
   * The last sightings of the evaluation that is asked for: `lastSeen`, if the lease knows, else it is asked while the store is
   * asked. Null for any other request.
   */
  lastSeenOf({ request, set }: Asked<unknown>, lastSeen: LastSeenOf | null): Promise<Known> | null {
    if (request.kind !== 'evaluation') return null;
    const addresses = set.ids.map((owner) => ({ key: request.key, owner }));
    if (lastSeen === null) return this.#read(addresses);
    return Promise.resolve(new Map(addresses.map((one) => [addressText(one), lastSeen.get(one.owner) ?? null])));
  }

  /**
   * Compares the calls that the answer shows with what was seen of them last. Resolves once their changes are in the journal and
   * in force here, or in force here alone, with what is to be noted (`note`). `within` bounds the wait for Redis. Never rejects.
   */
  async compare<T>(
    asked: Asked<T>,
    stored: StoredEntry<T>,
    seenBefore: Promise<Known> | null,
    within: <R>(answer: Promise<R>) => Promise<R>,
  ): Promise<readonly Sighting[]> {
    const { purges } = this.#options;
    const { answer } = stored.entry;
    purges.changeTable.noteAnswer(stored);
    if (answer.kind === 'absent') {
      await this.#compareAbsent(asked, stored, seenBefore, within);
      return [];
    }
    const shown = asked.request.evaluations(answer.record).map((record) => {
      const { _id: id, workspaceId: owner } = record;
      return { id, address: { key: recordKey('evaluation', id), owner }, digest: digestOf(record) };
    });
    if (shown.length === 0) return [];
    const known = await within(seenBefore ?? this.#read(shown.map(({ address }) => address))).catch(() => NOTHING);
    const compared = shown.map((one): Compared => {
      const lastSeen = known.get(addressText(one.address)) ?? this.#copied(one.address);
      const announced = purges.changeTable.lastAnnounced(`evaluation:${one.id}`, one.address.owner, 'evaluation');
      return { ...one, ...judge(lastSeen, one.digest, stampOf(stored), announced), isFirst: lastSeen === null };
    });
    for (const { id, isUnstable } of compared) {
      if (isUnstable) this.#unstable.set(id, true);
      else this.#unstable.delete(id);
    }
    const changed = compared.filter(({ isChanged }) => isChanged);
    const isTaken = changed.length === 0 || (await this.#found(changed, stored, within));
    return compared.flatMap(({ address, seen, isChanged, isFirst }) =>
      seen === null || (isChanged && !isTaken) ? [] : [{ address, seen, isFirst }],
    );
  }

  /** Notes it in the background. */
  note(sightings: readonly Sighting[]): void {
    const { seenCalls, onFailed } = this.#options;
    if (sightings.length > 0) seenCalls.write(sightings).catch((error: unknown) => onFailed('seen', error));
  }

  /** A call that was there, and is there no more. */
  async #compareAbsent<T>(
    { request, set }: Asked<T>,
    stored: StoredEntry<T>,
    seenBefore: Promise<Known> | null,
    within: <R>(answer: Promise<R>) => Promise<R>,
  ): Promise<void> {
    if (seenBefore === null) return;
    const known = await within(seenBefore).catch(() => NOTHING);
    const gone = set.ids
      .map((owner) => ({ key: request.key, owner }))
      .filter((address) => (known.get(addressText(address)) ?? this.#copied(address)) !== null);
    if (gone.length === 0) return;
    const id = idIn('evaluation', request.key);
    const isTaken = await this.#found(
      gone.map((address) => ({ id, address, digest: GONE })),
      stored,
      within,
    );
    const { seenCalls, onFailed } = this.#options;
    if (isTaken) seenCalls.forget(gone).catch((error: unknown) => onFailed('seen', error));
  }

  /** False if the journal did not take them: then they are in force here alone. */
  async #found<T>(
    changed: readonly Pick<Compared, 'id' | 'address' | 'digest'>[],
    { entry: { requestedAtMs } }: StoredEntry<T>,
    within: <R>(answer: Promise<R>) => Promise<R>,
  ): Promise<boolean> {
    const { journal, purges, clock, onFailed } = this.#options;
    const changes = changed.map(({ id, address, digest }) => ({
      tag: `evaluation:${id}`,
      workspace: address.owner,
      kinds: EVALUATION_KINDS,
      isCreated: false,
      isDeleted: digest === GONE,
      previousWorkspace: null,
      etags: {},
      shown: { digest, requestedAtMs },
    }));
    try {
      await purges.forgetOld();
      const about = { mode: 'soft', isAnnounced: false, atMs: clock.nowMs() } as const;
      await within(journal.append({ kind: 'changes', ...about, changes, lists: [] }));
      return true;
    } catch (error) {
      purges.changeTable.applyHere({ changes }, journal.position.sequence, clock.nowMs());
      onFailed('changes', error);
      return false;
    }
  }

  async #read(addresses: readonly Address[]): Promise<Known> {
    try {
      const seen = await this.#options.seenCalls.read(addresses);
      return new Map(addresses.map((address, index) => [addressText(address), seen[index] ?? null]));
    } catch (error) {
      this.#options.onFailed('seen', error);
      return NOTHING;
    }
  }

  /** The copy in memory as a sighting: for a call that is not known otherwise. */
  #copied(address: Address): LastSeen | null {
    const copy = this.#options.memory.peek(address);
    if (copy === undefined || copy.entry.answer.kind === 'absent') return null;
    const [record] = recordRequest('evaluation', '').evaluations(copy.entry.answer.record);
    if (record === undefined) return null;
    const { requestedAtMs, position } = stampOf(copy);
    return { digest: digestOf(record), differed: 0, requestedAtMs, position, announced: 0 };
  }

  async #withCreation(changes: readonly AnnouncedChange[]): Promise<readonly RecordChange[]> {
    const asked = changes.filter(({ isCreated, isDeleted }) => !isCreated && !isDeleted);
    const unseen = new Set(await this.#neverShown(asked));
    return changes.map((change) => ({ ...change, isCreated: change.isCreated || unseen.has(change), shown: null }));
  }

  /**
   * The changes of evaluations whose id no copy, and no answer that was seen, has shown in that workspace. If Redis can't say
   * so, all count as shown.
   */
  async #neverShown(changes: readonly AnnouncedChange[]): Promise<readonly AnnouncedChange[]> {
    const { memory, seenCalls, onFailed } = this.#options;
    const inQuestion = changes.flatMap((change) => {
      const id = /^evaluation:(.*)$/.exec(change.tag)?.[1];
      if (id === undefined) return [];
      const addressOf = (key: string): Address => ({ key, owner: change.workspace });
      const own = addressOf(recordKey('evaluation', id));
      const addresses = keysOfEvaluation(id).map(addressOf);
      return addresses.some((address) => memory.peek(address) !== undefined) ? [] : [{ change, own, addresses }];
    });
    try {
      const seen = await seenCalls.read(inQuestion.map(({ own }) => own));
      const unseen = inQuestion.filter((_, index) => seen[index] === null);
      const isCopied = await seenCalls.haveCopies(unseen.map(({ addresses }) => addresses));
      return unseen.filter((_, index) => isCopied[index] === false).map(({ change }) => change);
    } catch (error) {
      onFailed('seen', error);
      return [];
    }
  }
}

const NOTHING: Known = new Map();
/** In place of the digest of a call that is gone. */
const GONE = '';
