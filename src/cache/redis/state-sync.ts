/**
 * One process's copy of what all processes share in the state Redis: purges, TTLs set by operators, maintenance. Reads
 * go by the copy and ask nobody. Messages keep it true, and a look at Redis twice a second finds what messages left out: a
 * lost message goes unnoticed for 500 ms at most.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../time/clock.ts';
import { afterChange, type RedisLink } from '../../redis/connection.ts';
import { oneAtATime } from '../../redis/connectivity.ts';
import type {
  Maintenance,
  MaintenanceChange,
  MaintenanceControl,
  MaintenanceState,
} from '../../upstream/maintenance.ts';
import {
  type HardPurgeListener,
  type PurgeLog,
  type PurgeMode,
  PurgeTable,
  type Swept,
  type Tag,
} from '../purge-log.ts';
import {
  CACHE_CLASSES,
  type CacheClass,
  type CacheTtl,
  isTtl,
  mergeOverrides,
  overridesFor,
  TTL_NAMES,
  type TtlChange,
  type TtlControl,
  type TtlEnd,
  type TtlName,
  type TtlOverride,
  type TtlPolicy,
  withoutEnded,
} from '../ttl-policy.ts';
import { parseJson, tagSchema } from './entry-format.ts';
import { type Forgetting, type KnownPurges, type StateReply, StateStore, type TtlFields } from './state-scripts.ts';

export interface StateSyncOptions {
  /** This process's, which are kept up to date. */
  readonly ttl: TtlPolicy;
  readonly maintenance: MaintenanceState;
  readonly clock: Clock;
  readonly onHardPurge: HardPurgeListener;
  /** Called in one process of all for each class whose TTLs have ended by themselves. */
  readonly onTtlEnd: (end: TtlEnd) => void;
  /** Called in the process that has changed TTLs of a class, and waited for. Never rejects. */
  readonly onTtlChanged: (cacheClass: CacheClass) => Promise<void>;
  /** Redis has lost purges that this process knows: it was emptied, or holds an old copy. */
  readonly onStateLost: () => void;
}

/** A message of a purge: history, sequence and the purge. Any other message only says that something has changed. */
const PURGE_MESSAGE = /^purge (\S+) ([0-9]{1,15}) (.+)$/s;

export class StateSync {
  readonly purges: SharedPurgeLog;
  readonly ttl: SharedTtl;
  readonly maintenance: MaintenanceControl;
  readonly #store: StateStore;
  readonly #options: StateSyncOptions;
  readonly #unlisten: () => void;
  #maintenance = '';

  /** `link` is to the state Redis. */
  constructor(link: RedisLink, options: StateSyncOptions) {
    const look = (): Promise<void> => this.look();
    const state = options.maintenance;
    this.#store = new StateStore(link);
    this.#options = options;
    this.purges = new SharedPurgeLog(this.#store, look, options.onHardPurge);
    this.ttl = new SharedTtl(this.#store, look, options);
    this.maintenance = {
      // Goes on until its end while Redis does not answer.
      current: () => state.current(),
      begin: (untilMs, by, sinceMs) => this.#changeMaintenance(state.until(untilMs, by, sinceMs)),
      end: () => this.#changeMaintenance(null),
    };
    this.#unlisten = link.subscriber.listen(this.#store.channel, (message) => this.#onMessage(message));
  }

  /**
   * Adopts all changes; once it resolves, those that were made before it was called. One look at a time, so that no reply
   * is adopted after a later one. Rejects if Redis does not answer.
   */
  readonly look = oneAtATime(() => this.#lookNow());

  close(): void {
    this.#unlisten();
  }

  async #lookNow(): Promise<void> {
    const { known } = this.purges;
    const reply = await this.#store.read(known, this.ttl.version);
    if (reply !== null) this.#adopt(reply, known.history);
    // If it fails, the next heartbeat tries again; the TTLs have ended all the same.
    await this.ttl.takeEnded().catch(() => undefined);
  }

  #adopt(reply: StateReply, knownHistory: string): void {
    const isLost = this.purges.isKnown && reply.history !== knownHistory;
    this.purges.adopt(reply);
    if (isLost) this.#options.onStateLost();
    if (reply.ttls !== null) this.ttl.adopt(reply.ttlVersion, reply.ttls);
    if (reply.maintenance === this.#maintenance) return;
    this.#maintenance = reply.maintenance;
    this.#options.maintenance.set(readMaintenance(reply.maintenance));
  }

  #onMessage(message: string): void {
    const [, history, sequence, purge] = PURGE_MESSAGE.exec(message) ?? [];
    const isPurge = history !== undefined && sequence !== undefined && purge !== undefined;
    if (isPurge && this.purges.append(history, Number(sequence), purge)) return;
    // If it fails, the next heartbeat tries again.
    this.look().catch(() => undefined);
  }

  async #changeMaintenance(to: Maintenance | null): Promise<MaintenanceChange> {
    const before = await this.#store.changeMaintenance(to === null ? '' : JSON.stringify(to));
    await afterChange(() => this.look());
    return { from: this.#options.maintenance.ifOn(readMaintenance(before)), to };
  }
}

/** JavaScript can write it as a date. */
const timeMs = z.int().min(0).max(8.64e15);
const maintenanceSchema = z.object({ sinceMs: timeMs, untilMs: timeMs, by: z.string() });

/** Text that can't be read counts as none. */
function readMaintenance(text: string): Maintenance | null {
  return parseJson(maintenanceSchema, text);
}

const ID_BYTES = 9;
const purgeSchema = z.tuple([z.enum(['soft', 'hard']), z.array(tagSchema)]);
/** A purge that can't be read may purge anything: another release may know tags that this one doesn't. */
const ANY_PURGE = { mode: 'hard', tags: ['all'] } as const;

/** The purge log in Redis, as far as this process knows it. */
export class SharedPurgeLog extends PurgeTable implements PurgeLog {
  readonly #store: StateStore;
  readonly #look: () => Promise<void>;
  #lastId = '';
  #isKnown = false;
  #swept: Swept = { sequence: 0, entries: 0, of: 0 };

  constructor(store: StateStore, look: () => Promise<void>, onHard: HardPurgeListener) {
    // Until Redis was reached this process has a history of its own, which nobody else trusts.
    super(`alone-${randomUUID()}`, onHard);
    this.#store = store;
    this.#look = look;
  }

  /** Whether Redis's log was ever read. Before that, no shared copy can be judged and none added. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** How far the bytes of purged copies are deleted. */
  get swept(): Swept {
    return this.#swept;
  }

  get known(): KnownPurges {
    return { ...this.epoch(), lastId: this.#lastId };
  }

  /** After a rejection other than NotSentError it may have been purged or not. */
  async purge(tags: readonly Tag[], mode: PurgeMode): Promise<void> {
    const purge = writePurge(tags, mode);
    const { history, sequence } = await this.#store.purge(this.known, purge);
    if (!this.append(history, sequence, purge)) await afterChange(this.#look);
  }

  /** Adds one purge to the table; false if those before it are missing. */
  append(history: string, sequence: number, purge: string): boolean {
    const epoch = this.epoch();
    if (history !== epoch.history || sequence > epoch.sequence + 1) return false;
    if (sequence <= epoch.sequence) return true;
    const { mode, tags } = readPurge(purge);
    this.apply(tags, mode, sequence);
    this.#lastId = idOf(purge);
    return true;
  }

  /**
   * In another history, everything filled before counts as purged. After purges were missed that have left the list, memory is
   * dropped; what else was filled before counts as purged if some of them were cut off and not forgotten.
   */
  adopt({ history, sequence, floor, purges, kept, forgotten, lost, swept }: StateReply): void {
    const epoch = this.epoch();
    if (history !== epoch.history || floor > epoch.sequence) {
      this.restart(history, floor, lost, kept);
      this.#lastId = '';
    }
    this.#isKnown = true;
    this.#swept = swept;
    const before = sequence - purges.length;
    for (const [i, purge] of purges.entries()) this.append(history, before + i + 1, purge);
    this.forget(forgotten);
  }

  /** Lets hard purges of evaluations up to that one leave the log, here and in Redis. */
  async leave(which: Forgetting): Promise<void> {
    await this.#store.forget(this.epoch().history, which);
    await this.#look();
  }

  async noteSwept(swept: Swept): Promise<void> {
    await this.#store.noteSwept(this.epoch().history, swept);
    this.#swept = { ...swept, sequence: Math.max(swept.sequence, this.#swept.sequence) };
  }
}

/** The id distinguishes two purges that come to have the same place after Redis has lost one. */
function writePurge(tags: readonly Tag[], mode: PurgeMode): string {
  return `${randomBytes(ID_BYTES).toString('base64url')} ${JSON.stringify([mode, tags])}`;
}

function idOf(purge: string): string {
  return purge.slice(0, purge.indexOf(' ') + 1);
}

function readPurge(purge: string): { readonly mode: PurgeMode; readonly tags: readonly Tag[] } {
  const read = parseJson(purgeSchema, purge.slice(purge.indexOf(' ') + 1));
  return read === null ? ANY_PURGE : { mode: read[0], tags: read[1] };
}

/** TTLs set for all processes. Each ends them by its own clock; the first to notice takes them out of Redis. */
class SharedTtl implements TtlControl {
  readonly #store: StateStore;
  readonly #look: () => Promise<void>;
  readonly #options: StateSyncOptions;
  #version = '';
  #fields: TtlFields = new Map();

  constructor(store: StateStore, look: () => Promise<void>, options: StateSyncOptions) {
    this.#store = store;
    this.#look = look;
    this.#options = options;
  }

  /** Names what is in force here; empty if nothing was ever set. */
  get version(): string {
    return this.#version;
  }

  async set(cacheClass: CacheClass, ttl: Partial<CacheTtl>, untilMs: number | null): Promise<TtlChange> {
    const added = overridesFor(ttl, untilMs);
    const fields = new Map<string, string | null>();
    for (const override of added) {
      // One without an end also ends the one that covers it.
      if (untilMs === null) fields.set(temporaryField(cacheClass, override.name), null);
      fields.set(...writeOverride(cacheClass, override));
    }
    return this.#change(cacheClass, fields, (before) => mergeOverrides(before, added));
  }

  async reset(cacheClass: CacheClass): Promise<TtlChange> {
    const names = TTL_NAMES.flatMap((name) => [lastingField(cacheClass, name), temporaryField(cacheClass, name)]);
    return this.#change(cacheClass, new Map(names.map((name) => [name, null])), () => []);
  }

  adopt(version: string, fields: TtlFields): void {
    this.#version = version;
    this.#fields = fields;
    for (const cacheClass of CACHE_CLASSES) this.#options.ttl.override(cacheClass, readOverrides(cacheClass, fields));
  }

  /** Takes what has ended out of Redis. Only the process that does so reports it, also if another had set it. */
  async takeEnded(): Promise<void> {
    const { clock, ttl, onTtlEnd } = this.#options;
    const nowMs = clock.nowMs();
    const ended = CACHE_CLASSES.flatMap((cacheClass) => {
      const overrides = readOverrides(cacheClass, this.#fields);
      const left = withoutEnded(overrides, nowMs);
      return overrides.filter((one) => !left.includes(one)).map((one) => writeOverride(cacheClass, one));
    });
    if (ended.length === 0) return;
    const taken = await this.#store.endTtls(new Map(ended));
    const leftFields = new Map([...taken.before].filter(([field]) => !taken.ended.includes(field)));
    for (const cacheClass of CACHE_CLASSES) {
      const [before, left] = [readOverrides(cacheClass, taken.before), readOverrides(cacheClass, leftFields)];
      if (left.length === before.length) continue;
      onTtlEnd({ cacheClass, from: ttl.stateWith(cacheClass, before), to: ttl.stateWith(cacheClass, left) });
    }
  }

  async #change(
    cacheClass: CacheClass,
    fields: ReadonlyMap<string, string | null>,
    apply: (before: readonly TtlOverride[]) => readonly TtlOverride[],
  ): Promise<TtlChange> {
    const before = readOverrides(cacheClass, await this.#store.changeTtls(fields));
    await afterChange(this.#look);
    const { ttl, clock, onTtlChanged } = this.#options;
    await onTtlChanged(cacheClass);
    const nowMs = clock.nowMs();
    const inForce = (overrides: readonly TtlOverride[]) => ttl.stateWith(cacheClass, withoutEnded(overrides, nowMs));
    return { from: inForce(before), to: inForce(apply(before)) };
  }
}

function lastingField(cacheClass: CacheClass, name: TtlName): string {
  return `${cacheClass}.${name}`;
}

/** Beside the other, so that it covers it; releases before 0.2 read only the other. */
function temporaryField(cacheClass: CacheClass, name: TtlName): string {
  return `${cacheClass}.${name}.temporary`;
}

function writeOverride(cacheClass: CacheClass, { name, ms, untilMs }: TtlOverride): [field: string, value: string] {
  if (untilMs === null) return [lastingField(cacheClass, name), String(ms)];
  return [temporaryField(cacheClass, name), `${ms} ${untilMs}`];
}

/** A value that can't be read counts as not set. */
function readOverrides(cacheClass: CacheClass, fields: TtlFields): readonly TtlOverride[] {
  return TTL_NAMES.flatMap((name): readonly TtlOverride[] => {
    const [, lastingMs] = /^([0-9]+)$/.exec(fields.get(lastingField(cacheClass, name)) ?? '') ?? [];
    const [, ms, untilMs] = /^([0-9]+) ([0-9]{1,15})$/.exec(fields.get(temporaryField(cacheClass, name)) ?? '') ?? [];
    return [
      ...(lastingMs === undefined ? [] : [{ name, ms: Number(lastingMs), untilMs: null }]),
      ...(ms === undefined ? [] : [{ name, ms: Number(ms), untilMs: Number(untilMs) }]),
    ].filter((override) => isTtl(override.ms));
  });
}
