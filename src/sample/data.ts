/** The sample's records, the same for the same seed: evaluations are made at once, their parts when they are read. */
import type { EvaluationRecord } from '../domain/records.ts';
import { type Call, createCall, createWorkspaces } from './call.ts';
import { createDealInsights, createEvaluation, createRubric, createScoredCard } from './evaluation.ts';
import { Random } from './random.ts';
import { compareNewestFirst, isJsonObject, type JsonObject, StoreRecords } from './routes.ts';
import { createTranscript } from './transcript.ts';

export interface SampleData {
  readonly workspaceIds: readonly string[];
  /** All of them, newest first, whole and without internal members: tests compare with these. */
  readonly evaluations: readonly EvaluationRecord[];
  /** The completed evaluation whose transcript is about 2 MB; null if the third workspace has no completed one. */
  readonly hugeTranscriptId: string | null;
  /** The records that the store serves: with internal members, and with the broken ones. It ships no API keys. */
  readonly records: StoreRecords;
  /** Ids with which every public read has something to show, all of one workspace. */
  readonly demo: DemoIds;
}
export interface DemoIds {
  readonly workspaceId: string;
  readonly reportId: string;
  readonly callId: string;
  readonly scorecardId: string;
}

/** 5,000 evaluations span a year and a half; more of them don't reach further back. */
const SPAN_MS = 540 * 86_400_000;
const MAX_GAP_MS = SPAN_MS / 5000;
/** Broken records are in the second workspace only; at full size they are never on the first page of a list. */
const DAMAGED_WORKSPACE = 1;
const WHOLE_AT_FIRST = 100;
/** At most one record in so many is broken. */
const MIN_RECORDS_PER_DAMAGE = 20;
const HUGE_WORKSPACE = 2;
const HUGE = { written: 'huge', declared: 'speaker_text', crlf: false, flavour: 'plain', turnCount: 400 } as const;

/** Makes a sample of 1 to 1,000,000 evaluations. No clock and no unseeded randomness: equal options give equal records. */
export function createSampleData({ seed, evaluations }: { seed: number; evaluations: number }): SampleData {
  const workspaces = createWorkspaces(seed);
  const gapMs = Math.min(MAX_GAP_MS, SPAN_MS / evaluations);
  const entries = Array.from({ length: evaluations }, (_, index) => {
    const call = createCall({ seed, workspaces, gapMs }, index);
    return { call, record: createEvaluation(call) };
  }).toSorted((a, b) => compareNewestFirst(a.record, b.record));
  const completedIds = (workspace: number): readonly string[] =>
    entries
      .filter(({ call }) => isScored(call) && !call.isShowcase && call.workspace === workspaces[workspace])
      .map(({ call }) => call.id);
  const candidates = completedIds(HUGE_WORKSPACE);
  const huge = candidates[Math.floor(candidates.length / 3)] ?? null;
  const damaged = chooseDamaged(completedIds(DAMAGED_WORKSPACE));

  const calls = new Map(
    entries.map(({ call }) => [call.id, call.id === huge ? { ...call, transcript: HUGE } : call] as const),
  );
  const rubrics = new Map(
    workspaces.flatMap((workspace) =>
      workspace.scorecards.filter(({ retired }) => !retired).map((card) => [card.id, { workspace, card }] as const),
    ),
  );
  const records = new StoreRecords();
  for (const { call, record } of entries) {
    const planted = plantInternals(record, call.random('internals of evaluation'));
    records.evaluations.set(call.id, damaged.get(call.id)?.(planted) ?? planted);
  }
  /** A part is made when it is read: all of them together would take gigabytes. */
  const part = (kind: string, isThere: (call: Call) => boolean, create: (call: Call) => JsonObject) => (id: string) => {
    const call = calls.get(id);
    if (call === undefined || !isThere(call)) return undefined;
    return plantInternals(create(call), call.random(`internals of ${kind}`));
  };
  records.transcripts.make = part('transcript', isTranscribed, createTranscript);
  records.scoredCards.make = part('scorecard', isScored, createScoredCard);
  records.dealInsights.make = part('insights', (call) => isScored(call) && call.hasInsights, createDealInsights);
  records.scorecards.make = (id) => {
    const found = rubrics.get(id);
    if (found === undefined) return undefined;
    return plantInternals(createRubric(found.workspace, found.card), new Random(seed, 'internals of rubric', id));
  };
  return {
    workspaceIds: workspaces.map(({ id }) => id),
    evaluations: entries.map(({ record }) => record),
    hugeTranscriptId: huge,
    records,
    demo: demoOf(entries),
  };
}

function isScored({ state }: Call): boolean {
  return state === 'COMPLETED';
}

/** Half of the failed ones failed only after their transcript was there. */
function isTranscribed({ state, random }: Call): boolean {
  if (state === 'FAILED') return random('failed late').chance(0.5);
  return state === 'SCORING' || state === 'COMPLETED';
}

function demoOf(entries: readonly { readonly call: Call; readonly record: EvaluationRecord }[]): DemoIds {
  const [report, call = report] = entries.filter((entry) => entry.call.isShowcase).map(({ record }) => record);
  const scorecardId = call?.scorecardRef.id;
  if (report === undefined || call === undefined || typeof scorecardId !== 'string') {
    throw new RangeError('a sample has at least one evaluation that is whole in every part');
  }
  return { workspaceId: call.workspaceId, reportId: report._id, callId: call._id, scorecardId };
}

/** Ways of being broken: a member is missing or of the wrong type, at several depths. */
const DAMAGES: readonly ((record: JsonObject) => JsonObject)[] = [
  ({ title: _title, ...rest }) => rest,
  (record) => ({ ...record, overallScore: String(record['overallScore']) }),
  (record) => ({ ...record, createdAtMs: '2026-02-30T00:00:00Z' }),
  (record) => ({ ...record, people: null }),
  (record) => ({ ...record, evaluatee: { ...Object(record['evaluatee']), email: undefined } }),
  (record) => ({
    ...record,
    crmLinks: [{ objectType: 'opportunity', externalId: 'x1', label: 'Imported', href: null }],
  }),
];

/** Spreads the damages over the candidates, by their ids; a small sample gets fewer of them. */
function chooseDamaged(candidates: readonly string[]): ReadonlyMap<string | undefined, (typeof DAMAGES)[number]> {
  const count = Math.min(DAMAGES.length, Math.floor(candidates.length / MIN_RECORDS_PER_DAMAGE));
  const first = Math.min(WHOLE_AT_FIRST, Math.floor(candidates.length / 4));
  const step = Math.floor((candidates.length - first) / Math.max(1, count));
  return new Map(DAMAGES.slice(0, count).map((damage, index) => [candidates[first + index * step], damage]));
}

/** Stands in every internal text, so that a leak can be searched for. */
const INTERNAL_MARKER = 'internal-only';
/** Their members are free-form and are published as they are, so nothing internal is planted there. */
const OPEN_MEMBERS: ReadonlySet<string> = new Set(['rubric', 'insights']);

/**
 * Copies the record with internal members here and there, in objects inside objects and inside arrays too. None of them
 * may ever be published.
 */
function plantInternals(record: JsonObject, random: Random): JsonObject {
  const plantInside = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plantInside);
    return isJsonObject(value) ? plantInternals(value, random) : value;
  };
  const copy = Object.entries(record).map(
    ([name, value]) => [name, OPEN_MEMBERS.has(name) ? value : plantInside(value)] as const,
  );
  return { ...Object.fromEntries(copy), ...(random.chance(0.3) ? createInternal(random) : {}) };
}

function createInternal(random: Random): JsonObject {
  return random.pick<JsonObject>([
    { modelRun: { id: `${INTERNAL_MARKER}-run-7`, promptVersion: 7, usage: { tokens: 9120 } } },
    { reviewerNotes: `${INTERNAL_MARKER}: score looks [generous], check with the team lead` },
    { costCents: 24 },
    { internalFlags: [`${INTERNAL_MARKER}:needs-review`, { escalated: true }] },
  ]);
}
