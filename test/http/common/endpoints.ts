/** The ten endpoints of the specification as rows for tests that hold for each of them, with their exact texts. */
import type { Scope } from '../../../src/domain/vocabulary.ts';
import type { StoreServerResource } from '../../support/store-server.ts';
import type { Subject } from './subject.ts';

export interface EndpointRow {
  readonly name: string;
  readonly surface: 'v1' | 'v2';
  readonly scope: Scope;
  /** As logs and metrics name it. */
  readonly route: string;
  /** The resource that it reads from the store. */
  readonly resource: Exclude<StoreServerResource, 'apiKey' | 'unknown'>;
  readonly path: (subject: Subject) => string;
  /** The exact body of every 403. */
  readonly forbidden: string;
  /** The exact body of every 404; a list has none. */
  readonly notFound: string | null;
}

const V1_FORBIDDEN =
  '{"error":"This API key may not read reports here: it must be active, hold the scope reports.read, belong to the workspace, and come from an address that it allows."}';
const CALLS_FORBIDDEN =
  '{"error":{"message":"This API key may not read calls here: it must be active, hold the scope calls.read, be allowed the workspace, and come from an address that it allows."}}';
const RUBRIC_FORBIDDEN =
  '{"error":{"message":"This API key may not read rubrics: it must be active, hold the scope coaching.read, and come from an address that it allows."}}';

const v1 = { surface: 'v1', scope: 'reports.read', forbidden: V1_FORBIDDEN } as const;
const calls = { surface: 'v2', scope: 'calls.read', forbidden: CALLS_FORBIDDEN } as const;

const reportsPath = ({ workspaceId }: Subject): string => `/v1/workspaces/${workspaceId}/reports`;
const reportPath = (subject: Subject): string => `${reportsPath(subject)}/${subject.id}`;
const REPORT = '/v1/workspaces/{workspaceId}/reports/{reportId}';

export const LIST_REPORTS: EndpointRow = {
  ...v1,
  name: 'list reports',
  route: '/v1/workspaces/{workspaceId}/reports',
  resource: 'list',
  path: reportsPath,
  notFound: null,
};
export const GET_REPORT: EndpointRow = {
  ...v1,
  name: 'get report',
  route: REPORT,
  resource: 'evaluation',
  path: reportPath,
  notFound: '{"error":"There is no such report in this workspace."}',
};
export const GET_REPORT_SCORECARD: EndpointRow = {
  ...v1,
  name: 'get report scorecard',
  route: `${REPORT}/scorecard`,
  resource: 'scorecard',
  path: (subject) => `${reportPath(subject)}/scorecard`,
  notFound: '{"error":"There is no such report in this workspace, or its scorecard is not ready yet."}',
};
export const GET_REPORT_DEAL_INSIGHTS: EndpointRow = {
  ...v1,
  name: 'get report deal insights',
  route: `${REPORT}/deal-insights`,
  resource: 'dealInsights',
  path: (subject) => `${reportPath(subject)}/deal-insights`,
  notFound: '{"error":"There is no such report in this workspace, or its deal insights are not ready yet."}',
};
export const GET_REPORT_TRANSCRIPT: EndpointRow = {
  ...v1,
  name: 'get report transcript',
  route: `${REPORT}/transcript`,
  resource: 'transcript',
  path: (subject) => `${reportPath(subject)}/transcript`,
  notFound: '{"error":"There is no such report in this workspace, or its transcript is not ready yet."}',
};
export const LIST_CALLS: EndpointRow = {
  ...calls,
  name: 'list calls',
  route: '/v2/calls',
  resource: 'list',
  path: () => '/v2/calls',
  notFound: null,
};
export const GET_CALL: EndpointRow = {
  ...calls,
  name: 'get call',
  route: '/v2/calls/{callId}',
  resource: 'evaluation',
  path: ({ id }) => `/v2/calls/${id}`,
  notFound: '{"error":{"message":"There is no such call."}}',
};
export const GET_CALL_TRANSCRIPT: EndpointRow = {
  ...calls,
  name: 'get call transcript',
  route: '/v2/calls/{callId}/transcript',
  resource: 'transcript',
  path: ({ id }) => `/v2/calls/${id}/transcript`,
  notFound: '{"error":{"message":"There is no such call, or its transcript is not ready yet."}}',
};
export const GET_CALL_SCORECARD: EndpointRow = {
  ...calls,
  name: 'get call scorecard',
  route: '/v2/calls/{callId}/scorecard',
  resource: 'scorecard',
  path: ({ id }) => `/v2/calls/${id}/scorecard`,
  notFound: '{"error":{"message":"There is no such call, or its scorecard is not ready yet."}}',
};
export const GET_RUBRIC: EndpointRow = {
  surface: 'v2',
  name: 'get scorecard rubric',
  scope: 'coaching.read',
  route: '/v2/scorecards/{scorecardId}/rubric',
  resource: 'rubric',
  path: ({ scorecardId }) => `/v2/scorecards/${scorecardId}/rubric`,
  forbidden: RUBRIC_FORBIDDEN,
  notFound: '{"error":{"message":"There is no such scorecard."}}',
};

export const ENDPOINTS: readonly EndpointRow[] = [
  LIST_REPORTS,
  GET_REPORT,
  GET_REPORT_SCORECARD,
  GET_REPORT_DEAL_INSIGHTS,
  GET_REPORT_TRANSCRIPT,
  LIST_CALLS,
  GET_CALL,
  GET_CALL_TRANSCRIPT,
  GET_CALL_SCORECARD,
  GET_RUBRIC,
];
/** All but the two lists. */
export const SINGLE_READS: readonly EndpointRow[] = ENDPOINTS.filter(({ notFound }) => notFound !== null);
/** Those whose resource is a part of an evaluation, which may not be ready yet. */
/** Where the store keeps each kind of record. */
export const TABLES = {
  evaluation: 'evaluations',
  transcript: 'transcripts',
  scorecard: 'scoredCards',
  dealInsights: 'dealInsights',
  rubric: 'scorecards',
} as const;

export const PARTS: readonly EndpointRow[] = SINGLE_READS.filter(({ resource }) =>
  ['transcript', 'scorecard', 'dealInsights'].includes(resource),
);

/** The texts of errors that are alike at every endpoint. */
export const TEXTS = {
  missing: 'No API key was given. Send it as "Authorization: Bearer <API key>".',
  notBearer: 'The Authorization header must be of the form "Bearer <API key>".',
  empty: 'The Authorization header holds no API key. Send it as "Authorization: Bearer <API key>".',
  invalid: 'The API key is not valid.',
  tooManyFailures: 'Too many requests from this address had no valid API key. Try again later.',
  inactive: 'This API key may not be used: it is deprecated, revoked, expired, or bound to other addresses.',
  noAddress: 'There is no such address in this API. GET /docs describes it.',
  limited: 'The rate limit of this API key is used up. Try again after the time in Retry-After.',
  cannotCheck: 'API keys cannot be checked at the moment. Try again later.',
  timeout: 'The evaluation store did not answer in time. Try again later.',
  unreachable: 'The evaluation store cannot be reached at the moment. Try again later.',
  failing: 'The evaluation store is failing at the moment. Try again later.',
  garbled: 'The evaluation store sent an invalid answer. Try again later.',
  malformed: 'The evaluation store sent an answer that cannot be used.',
  shielded: 'The gateway is shielding the evaluation store from too many requests. Try again later.',
  methodNotAllowed: (method: string): string => `The method ${method} is not allowed here; use GET or HEAD.`,
} as const;

/** The exact body of an error: v1's form, v2's, and that of v1's list for 400 and 500 (S3). */
export function errorText({ surface, name }: EndpointRow, status: number, message: string): string {
  const text = JSON.stringify(message);
  if (surface === 'v2') return `{"error":{"message":${text}}}`;
  const isWithReports = name === LIST_REPORTS.name && (status === 400 || status === 500);
  return isWithReports ? `{"reports":[],"error":${text}}` : `{"error":${text}}`;
}
