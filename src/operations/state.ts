/**
 * The state that is lost with the state Redis and cannot be made anew: keys, times set by operators, maintenance and the
 * audit, as records to export and import, each a JSON object with its kind. Not among them: requests counted for limits, when
 * keys were last used, purges (after a loss everything counts as purged) and cached answers.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { CACHE_CLASSES, mergeOverrides, type TtlOverride, type TtlPolicy, withoutEnded } from '../cache/ttl-policy.ts';
import type { TtlControl } from '../cache/ttl-control.ts';
import { type ApiKey, KeyStateError } from '../keys/key.ts';
import type { KeyDirectory } from '../keys/registry.ts';
import type { Clock } from '../time/clock.ts';
import { formatDuration } from '../time/duration.ts';
import type { MaintenanceControl } from '../upstream/maintenance.ts';
import type { ImportedCount, StateCounts } from './answers.ts';
import { iso, isoOrNull } from './api.ts';
import type { Audit } from './audit.ts';
import { STATE_KINDS, type StateRecord, stateRecordBodies } from './bodies.ts';
import { makeChange, PartlyMadeError } from './audited-change.ts';
import { check } from './input.ts';
import { keyView } from './key-changes.ts';

export interface StateParts {
  readonly registry: KeyDirectory;
  readonly ttl: Pick<TtlPolicy, 'overridesOf'>;
  readonly ttlControl: TtlControl;
  readonly maintenance: MaintenanceControl;
  readonly audit: Audit;
  readonly clock: Clock;
}

/** A key with its hash, as imports take it. */
export function exportedKey(key: ApiKey) {
  const { keyId, lastUsedAt: _, ...rest } = keyView(key);
  const { hash, ownExpiresAtMs } = key;
  return { keyId, hash, ...rest, ...(ownExpiresAtMs === undefined ? {} : { ownExpiresAt: isoOrNull(ownExpiresAtMs) }) };
}

/** The version of the form. */
export const STATE_VERSION = 1;
/** The last line of an export, which says that it is whole. */
export const STATE_END = { kind: 'end' } as const;

/**
 * An export, in pages of lines: what it is and when it was made, all records, the end. A page is there only once Redis has
 * answered for it; rejects if it does not.
 */
export async function* stateLines(parts: StateParts): AsyncGenerator<readonly object[]> {
  const { registry, clock } = parts;
  const head = { kind: 'state', version: STATE_VERSION, at: iso(clock.nowMs()) };
  let before: readonly object[] = [head, ...(await settingRecords(parts))];
  for await (const keys of registry.pages()) {
    yield [...before, ...keys.map((key) => ({ kind: 'key', ...exportedKey(key) }))];
    before = [];
  }
  yield [...before, STATE_END];
}

/** The records of all but keys; those of the audit from the oldest on. Rejects if Redis does not answer. */
async function settingRecords({ ttl, maintenance, audit, clock }: StateParts) {
  const nowMs = clock.nowMs();
  const times = CACHE_CLASSES.flatMap((cacheClass) =>
    withoutEnded(ttl.overridesOf(cacheClass), nowMs).map(({ name, ms, untilMs }) => ({
      kind: 'time',
      class: cacheClass,
      name: name.replace(/Ms$/, ''),
      ttl: formatDuration(ms),
      until: isoOrNull(untilMs),
    })),
  );
  const current = maintenance.current();
  const ongoing = current && {
    kind: 'maintenance',
    since: iso(current.sinceMs),
    until: iso(current.untilMs),
    by: current.by,
  };
  const entries = (await audit.kept()).toReversed().map((entry) => ({ kind: 'audit', ...entry }));
  return [...times, ...(ongoing === null ? [] : [ongoing]), ...entries];
}

const kindSchema = z.looseObject({ kind: z.enum(STATE_KINDS).describe(STATE_KINDS.join(', ')) });

/** Reads records. `faults` has every fault of each, after its place as `placeOf` names it; with any, import none. */
export function readRecords(
  values: readonly unknown[],
  nowMs: number,
  placeOf: (index: number) => string,
): { readonly records: readonly StateRecord[]; readonly faults: readonly string[] } {
  const bodies = stateRecordBodies(nowMs);
  const places = new Map<string, string>();
  const records: StateRecord[] = [];
  const faults = values.flatMap((value, index) => {
    const place = placeOf(index);
    const { value: known, faults: unknown } = check(kindSchema, value);
    if (unknown !== null) return unknown.map((fault) => `${place}: ${fault}`);
    const { kind, ...members } = known;
    const { value: record, faults: wrong } = check(bodies[kind], members);
    if (wrong !== null) return wrong.map((fault) => `${place}: ${fault}`);
    records.push(record);
    return identitiesOf(record).flatMap(([name, identity]) => {
      const first = places.get(`${name} ${identity}`);
      if (first === undefined) places.set(`${name} ${identity}`, place);
      return first === undefined ? [] : [`${place}: ${name}: the same as ${first}; allowed: each once`];
    });
  });
  return { records, faults };
}

/** By which a record that is there twice is known. */
function identitiesOf(record: StateRecord): readonly (readonly [name: string, identity: string])[] {
  if (record.kind === 'key')
    return [
      ['keyId', record.key.keyId],
      ['hash', record.key.hash],
    ];
  if (record.kind === 'time') return [['class and name', nameOf(record)]];
  if (record.kind === 'maintenance') return [['kind', record.kind]];
  return record.entry.id === undefined ? [] : [['id', record.entry.id]];
}

type TimeRecord = StateRecord & { readonly kind: 'time' };
/** One with an end and one without it are two. */
const nameOf = ({ cacheClass, override: { name, untilMs } }: Pick<TimeRecord, 'cacheClass' | 'override'>): string =>
  `${cacheClass} ${name} ${untilMs === null ? 'for good' : 'for a while'}`;

/**
 * Adds records to what is there; one that is there already is replaced, a key only as `importKeys` of the registry has it. An
 * end that has passed is not brought back. `isDryRun`: only counts.
 *
 * It is made in parts, after a trial of all of them: what can be refused is refused before anything is written. If a part
 * fails all the same, the audit has those that were made, and the import may be repeated.
 */
export async function importState(
  parts: StateParts & { readonly who: string },
  records: readonly StateRecord[],
  isDryRun: boolean,
): Promise<StateCounts> {
  const counted = await importParts(parts, records, true);
  if (isDryRun) return counted;
  return makeChange(parts.audit, {
    who: parts.who,
    action: 'state.import',
    target: 'state',
    asked: { records: records.length },
    make: () => importParts(parts, records, false),
    note: (counts) => (Object.values(counts).some(isChange) ? { from: null, to: counts } : null),
  });
}

/** Rejects with PartlyMadeError if something was written before a part failed. */
async function importParts(
  parts: StateParts,
  records: readonly StateRecord[],
  isDryRun: boolean,
): Promise<StateCounts> {
  const made: Partial<Record<keyof StateCounts, ImportedCount>> = {};
  const part = async (
    name: keyof StateCounts,
    run: (counts: ImportedCount) => Promise<void>,
  ): Promise<ImportedCount> => {
    const counts = { added: 0, replaced: 0, unchanged: 0, leftOut: 0 };
    // Its counts so far are those of its writes so far.
    made[name] = counts;
    try {
      await run(counts);
      return counts;
    } catch (error) {
      const changed = Object.entries(made).filter(([, written]) => isChange(written));
      if (isDryRun || changed.length === 0) throw error;
      const texts = changed.map(([kind, { added, replaced }]) => `${kind}: ${added} new, ${replaced} replaced`);
      throw new PartlyMadeError(Object.fromEntries(changed), texts.join('; '), error);
    }
  };
  return {
    keys: await part('keys', (counts) => importKeys(parts, records, isDryRun, counts)),
    times: await part('times', (counts) => importTimes(parts, records, isDryRun, counts)),
    maintenance: await part('maintenance', (counts) => importMaintenance(parts, records, isDryRun, counts)),
    audit: await part('audit', async (counts) => {
      const entries = records.flatMap((record) => (record.kind === 'audit' ? [record.entry] : []));
      Object.assign(counts, await parts.audit.restore(entries, isDryRun));
    }),
  };
}

const isChange = ({ added, replaced }: Pick<ImportedCount, 'added' | 'replaced'>): boolean => added + replaced > 0;

async function importKeys(
  { registry }: StateParts,
  records: readonly StateRecord[],
  isDryRun: boolean,
  counts: ImportedCount,
): Promise<void> {
  const keys = records.flatMap((record, index) => (record.kind === 'key' ? [{ key: record.key, index }] : []));
  if (keys.length === 0) return;
  const imported = keys.map(({ key }) => key);
  try {
    Object.assign(counts, await registry.importKeys(imported, isDryRun));
  } catch (error) {
    if (!(error instanceof KeyStateError)) throw error;
    throw new KeyStateError(
      error.message.replaceAll(/keys\[(\d+)\]/g, (_, place) => `records[${keys[Number(place)]?.index ?? '?'}]`),
    );
  }
}

async function importTimes(
  { ttl, ttlControl, clock }: StateParts,
  records: readonly StateRecord[],
  isDryRun: boolean,
  counts: ImportedCount,
): Promise<void> {
  const nowMs = clock.nowMs();
  for (const cacheClass of CACHE_CLASSES) {
    const present = withoutEnded(ttl.overridesOf(cacheClass), nowMs);
    const wanted = records.flatMap((record) =>
      record.kind === 'time' && record.cacheClass === cacheClass ? [record.override] : [],
    );
    const going = withoutEnded(wanted, nowMs);
    counts.leftOut += wanted.length - going.length;
    const same = (override: TtlOverride): TtlOverride | undefined =>
      present.find((one) => nameOf({ cacheClass, override: one }) === nameOf({ cacheClass, override }));
    const changed = going.filter((override) => !isDeepStrictEqual(same(override), override));
    counts.unchanged += going.length - changed.length;
    for (const override of inOrder(present, changed)) {
      const { name, ms, untilMs } = override;
      if (!isDryRun) await ttlControl.set(cacheClass, { [name]: ms }, untilMs);
      if (changed.includes(override)) counts[same(override) === undefined ? 'added' : 'replaced'] += 1;
    }
  }
}

/**
 * The changes in the order in which they are set: those for good first, and then those for a while, with those that are there
 * already and that one for good ends, because it ends the one that covers it.
 */
function inOrder(present: readonly TtlOverride[], changed: readonly TtlOverride[]): readonly TtlOverride[] {
  const lasting = changed.filter(({ untilMs }) => untilMs === null);
  const covering = mergeOverrides(
    present.filter(({ name, untilMs }) => untilMs !== null && lasting.some((one) => one.name === name)),
    changed.filter(({ untilMs }) => untilMs !== null),
  );
  return [...lasting, ...covering];
}

async function importMaintenance(
  { maintenance, clock }: StateParts,
  records: readonly StateRecord[],
  isDryRun: boolean,
  counts: ImportedCount,
): Promise<void> {
  const wanted = records.find((record) => record.kind === 'maintenance')?.maintenance;
  if (wanted === undefined) return;
  const { sinceMs, untilMs, by } = wanted;
  const current = maintenance.current();
  if (untilMs <= clock.nowMs()) counts.leftOut += 1;
  else if (isDeepStrictEqual(current, wanted)) counts.unchanged += 1;
  else {
    if (!isDryRun) await maintenance.begin(untilMs, by, sinceMs);
    counts[current === null ? 'added' : 'replaced'] += 1;
  }
}
