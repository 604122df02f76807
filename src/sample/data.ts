/** The sample's records, the same for the same seed: evaluations are made at once, their parts when they are asked for. */
import type { ApiKeyRecord, EvaluationRecord } from '../domain/records.ts';
import type { Call } from './call.ts';
import { createEntries } from './entries.ts';
import type { Entry } from './entries.ts';
import { createDealInsights } from './evaluation.ts';
import { matches } from './query.ts';
import type { SampleListQuery } from './query.ts';
import { createRandom } from './random.ts';
import { createRubric, createScoredCard } from './scored-card.ts';
import { createTranscript } from './transcript.ts';
import { plantInternals } from './traps.ts';
import type { JsonObject } from './traps.ts';
import { createWorkspaces } from './world.ts';
import type { SampleWorkspace } from './world.ts';

export interface SampleOptions {
  readonly seed: number;
  /** How many evaluations: 1 to 1,000,000. */
  readonly evaluations: number;
  /** When the newest evaluation is about an hour old, in Unix milliseconds. */
  readonly nowMs?: number;
}
/** Absent parts are of two kinds: those that will never be there, and those that aren't there yet. */
export type SamplePart = JsonObject | 'NOT_FOUND' | 'NOT_READY';

/** A broken record that the sample holds, and the path of the member that is wrong. */
export interface MalformedEvaluation {
  readonly id: string;
  readonly path: string;
}
export interface SamplePage {
  readonly items: readonly JsonObject[];
  readonly total: number;
}
export interface SampleData {
  readonly seed: number;
  readonly workspaceIds: readonly string[];
  /** All of them, newest first, whole and without internal members: what tests compare with. */
  readonly evaluations: readonly EvaluationRecord[];
  readonly malformed: readonly MalformedEvaluation[];
  /** The completed evaluation whose transcript is about 2 MB; null where the third workspace has no completed one. */
  readonly hugeTranscriptId: string | null;
  /** Two completed evaluations that are whole in every part, of the first workspace (only one in a sample of one). */
  readonly showcaseIds: readonly string[];
  list(query: SampleListQuery): SamplePage;
  evaluation(id: string): SamplePart;
  transcript(id: string): SamplePart;
  scorecard(id: string): SamplePart;
  dealInsights(id: string): SamplePart;
  rubric(scorecardId: string): SamplePart;
  apiKey(sha256Hex: string): SamplePart;
  /** The sample ships no keys; whoever needs one at the store adds it by the lower-case hex of its SHA-256. */
  addApiKey(sha256Hex: string, record: ApiKeyRecord): void;
}

const DEFAULT_NOW_MS = Date.UTC(2026, 10, 16, 9);
const MAX_EVALUATIONS = 1_000_000;

/**
 * Makes a sample. No clock and no unseeded randomness goes into it: equal options give equal records.
 * Throws a RangeError for a number of evaluations out of range.
 */
export function createSampleData({ seed, evaluations, nowMs = DEFAULT_NOW_MS }: SampleOptions): SampleData {
  if (!Number.isInteger(evaluations) || evaluations < 1 || evaluations > MAX_EVALUATIONS) {
    throw new RangeError(`the number of evaluations must be an integer from 1 to ${MAX_EVALUATIONS}`);
  }
  const workspaces = createWorkspaces(seed);
  const entries = createEntries({ seed, nowMs, workspaces }, evaluations);
  return {
    seed,
    workspaceIds: workspaces.map(({ id }) => id),
    evaluations: entries.map(({ record }) => record),
    malformed: entries.flatMap(({ record, damage }) => (damage === null ? [] : { id: record._id, path: damage.path })),
    hugeTranscriptId: entries.find(({ call }) => call.transcript.written === 'huge')?.record._id ?? null,
    showcaseIds: entries.filter(({ call }) => call.isShowcase).map(({ record }) => record._id),
    ...createEvaluationReads(seed, entries),
    ...createPartReads(seed, entries),
    rubric: createRubricRead(seed, workspaces),
    ...createApiKeys(seed),
  };
}

/** The record as the store sends it: with internal members, and broken where it is one of the broken ones. */
function onTheWire(seed: number, { record, damage }: Entry): JsonObject {
  const planted = plantInternals(record, createRandom(seed, 'internals of evaluation', record._id));
  return damage === null ? planted : damage.apply(planted);
}

function createEvaluationReads(seed: number, entries: readonly Entry[]): Pick<SampleData, 'list' | 'evaluation'> {
  const byId = new Map(entries.map((entry) => [entry.record._id, entry]));
  return {
    list: (query) => {
      const found = entries.filter(({ record, texts }) => matches(record, texts, query));
      const page = found.slice(query.offset, query.offset + query.limit);
      return { items: page.map((entry) => onTheWire(seed, entry)), total: found.length };
    },
    evaluation: (id) => {
      const entry = byId.get(id);
      return entry === undefined ? 'NOT_FOUND' : onTheWire(seed, entry);
    },
  };
}

function createPartReads(
  seed: number,
  entries: readonly Entry[],
): Pick<SampleData, 'transcript' | 'scorecard' | 'dealInsights'> {
  const callOf = new Map(entries.map(({ call }) => [call.id, call]));
  const part =
    (kind: string, isThere: (call: Call) => boolean, make: (seed: number, call: Call) => JsonObject) =>
    (id: string): SamplePart => {
      const call = callOf.get(id);
      if (call === undefined) return 'NOT_FOUND';
      if (!isThere(call)) return 'NOT_READY';
      return plantInternals(make(seed, call), createRandom(seed, `internals of ${kind}`, id));
    };
  return {
    transcript: part('transcript', (call) => isTranscribed(seed, call), createTranscript),
    scorecard: part('scorecard', isScored, createScoredCard),
    dealInsights: part('insights', (call) => isScored(call) && call.hasInsights, createDealInsights),
  };
}

function isScored({ state }: Call): boolean {
  return state === 'COMPLETED';
}

/** Half of the failed ones failed only after their transcript was there. */
function isTranscribed(seed: number, { id, state }: Call): boolean {
  if (state === 'FAILED') return createRandom(seed, 'failed late', id).chance(0.5);
  return state === 'SCORING' || state === 'COMPLETED';
}

function createRubricRead(seed: number, workspaces: readonly SampleWorkspace[]): SampleData['rubric'] {
  const rubrics = new Map(
    workspaces.flatMap((workspace) =>
      workspace.scorecards
        .filter(({ retired }) => !retired)
        .map((card) => [card.id, createRubric(workspace, card)] as const),
    ),
  );
  return (id) => {
    const record = rubrics.get(id);
    if (record === undefined) return 'NOT_FOUND';
    return plantInternals(record, createRandom(seed, 'internals of rubric', id));
  };
}

function createApiKeys(seed: number): Pick<SampleData, 'apiKey' | 'addApiKey'> {
  const keys = new Map<string, ApiKeyRecord>();
  return {
    apiKey: (sha256Hex) => {
      const record = keys.get(sha256Hex);
      if (record === undefined) return 'NOT_FOUND';
      return plantInternals(record, createRandom(seed, 'internals of key', sha256Hex));
    },
    addApiKey: (sha256Hex, record) => {
      keys.set(sha256Hex, record);
    },
  };
}
