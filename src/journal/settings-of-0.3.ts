/** Times and maintenance in the form of 0.3 and in that of the journal. Pure. 0.5 deletes this file, with bridge-0.3.ts. */
import { z } from 'zod';
import { parsed } from './events.ts';
import type { EventOf, TimeOverride } from './journal.ts';

/** By the names of their fields in the journal's hash. */
export type Settings = ReadonlyMap<string, string>;

const TIMES_PREFIX = 'times:';
export const MAINTENANCE = 'maintenance';
const overrideSchema = z.object({ name: z.string(), ms: z.number(), untilMs: z.number().nullable() });
const overridesSchema = z.array(overrideSchema);
const maintenanceSchema = z.object({ sinceMs: z.number(), untilMs: z.number(), by: z.string() });

function orderOf({ name, untilMs }: TimeOverride): string {
  return `${name} ${untilMs === null ? 0 : 1}`;
}

function readOverrides(text: string): readonly TimeOverride[] {
  const overrides = overridesSchema.safeParse(parsed(text)).data ?? [];
  return overrides.toSorted((one, other) => orderOf(one).localeCompare(orderOf(other)));
}

/** The same setting is the same text, whoever wrote it; empty for none. */
export function canonical(name: string, text: string): string {
  if (name === MAINTENANCE) {
    const maintenance = maintenanceSchema.safeParse(parsed(text)).data;
    return maintenance === undefined ? '' : JSON.stringify(maintenance);
  }
  const overrides = readOverrides(text);
  return overrides.length === 0 ? '' : JSON.stringify(overrides);
}

export function eventOf(name: string, text: string): EventOf<'times'> | EventOf<'maintenance'> {
  return name === MAINTENANCE
    ? { kind: 'maintenance', maintenance: maintenanceSchema.safeParse(parsed(text)).data ?? null }
    : { kind: 'times', class: name.slice(TIMES_PREFIX.length), overrides: readOverrides(text) };
}

/** The times of 0.3 (`list.freshMs`: milliseconds; `list.freshMs.temporary`: milliseconds and end), as the journal has them. */
export function readTimes(fields: Readonly<Record<string, string>>): Settings {
  const byName = new Map<string, TimeOverride[]>();
  for (const [field, value] of Object.entries(fields)) {
    const [cacheClass = '', name = '', temporary] = field.split('.');
    const [ms = '', untilMs] = value.split(' ');
    if (!/^\d+$/.test(ms) || (temporary === undefined) !== (untilMs === undefined)) continue;
    const override = { name, ms: Number(ms), untilMs: untilMs === undefined ? null : Number(untilMs) };
    byName.set(TIMES_PREFIX + cacheClass, [...(byName.get(TIMES_PREFIX + cacheClass) ?? []), override]);
  }
  return new Map([...byName].map(([name, overrides]) => [name, canonical(name, JSON.stringify(overrides))]));
}

/** A setting of the journal as the fields that 0.3 has for it. */
export function fieldsOf(setting: string, text: string): ReadonlyMap<string, string> {
  if (setting === MAINTENANCE) return new Map([[MAINTENANCE, text]]);
  const cacheClass = setting.slice(TIMES_PREFIX.length);
  return new Map(
    readOverrides(text).map(({ name, ms, untilMs }) =>
      untilMs === null
        ? [`${cacheClass}.${name}`, String(ms)]
        : [`${cacheClass}.${name}.temporary`, `${ms} ${untilMs}`],
    ),
  );
}
