/** Events and what they leave, as they are kept in Redis. All that is read back is checked: another release may have written it. */
import { z } from 'zod';
import type { Entry } from './chain.ts';
import type { Changed, JournalEvent, LastPurge, Snapshot, TimeOverride } from './journal.ts';

/** JavaScript can write it as a date. */
const timeMs = z.int().min(0).max(8.64e15);
const count = z.int().nonnegative();
const from03 = z.string().optional();
const endings = z.array(count).optional();
const overrides = z.array(z.object({ name: z.string(), ms: z.number(), untilMs: timeMs.nullable() }));
const maintenance = z.object({ sinceMs: timeMs, untilMs: timeMs, by: z.string() });

const change = z.object({
  tag: z.string(),
  workspace: z.string(),
  kinds: z.array(z.string()),
  isCreated: z.boolean(),
  isDeleted: z.boolean(),
  previousWorkspace: z.string().nullable(),
  etags: z.record(z.string(), z.string()),
  shown: z.object({ digest: z.string(), requestedAtMs: timeMs }).nullable(),
});

const changesSchema = z.object({
  kind: z.literal('changes'),
  mode: z.enum(['soft', 'hard']),
  isAnnounced: z.boolean(),
  atMs: timeMs,
  changes: z.array(change),
  lists: z.array(z.string()),
});

const eventSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('purge'), tags: z.array(z.string()), mode: z.enum(['soft', 'hard']), from03 }),
  z.object({
    kind: z.literal('moved'),
    key: z.string(),
    workspaces: z.array(z.string()),
    requestedAtMs: timeMs,
    endings,
  }),
  z.object({ kind: z.literal('times'), class: z.string(), overrides }),
  z.object({ kind: z.literal('maintenance'), maintenance: maintenance.nullable() }),
  z.object({ kind: z.literal('keys'), hashes: z.array(z.string()).nullable(), from03 }),
  changesSchema,
  z.object({ kind: z.literal('forgotten'), upTo: count, endings }),
  z.object({ kind: z.literal('restored') }),
  z.object({ kind: z.literal('swept'), upTo: count }),
]) satisfies z.ZodType<JournalEvent>;

const KINDS: ReadonlySet<string> = new Set(eventSchema.options.map(({ shape }) => shape.kind.value));
const ofAnyKind = z.looseObject({ kind: z.string() });
/** An event that can't be read may purge anything: another release may know more. */
const ANY_PURGE: JournalEvent = { kind: 'purge', tags: ['all'], mode: 'hard' };

/**
 * Null for the entry that begins a history, and for a kind that another release knows: it changes nothing that this one keeps.
 * Anything else that can't be read is taken for a purge of everything.
 */
export function readEvent(text: string): JournalEvent | null {
  if (text === '') return null;
  const value = parsed(text);
  const event = eventSchema.safeParse(value).data;
  if (event !== undefined) return event;
  const other = ofAnyKind.safeParse(value).data;
  return other === undefined || KINDS.has(other.kind) ? ANY_PURGE : null;
}

/** Null for what is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The field that an event replaces, and its value there; empty for none. Null for an event that replaces nothing. */
export function registerOf(event: JournalEvent): { readonly field: string; readonly value: string } | null {
  if (event.kind === 'times') {
    return {
      field: `times:${event.class}`,
      value: event.overrides.length === 0 ? '' : JSON.stringify(event.overrides),
    };
  }
  if (event.kind !== 'maintenance') return null;
  return { field: 'maintenance', value: event.maintenance === null ? '' : JSON.stringify(event.maintenance) };
}

/** An entry of the stream: its id, and its fields and values in turn, in the order in which they are written. */
const entrySchema = z
  .tuple([
    z.string().regex(/^\d+-0$/),
    z.tuple([z.literal('word'), z.string(), z.literal('after'), z.string(), z.literal('event'), z.string()]),
  ])
  .transform(([id, [, word, , after, , text]]): Entry => ({ sequence: Number.parseInt(id, 10), word, after, text }));

export const entriesSchema = z.array(entrySchema);

/** Fields and values in turn, as a script returns a hash. */
const fieldsSchema = z.array(z.string()).transform((pairs): ReadonlyMap<string, string> => {
  const names = pairs.filter((_, index) => index % 2 === 0);
  return new Map(names.map((name, index) => [name, pairs[2 * index + 1] ?? '']));
});

const positionParts = [z.string(), z.coerce.number().int().nonnegative(), z.string()] as const;
export const caughtUpSchema = z
  .tuple([...positionParts, z.enum(['', 'joined', 'trimmed', 'lost']), entriesSchema, fieldsSchema])
  .transform(([history, sequence, word, because, entries, fields]) => ({
    position: { history, sequence, word },
    because,
    entries,
    fields,
  }));
/** The position of the end, and what the script returned besides. */
export const changeSchema = z
  .tuple([...positionParts], z.unknown())
  .transform(([history, sequence, word, ...results]) => ({ position: { history, sequence, word }, results }));

/** The fields of the hash beside the position. A field that can't be read counts as not set. */
export function readSnapshot(fields: ReadonlyMap<string, string>): Omit<Snapshot, 'because' | 'position'> {
  const purges = new Map<string, LastPurge>();
  const times = new Map<string, readonly TimeOverride[]>();
  const lists = new Map<string, LastPurge>();
  const changes: { sequence: number; event: Changed }[] = [];
  for (const [field, value] of fields) {
    const [, kind, name = ''] = /^(purge|times|changes|lists):(.*)$/s.exec(field) ?? [];
    if (kind === 'purge') purges.set(name, lastIn(value));
    if (kind === 'lists') lists.set(name, lastIn(value));
    if (kind === 'changes') {
      const event = changesSchema.safeParse(parsed(value)).data;
      // An event that can't be read may have changed anything.
      if (event === undefined) purges.set('all', { soft: 0, hard: Number(name) });
      else changes.push({ sequence: Number(name), event });
    }
    if (kind === 'times') times.set(name, overrides.safeParse(parsed(value)).data ?? []);
  }
  return {
    purges,
    times,
    lists,
    changes: changes.toSorted((one, other) => one.sequence - other.sequence),
    forgotten: Number(fields.get('forgotten') ?? 0),
    restored: Number(fields.get('restored') ?? 0),
    endings: endingsIn(fields),
    sweptUpTo: Number(fields.get('swept') ?? 0),
    maintenance: maintenance.safeParse(parsed(fields.get('maintenance') ?? '')).data ?? null,
  };
}

function lastIn(value: string): LastPurge {
  const [soft = 0, hard = 0] = value.split(' ').map(Number);
  return { soft, hard };
}

/** Fields `endings:1`, `endings:2` and so on. */
function endingsIn(fields: ReadonlyMap<string, string>): readonly number[] {
  const found: number[] = [];
  for (let place = 1; fields.has(`endings:${place}`); place += 1) {
    found.push(Number(fields.get(`endings:${place}`)) || 0);
  }
  return found;
}
