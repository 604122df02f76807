/** A workspace with one of everything, made anew, so that no test sees the records, the cache or the quota of another. */
import { randomUUID } from 'node:crypto';
import type { EvaluationRecord } from '../../../src/domain/records.ts';
import type { Ask, KeyRequest, Reply, TestGateway } from '../../support/gateway.ts';
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights } from '../../support/records.ts';
import type { StoreServer } from '../../support/store-server.ts';
import type { EndpointRow } from './endpoints.ts';

export interface Subject {
  readonly workspaceId: string;
  /** The evaluation. */
  readonly id: string;
  /** A UUID, which both surfaces take for a scorecard's id. */
  readonly scorecardId: string;
}

export function newId(prefix: string): string {
  return `${prefix}_${randomUUID()}`;
}

/** Ids that nothing is stored under. */
export function newSubject(workspaceId: string = randomUUID()): Subject {
  return { workspaceId, id: newId('ev'), scorecardId: randomUUID() };
}

/** Puts a completed evaluation with all its parts and its scorecard into the store. */
export function putSubject(
  store: StoreServer,
  subject: Subject = newSubject(),
  evaluation: Partial<EvaluationRecord> = {},
): Subject {
  const { workspaceId, id, scorecardId } = subject;
  const part = { evaluationId: id, workspaceId };
  store.put({
    evaluations: [
      anEvaluation({ _id: id, workspaceId, scorecardRef: { id: scorecardId, name: 'Discovery' }, ...evaluation }),
    ],
    transcripts: [aTranscript(part)],
    scoredCards: [aScoredCard(part)],
    dealInsights: [dealInsights(part)],
    scorecards: [aScorecard({ _id: scorecardId, workspaceId })],
  });
  return subject;
}

const PLENTY = 1_000_000;

/** Issues a key for the subject's workspace whose limits no test reaches; returns its token. */
export function keyFor(
  gateway: TestGateway,
  { workspaceId }: Pick<Subject, 'workspaceId'>,
  wanted: KeyRequest = {},
): Promise<string> {
  return gateway.issueKey({ workspaceIds: [workspaceId], perMinute: PLENTY, perHour: PLENTY, ...wanted });
}

/** A key that reads one endpoint of a subject, which is in the store unless it was made before. */
export async function readerOf(
  gateway: TestGateway,
  { path: pathOf }: Pick<EndpointRow, 'path'>,
  { subject = putSubject(gateway.store), ...wanted }: KeyRequest & { readonly subject?: Subject } = {},
) {
  const key = await keyFor(gateway, subject, wanted);
  const path = pathOf(subject);
  const ask = (how: Ask & { readonly query?: string } = {}): Promise<Reply> =>
    gateway.get(path + (how.query ?? ''), { key, ...how });
  return { subject, key, path, ask };
}
