/**
 * The store behind the gateway that is measured, in a process of its own: lists, single evaluations and a long transcript.
 * Any other id has an evaluation too, and any scorecard's list holds some, so that a miss can be had without end. Prints {"port": N}.
 */
import { anEvaluation, aTranscript, WORKSPACE_A } from '../../support/records.ts';
import { createStoreServer, sendJson } from '../../support/store-server.ts';
import { EVALUATIONS, TRANSCRIPT_BYTES, TRANSCRIPT_ID } from './paths.ts';

const store = await createStoreServer();
const evaluations = Array.from({ length: EVALUATIONS }, (_, index) =>
  anEvaluation({
    _id: `ev_${index}`,
    title: `Discovery call ${index} with Northwind`,
    createdAtMs: 1_772_600_767_089 + index,
  }),
);
const line = 'Riley Ortega: Thanks for joining, let us go through what you have in mind for the next quarter.\n';
store.put({
  evaluations,
  transcripts: [
    aTranscript({
      evaluationId: TRANSCRIPT_ID,
      workspaceId: WORKSPACE_A,
      body: line.repeat(TRANSCRIPT_BYTES / line.length),
    }),
  ],
});
store.override(/\/evaluations\/any_\d+$/, (request, response) => {
  const id = /any_\d+$/.exec(request.url ?? '')?.[0] ?? 'any_0';
  sendJson(request, response, anEvaluation({ _id: id }));
});
store.override(/\/evaluations$/, (request, response) => {
  const { searchParams } = new URL(request.url ?? '', store.url);
  const [offset, limit] = [Number(searchParams.get('offset')), Number(searchParams.get('limit'))];
  const scorecard = Number(searchParams.get('scorecardId')?.slice(-12) ?? 0);
  const first = (scorecard + offset) % (EVALUATIONS - limit);
  sendJson(request, response, { items: evaluations.slice(first, first + limit), total: EVALUATIONS });
});
const port = Number(new URL(store.url).port);
process.stdout.write(`${JSON.stringify({ port, token: store.token })}\n`);
