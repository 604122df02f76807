/** The sample's records, the same for the same seed: evaluations are made at once, their parts when they are read. */
import type { EvaluationRecord } from '../domain/records.ts';
import { type Call, createCall } from './call.ts';
import { createDealInsights, createEvaluation } from './evaluation.ts';
import { compareNewestFirst } from './query.ts';
import { createRandom } from './random.ts';
import { createRecords, type JsonObject, type StoreRecords } from './records.ts';
import { createRubric, createScoredCard } from './scored-card.ts';
import { createTranscript } from './transcript.ts';
import { DAMAGES, plantInternals } from './traps.ts';
import { createWorkspaces } from './world.ts';

export interface SampleOptions {
  readonly seed: number;
  /** How many evaluations: 1 to 1,000,000. */
  readonly evaluations: number;
  /** When the newest evaluation is about an hour old, in Unix milliseconds. */
  readonly nowMs?: number;
}
export interface SampleData {
  readonly workspaceIds: readonly string[];
  /** All of them, newest first, whole and without internal members: what tests compare with. */
  readonly evaluations: readonly EvaluationRecord[];
  /** The broken records, and the path of the member that is wrong in each. */
  readonly malformed: readonly { readonly id: string; readonly path: string }[];
  /** The completed evaluation whose transcript is about 2 MB; null where the third workspace has no completed one. */
  readonly hugeTranscriptId: string | null;
  /** What the store serves: with internal members, and with the broken records. It ships no API keys. */
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

const DEFAULT_NOW_MS = Date.UTC(2026, 10, 16, 9);
const MAX_EVALUATIONS = 1_000_000;
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

interface Entry {
  readonly call: Call;
  readonly record: EvaluationRecord;
}

/**
 * Makes a sample. No clock and no unseeded randomness goes into it: equal options give equal records.
 * Throws a RangeError for a number of evaluations out of range.
 */
export function createSampleData({ seed, evaluations, nowMs = DEFAULT_NOW_MS }: SampleOptions): SampleData {
  if (!Number.isInteger(evaluations) || evaluations < 1 || evaluations > MAX_EVALUATIONS) {
    throw new RangeError(`the number of evaluations must be an integer from 1 to ${MAX_EVALUATIONS}`);
  }
  const workspaces = createWorkspaces(seed);
  const gapMs = Math.min(MAX_GAP_MS, SPAN_MS / evaluations);
  const entries = Array.from({ length: evaluations }, (_, index): Entry => {
    const call = createCall({ seed, nowMs, workspaces, gapMs }, index);
    return { call, record: createEvaluation(seed, call) };
  }).toSorted((a, b) => compareNewestFirst(a.record, b.record));
  const completed = (workspace: number): readonly Entry[] =>
    entries.filter(
      ({ record, call }) => isScored(call) && !call.isShowcase && record.workspaceId === workspaces[workspace]?.id,
    );
  const candidates = completed(HUGE_WORKSPACE);
  const huge = candidates[Math.floor(candidates.length / 3)]?.record._id ?? null;
  const malformed = chooseDamaged(completed(DAMAGED_WORKSPACE));

  const calls = new Map(
    entries.map(({ call }) => [call.id, call.id === huge ? { ...call, transcript: HUGE } : call] as const),
  );
  const rubrics = new Map(
    workspaces.flatMap((workspace) =>
      workspace.scorecards.filter(({ retired }) => !retired).map((card) => [card.id, { workspace, card }] as const),
    ),
  );
  const records = createRecords();
  for (const { record } of entries) {
    const damage = DAMAGES.find(({ path }) => malformed.some((one) => one.id === record._id && one.path === path));
    const planted = plantInternals(record, createRandom(seed, 'internals of evaluation', record._id));
    records.evaluations.set(record._id, damage?.apply(planted) ?? planted);
  }
  /** A part is made when it is read: all of them together would take gigabytes. */
  const part =
    (kind: string, isThere: (call: Call) => boolean, create: (seed: number, call: Call) => JsonObject) =>
    (id: string): JsonObject | undefined => {
      const call = calls.get(id);
      if (call === undefined || !isThere(call)) return undefined;
      return plantInternals(create(seed, call), createRandom(seed, `internals of ${kind}`, id));
    };
  records.transcripts.make = part('transcript', (call) => isTranscribed(seed, call), createTranscript);
  records.scoredCards.make = part('scorecard', isScored, createScoredCard);
  records.dealInsights.make = part('insights', (call) => isScored(call) && call.hasInsights, createDealInsights);
  records.scorecards.make = (id) => {
    const found = rubrics.get(id);
    if (found === undefined) return undefined;
    return plantInternals(createRubric(found.workspace, found.card), createRandom(seed, 'internals of rubric', id));
  };
  return {
    workspaceIds: workspaces.map(({ id }) => id),
    evaluations: entries.map(({ record }) => record),
    malformed,
    hugeTranscriptId: huge,
    records,
    demo: demoOf(entries),
  };
}

/** Spreads the damages over the candidates; a small sample gets fewer of them. */
function chooseDamaged(candidates: readonly Entry[]): SampleData['malformed'] {
  const count = Math.min(DAMAGES.length, Math.floor(candidates.length / MIN_RECORDS_PER_DAMAGE));
  const first = Math.min(WHOLE_AT_FIRST, Math.floor(candidates.length / 4));
  const step = Math.floor((candidates.length - first) / Math.max(1, count));
  return DAMAGES.slice(0, count).flatMap(({ path }, index) => {
    const id = candidates[first + index * step]?.record._id;
    return id === undefined ? [] : [{ id, path }];
  });
}

function isScored({ state }: Call): boolean {
  return state === 'COMPLETED';
}

/** Half of the failed ones failed only after their transcript was there. */
function isTranscribed(seed: number, { id, state }: Call): boolean {
  if (state === 'FAILED') return createRandom(seed, 'failed late', id).chance(0.5);
  return state === 'SCORING' || state === 'COMPLETED';
}

function demoOf(entries: readonly Entry[]): DemoIds {
  const [report, call = report] = entries.filter((entry) => entry.call.isShowcase).map(({ record }) => record);
  const scorecardId = call?.scorecardRef.id;
  if (report === undefined || call === undefined || typeof scorecardId !== 'string') {
    throw new RangeError('a sample has at least one evaluation that is whole in every part');
  }
  return { workspaceId: call.workspaceId, reportId: report._id, callId: call._id, scorecardId };
}
