/**
 * What is lost with the state Redis and cannot be made anew: keys, times set by operators, maintenance and the audit, as
 * records to export and import, each a JSON object with its kind. Not among them: requests counted for limits, when keys
 * were last used, purges (after a loss everything counts as purged) and cached answers.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  CACHE_CLASSES,
  type CacheClass,
  mergeOverrides,
  type TtlControl,
  type TtlOverride,
  type TtlPolicy,
  withoutEnded,
} from '../cache/ttl-policy.ts';
import { type ApiKey, KeyStateError } from '../keys/key.ts';
import type { KeyDirectory } from '../keys/registry.ts';
import type { Clock } from '../time/clock.ts';
import { formatDuration } from '../time/duration.ts';
import type { MaintenanceControl } from '../upstream/maintenance.ts';
import type { ImportedCount, StateCounts } from './answers.ts';
import { iso, isoOrNull } from './api.ts';
import type { Audit } from './audit.ts';
import { STATE_KINDS, type StateRecord, stateRecordBodies } from './bodies.ts';
import { makeChange } from './errors.ts';
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
 * Adds records to what is there; one that is there already is replaced, a key only as `importKeys` of the registry has it. An end that
 * has passed is not brought back. Made in parts: if it rejects, it may be repeated. `isDryRun`: only counts.
 */
export async function importState(
  parts: StateParts & { readonly who: string },
  records: readonly StateRecord[],
  isDryRun: boolean,
): Promise<StateCounts> {
  const make = async (): Promise<StateCounts> => ({
    keys: await importKeys(parts, records, isDryRun),
    times: await importTimes(parts, records, isDryRun),
    maintenance: await importMaintenance(parts, records, isDryRun),
    audit: {
      ...none(),
      ...(await parts.audit.restore(
        records.flatMap((record) => (record.kind === 'audit' ? [record.entry] : [])),
        isDryRun,
      )),
    },
  });
  if (isDryRun) return make();
  return makeChange(parts.audit, {
    who: parts.who,
    action: 'state.import',
    target: 'state',
    asked: { records: records.length },
    make,
    note: (counts) => {
      const isChanged = Object.values(counts).some(({ added, replaced }) => added + replaced > 0);
      return isChanged ? { from: null, to: counts } : null;
    },
  });
}

const none = (): ImportedCount => ({ added: 0, replaced: 0, unchanged: 0, leftOut: 0 });

async function importKeys({ registry }: StateParts, records: readonly StateRecord[], isDryRun: boolean) {
  const keys = records.flatMap((record, index) => (record.kind === 'key' ? [{ key: record.key, index }] : []));
  if (keys.length === 0) return none();
  try {
    const counts = await registry.importKeys(
      keys.map(({ key }) => key),
      isDryRun,
    );
    return { ...none(), ...counts };
  } catch (error) {
    if (!(error instanceof KeyStateError)) throw error;
    throw new KeyStateError(
      error.message.replaceAll(/keys\[(\d+)\]/g, (_, place) => `records[${keys[Number(place)]?.index ?? '?'}]`),
    );
  }
}

async function importTimes({ ttl, ttlControl, clock }: StateParts, records: readonly StateRecord[], isDryRun: boolean) {
  const counts = none();
  const nowMs = clock.nowMs();
  for (const cacheClass of CACHE_CLASSES) {
    const present = withoutEnded(ttl.overridesOf(cacheClass), nowMs);
    const wanted = records.flatMap((record) =>
      record.kind === 'time' && record.cacheClass === cacheClass ? [record.override] : [],
    );
    const going = withoutEnded(wanted, nowMs);
    counts.leftOut += wanted.length - going.length;
    const changed = going.filter((override) => {
      const same = present.find((one) => nameOf({ cacheClass, override: one }) === nameOf({ cacheClass, override }));
      const outcome = same === undefined ? 'added' : isDeepStrictEqual(same, override) ? 'unchanged' : 'replaced';
      counts[outcome] += 1;
      return outcome !== 'unchanged';
    });
    if (!isDryRun) await setTimes(ttlControl, cacheClass, present, changed);
  }
  return counts;
}

/** Those for good first, and then those for a while: one for good ends the one that covers it. */
async function setTimes(
  ttlControl: TtlControl,
  cacheClass: CacheClass,
  present: readonly TtlOverride[],
  changed: readonly TtlOverride[],
): Promise<void> {
  const lasting = changed.filter(({ untilMs }) => untilMs === null);
  const covering = mergeOverrides(
    present.filter(({ name, untilMs }) => untilMs !== null && lasting.some((one) => one.name === name)),
    changed.filter(({ untilMs }) => untilMs !== null),
  );
  for (const { name, ms, untilMs } of [...lasting, ...covering]) {
    await ttlControl.set(cacheClass, { [name]: ms }, untilMs);
  }
}

async function importMaintenance(
  { maintenance, clock }: StateParts,
  records: readonly StateRecord[],
  isDryRun: boolean,
) {
  const counts = none();
  const wanted = records.find((record) => record.kind === 'maintenance')?.maintenance;
  if (wanted === undefined) return counts;
  const { sinceMs, untilMs, by } = wanted;
  const current = maintenance.current();
  if (untilMs <= clock.nowMs()) counts.leftOut += 1;
  else if (isDeepStrictEqual(current, wanted)) counts.unchanged += 1;
  else {
    counts[current === null ? 'added' : 'replaced'] += 1;
    if (!isDryRun) await maintenance.begin(untilMs, by, sinceMs);
  }
  return counts;
}
