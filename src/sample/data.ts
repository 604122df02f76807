/** The sample's records, the same for the same seed: evaluations are made at once, their parts when they are read. */
import type { EvaluationRecord } from '../domain/records.ts';
import { type Call, createCall, createWorkspaces } from './call.ts';
import { createDealInsights, createEvaluation, createRubric, createScoredCard } from './evaluation.ts';
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
/** Broken records are in the second workspace only, at these places of its list: never on the first page. */
const DAMAGED_WORKSPACE = 1;
const FIRST_DAMAGED = 100;
const DAMAGED_EVERY = 40;
const HUGE_WORKSPACE = 2;
const HUGE = { written: 'huge', declared: 'speaker_text', crlf: false, isOdd: false, turnCount: 400 } as const;

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
  // A small sample has fewer places, and so fewer broken records.
  const damageable = completedIds(DAMAGED_WORKSPACE);
  const damaged = new Map(DAMAGES.map((damage, i) => [damageable[FIRST_DAMAGED + i * DAMAGED_EVERY], damage] as const));
  const calls = new Map(
    entries.map(({ call }) => [call.id, call.id === huge ? { ...call, transcript: HUGE } : call] as const),
  );
  const records = new StoreRecords();
  for (const { call, record } of entries) {
    const planted = plantInternals(record);
    records.evaluations.set(call.id, damaged.get(call.id)?.(planted) ?? planted);
  }
  for (const workspace of workspaces) {
    for (const card of workspace.scorecards.filter(({ retired }) => !retired)) {
      records.scorecards.set(card.id, plantInternals(createRubric(workspace, card)));
    }
  }
  /** A part is made when it is read: all of them together would take gigabytes. */
  const part = (isThere: (call: Call) => boolean, create: (call: Call) => JsonObject) => (id: string) => {
    const call = calls.get(id);
    return call === undefined || !isThere(call) ? undefined : plantInternals(create(call));
  };
  records.transcripts.make = part(isTranscribed, createTranscript);
  records.scoredCards.make = part(isScored, createScoredCard);
  records.dealInsights.make = part((call) => isScored(call) && call.hasInsights, createDealInsights);
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

/** None of these may ever be published. `internal-only` stands in every text, so that a leak can be searched for. */
const INTERNALS = {
  modelRun: 7,
  reviewerNotes: 'internal-only: check with the team lead',
  costCents: 24,
  internalFlags: ['internal-only'],
};
/** Their members are free-form and are published as they are, so nothing internal is planted there. */
const OPEN_MEMBERS: ReadonlySet<string> = new Set(['rubric', 'insights']);

/** Copies the record with internal members, in objects inside objects and inside arrays too. */
function plantInternals(record: JsonObject): JsonObject {
  const plantInside = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plantInside);
    return isJsonObject(value) ? plantInternals(value) : value;
  };
  const copy = Object.entries(record).map(
    ([name, value]) => [name, OPEN_MEMBERS.has(name) ? value : plantInside(value)] as const,
  );
  return { ...Object.fromEntries(copy), ...INTERNALS };
}
