/** What the interface warns of: members that nobody listed, and records that are broken. */
import type { Random } from './random.ts';
import { isJsonObject, type JsonObject } from './records.ts';

/** The internal members that the sample plants. None of them may ever be published. */
export const INTERNAL_MEMBERS = ['modelRun', 'reviewerNotes', 'costCents', 'internalFlags'] as const;
/** Stands in every internal text, so that a leak can be searched for. */
export const INTERNAL_MARKER = 'internal-only';
/** Their inside belongs to whoever wrote them and is published as it is, so nothing internal stands in there. */
const OPEN_MEMBERS: ReadonlySet<string> = new Set(['rubric', 'insights']);

/** A copy of the record with internal members here and there, in objects inside objects and inside arrays too. */
export function plantInternals(record: JsonObject, random: Random): JsonObject {
  const copy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record)) {
    copy[name] = OPEN_MEMBERS.has(name) ? value : plantInside(value, random);
  }
  if (random.chance(0.3)) {
    const [name, value] = createInternal(random);
    copy[name] = value;
  }
  return copy;
}

function plantInside(value: unknown, random: Random): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => plantInside(item, random));
  return isJsonObject(value) ? plantInternals(value, random) : value;
}

function createInternal(random: Random): readonly [string, unknown] {
  const name = random.pick(INTERNAL_MEMBERS);
  const values = {
    modelRun: { id: `${INTERNAL_MARKER}-run-${random.int(1000, 9999)}`, promptVersion: 7, usage: { tokens: 9120 } },
    reviewerNotes: `${INTERNAL_MARKER}: score looks [generous], check with the team lead`,
    costCents: random.int(2, 240),
    internalFlags: [`${INTERNAL_MARKER}:needs-review`, { escalated: true }],
  } as const satisfies Record<(typeof INTERNAL_MEMBERS)[number], unknown>;
  return [name, values[name]];
}

/** One way of being broken: which member is wrong, as a path with dots, and how. */
export interface Damage {
  readonly path: string;
  readonly apply: (record: JsonObject) => JsonObject;
}

/** A required member that is missing, or of the wrong type, at several depths. */
export const DAMAGES: readonly Damage[] = [
  { path: 'title', apply: ({ title: _title, ...rest }) => rest },
  { path: 'overallScore', apply: (record) => ({ ...record, overallScore: String(record['overallScore']) }) },
  { path: 'createdAtMs', apply: (record) => ({ ...record, createdAtMs: '2026-02-30T00:00:00Z' }) },
  { path: 'people', apply: (record) => ({ ...record, people: null }) },
  {
    path: 'evaluatee.email',
    apply: (record) => {
      const { email: _email, ...rest } = asObject(record['evaluatee']);
      return { ...record, evaluatee: rest };
    },
  },
  {
    path: 'crmLinks.0.objectType',
    apply: (record) => ({
      ...record,
      crmLinks: [{ objectType: 'opportunity', externalId: 'x1', label: 'Imported', href: null }],
    }),
  },
];

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
