/** The records of the soak's store. */
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights } from '../../support/records.ts';
import type { StoreServer } from '../../support/store-server.ts';

/** In every text of the store: it must never be found where records don't belong. */
export const RECORD_MARK = 'planted-record';
export const SCORECARD_ID = 'sc_0';
const TURNS = Array.from({ length: 120 }, (_, i) => `Riley: ${RECORD_MARK} says ${i} and goes on for a while`).join(
  '\n',
);

export interface SoakRecord {
  readonly id: string;
  readonly workspaceId: string;
}

export interface RecordCounts {
  readonly workspaces: number;
  readonly perWorkspace: number;
}

export function recordsOf({ workspaces, perWorkspace }: RecordCounts): readonly SoakRecord[] {
  return Array.from({ length: workspaces }, (_, place) => {
    const workspaceId = `${String(place + 1).padStart(8, '0')}-0000-4000-8000-000000000000`;
    return Array.from({ length: perWorkspace }, (__, i) => ({ id: `ev_${place}_${i}`, workspaceId }));
  }).flat();
}

export function fill(store: StoreServer, records: readonly SoakRecord[]): void {
  for (const record of records) {
    const part = { evaluationId: record.id, workspaceId: record.workspaceId };
    putVersion(store, record, 0);
    store.put({
      transcripts: [aTranscript({ ...part, body: TURNS })],
      scoredCards: [{ ...aScoredCard(part), scorecard: { name: RECORD_MARK, sections: [] } }],
      dealInsights: [dealInsights({ ...part, permalink: RECORD_MARK, insights: { text: RECORD_MARK } })],
    });
  }
  const workspaceId = records[0]?.workspaceId ?? '';
  store.put({
    scorecards: [aScorecard({ _id: SCORECARD_ID, workspaceId, name: RECORD_MARK, rubric: { RECORD_MARK } })],
  });
}

/** Puts an evaluation whose title names its version. */
export function putVersion(store: StoreServer, { id, workspaceId }: SoakRecord, version: number): void {
  const title = `${RECORD_MARK} ${id} v${version}`;
  store.put({ evaluations: [anEvaluation({ _id: id, workspaceId, title, source: RECORD_MARK })] });
}

/** The version that an answer with the evaluation shows; null if it shows none. */
export function versionIn(text: string, id: string): number | null {
  const version = new RegExp(`${id} v(\\d+)`).exec(text)?.[1];
  return version === undefined ? null : Number(version);
}
