/** The operations of the public API, and the announcement of their end. */

/**
 * By surface, each by its OpenAPI operationId. A new operation is its id here and a route in `http/v1.ts` or `http/v2.ts`,
 * which declares path, scope, parameters, resource, response and fixed texts, and stands in that file's list of routes. Router,
 * OpenAPI document, `explain`, metrics and deprecations follow from it. Beside it needs an example body in
 * `http/openapi/examples.ts`, its path in `docs/api.md`, and for the demo a line of `curl` in `backend/demo-store.ts`; tests
 * fail without the first two. (A new resource of the store: `upstream/resources.ts`.)
 */
export const OPERATIONS = {
  v1: [
    'listReports',
    'getReport',
    'getReportScorecard',
    'getReportDealInsights',
    'getReportTranscript',
    'getWorkspaceKey',
  ],
  v2: [
    'listCalls',
    'getCall',
    'getCallTranscript',
    'getCallScorecard',
    'getScorecardRubric',
    'getCallsKey',
    'listChanges',
  ],
} as const;

export type SurfaceName = keyof typeof OPERATIONS;
export type OperationId = (typeof OPERATIONS)[SurfaceName][number];

/** That an operation, or all of a surface, is not to be used any more. Times are whole seconds, in Unix milliseconds. */
export interface Deprecation {
  readonly target: SurfaceName | OperationId;
  /** Since when it is deprecated, or from when it will be. */
  readonly fromMs: number;
  /** From when it may be gone; not before `fromMs`. Null if that is not settled. */
  readonly untilMs: number | null;
  /** Where people can read what to do. */
  readonly link: string | null;
}

/** The one that holds for an operation: its own, or else its surface's. */
export function deprecationOf(
  deprecations: readonly Deprecation[],
  surface: SurfaceName,
  operation: OperationId,
): Deprecation | null {
  const by = (target: string): Deprecation | undefined => deprecations.find((one) => one.target === target);
  return by(operation) ?? by(surface) ?? null;
}
