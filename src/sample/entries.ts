/** The sample's evaluations in their order, with the few that are broken and the one that is huge. */
import type { EvaluationRecord } from '../domain/records.ts';
import { createCall } from './call.ts';
import type { Call, CallContext } from './call.ts';
import { createEvaluation } from './evaluation.ts';
import { compareNewestFirst, searchedTexts } from './query.ts';
import { DAMAGES } from './traps.ts';
import type { Damage } from './traps.ts';

export interface Entry {
  readonly call: Call;
  /** Whole, and without internal members. */
  readonly record: EvaluationRecord;
  /** What a list's text search looks at. */
  readonly texts: readonly string[];
  /** What is wrong with the record when it is sent. */
  readonly damage: Damage | null;
}

/** 5,000 evaluations span a year and a half; more of them don't reach further back. */
const SPAN_MS = 540 * 86_400_000;
const MAX_GAP_MS = SPAN_MS / 5000;
/** Broken records are in the second workspace only; at full size they are never on the first page of a list. */
const DAMAGED_WORKSPACE = 1;
const WHOLE_AT_FIRST = 100;
/** At most one record in so many is broken. */
const MIN_RECORDS_A_DAMAGE = 20;
const HUGE_WORKSPACE = 2;

/** So many evaluations, newest first. */
export function createEntries(context: Omit<CallContext, 'gapMs'>, evaluations: number): readonly Entry[] {
  const { seed, workspaces } = context;
  const gapMs = Math.min(MAX_GAP_MS, SPAN_MS / evaluations);
  const entries = Array.from({ length: evaluations }, (_, index): Entry => {
    const call = createCall({ ...context, gapMs }, index);
    const record = createEvaluation(seed, call);
    return { call, record, texts: searchedTexts(record), damage: null };
  }).toSorted((a, b) => compareNewestFirst(a.record, b.record));
  const damages = chooseDamages(completedIn(entries, workspaces[DAMAGED_WORKSPACE]?.id));
  const huge = chooseHuge(completedIn(entries, workspaces[HUGE_WORKSPACE]?.id));
  return entries.map((entry) => {
    if (entry === huge) return withHugeTranscript(entry);
    return { ...entry, damage: damages.get(entry) ?? null };
  });
}

function completedIn(entries: readonly Entry[], workspaceId: string | undefined): readonly Entry[] {
  return entries.filter(
    ({ record, call }) => record.workspaceId === workspaceId && record.state === 'COMPLETED' && !call.isShowcase,
  );
}

/** Spreads the damages over the candidates; a small sample gets fewer of them. */
function chooseDamages(candidates: readonly Entry[]): ReadonlyMap<Entry, Damage> {
  const count = Math.min(DAMAGES.length, Math.floor(candidates.length / MIN_RECORDS_A_DAMAGE));
  const first = Math.min(WHOLE_AT_FIRST, Math.floor(candidates.length / 4));
  const step = Math.floor((candidates.length - first) / Math.max(1, count));
  const chosen = DAMAGES.slice(0, count).flatMap((damage, index) => {
    const entry = candidates[first + index * step];
    return entry === undefined ? [] : [[entry, damage] as const];
  });
  return new Map(chosen);
}

function chooseHuge(candidates: readonly Entry[]): Entry | undefined {
  return candidates[Math.floor(candidates.length / 3)];
}

function withHugeTranscript(entry: Entry): Entry {
  const transcript = {
    written: 'huge',
    declared: 'speaker_text',
    crlf: false,
    flavour: 'plain',
    turnCount: 400,
  } as const;
  return { ...entry, call: { ...entry.call, transcript } };
}
