/** The questions behind the endpoints of the workspace surface. */
import type { Asks, ListAsked, SingleAsked, SingleKind } from '../asked.ts';
import { idOf, listQuery, type PageNumber } from '../read.ts';
import { parseReportsQuery } from './query.ts';

export interface ReportsAsked extends ListAsked {
  readonly page: PageNumber;
}

export const askReports: Asks<ReportsAsked> = (view) => {
  const query = parseReportsQuery(view.query());
  const page = { page: query.page, pageSize: query.limit };
  return { kind: 'list', query: listQuery([view.parameter('workspaceId').toLowerCase()], page, query), page };
};

/** A report of another workspace than the path's is none (K5). Parameters of the query are ignored (Q2). */
function ofReport<K extends SingleKind>(kind: K): Asks<SingleAsked<K>> {
  return (view) => ({
    kind,
    id: idOf(view, 'reportId'),
    workspaceIds: [view.parameter('workspaceId').toLowerCase()],
  });
}

export const askReport = ofReport('evaluation');
export const askScorecard = ofReport('scorecard');
export const askDealInsights = ofReport('dealInsights');
export const askTranscript = ofReport('transcript');
