/** The records of the soak's store. */
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights } from '../../support/records.ts';
import type { StoreServer } from '../../support/store-server.ts';

/** In every text of the store: it must never be found where records don't belong. */
export const RECORD_MARK = 'planted-record';
export const WORKSPACES = ['a', 'b', 'c'].map((letter) => `${letter.repeat(8)}-0000-4000-8000-000000000000`);
export const SCORECARD_ID = 'sc_0';

export interface SoakRecord {
  readonly id: string;
  readonly workspaceId: string;
}

export const RECORDS: readonly SoakRecord[] = WORKSPACES.flatMap((workspaceId, place) =>
  Array.from({ length: 60 }, (_, i) => ({ id: `ev_${place}_${i}`, workspaceId })),
);

export function fill(store: StoreServer): void {
  const turns = Array.from({ length: 120 }, (_, i) => `Riley: ${RECORD_MARK} says ${i} and goes on for a while`);
  for (const { id, workspaceId } of RECORDS) {
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
}
