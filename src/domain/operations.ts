/** The operations of the public API, and what can be announced of their end. */

/** By surface, each by its OpenAPI operationId. */
export const OPERATIONS = {
  v1: [
    'listReports',
    'getReport',
    'getReportScorecard',
    'getReportDealInsights',
    'getReportTranscript',
    'getWorkspaceKey',
  ],
  v2: ['listCalls', 'getCall', 'getCallTranscript', 'getCallScorecard', 'getScorecardRubric', 'getCallsKey'],
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
