/** What the store of the soak holds: every text bears a mark that must never be found where records don't belong. */
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights } from '../records.ts';
import type { StoreServer } from '../store-server.ts';

export const RECORD_MARK = 'planted-record';
export const WORKSPACES = ['a', 'b', 'c'].map((letter) => `${letter.repeat(8)}-0000-4000-8000-000000000000`);
const IDS_A_WORKSPACE = 60;
const TURNS = 120;

export interface SoakRecord {
  readonly id: string;
  readonly workspaceId: string;
}

export const SCORECARD_ID = 'sc_0';

export function fillStore(store: StoreServer): readonly SoakRecord[] {
  const records = WORKSPACES.flatMap((workspaceId, place) =>
    Array.from({ length: IDS_A_WORKSPACE }, (_, i) => ({ id: `ev_${place}_${i}`, workspaceId })),
  );
  const turns = Array.from({ length: TURNS }, (_, i) => `Riley: ${RECORD_MARK} says ${i} and goes on for a while`);
  for (const { id, workspaceId } of records) {
    const part = { evaluationId: id, workspaceId };
    store.put({
      evaluations: [anEvaluation({ _id: id, workspaceId, title: `${RECORD_MARK} ${id}`, source: RECORD_MARK })],
      transcripts: [aTranscript({ ...part, body: turns.join('\n') })],
      scoredCards: [{ ...aScoredCard(part), scorecard: { name: RECORD_MARK, sections: [] } }],
      dealInsights: [dealInsights({ ...part, permalink: RECORD_MARK, insights: { text: RECORD_MARK } })],
    });
  }
  const workspaceId = WORKSPACES[0] ?? '';
  store.put({
    scorecards: [aScorecard({ _id: SCORECARD_ID, workspaceId, name: RECORD_MARK, rubric: { RECORD_MARK } })],
  });
  return records;
}
