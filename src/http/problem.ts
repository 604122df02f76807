/** A failed request: what the consumer may read, what only the log may hold, and each surface's form for it. */
import type { CallErrorBody, ReportErrorBody, ReportListErrorBody } from '../domain/errors.ts';

/**
 * Why a request failed, for programs: the value of `X-Error-Code`. Bodies are fixed by the API, and their texts are for
 * people. `not_found` is the same for a record that does not exist and for one of another workspace (K7).
 */
export const ERROR_CODES = {
  parameter_invalid: { status: 400, meaning: 'A query parameter is unknown, repeated or breaks its rule.' },
  address_too_long: { status: 400, meaning: 'Path and query are longer than 8192 bytes.' },
  request_unreadable: { status: 400, meaning: 'The request is not proper HTTP, too large or too slow.' },
  key_missing: { status: 401, meaning: 'The request has no API key.' },
  key_invalid: { status: 401, meaning: 'The API key was never issued, or is not sent as `Bearer`.' },
  too_many_failures: { status: 401, meaning: 'Too many requests from this address had no valid key.' },
  key_inactive: { status: 403, meaning: 'The key is deprecated, revoked or expired.' },
  scope_missing: { status: 403, meaning: 'The key lacks the scope of the operation.' },
  workspace_forbidden: { status: 403, meaning: "The workspace asked for is not among the key's." },
  not_found: {
    status: 404,
    meaning: 'There is no such record among those that the key may see, or it is not ready yet.',
  },
  path_unknown: { status: 404, meaning: 'The API has no such path.' },
  method_not_allowed: { status: 405, meaning: 'The method is neither GET nor HEAD.' },
  rate_limited: { status: 429, meaning: 'A limit of the key is used up; `Retry-After` says for how long.' },
  store_unavailable: { status: 500, meaning: 'The store behind the gateway is down, slow or paused.' },
  record_malformed: { status: 500, meaning: 'The store answered with something that breaks its own contract.' },
  keys_unavailable: { status: 500, meaning: 'API keys cannot be checked at the moment.' },
  overloaded: { status: 500, meaning: 'The gateway has as many requests in progress as it can serve.' },
  internal_error: { status: 500, meaning: 'A fault of the gateway.' },
} as const;
export type ErrorCode = keyof typeof ERROR_CODES;

export interface ProblemDetails {
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log only; without one the public message serves. */
  readonly privateMessage?: string;
  readonly cause?: unknown;
}

export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ErrorCode;
  readonly status: number;
  /** Shown to anyone who asks: no ids, no addresses, no causes. */
  readonly publicMessage: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, publicMessage: string, details: ProblemDetails = {}) {
    super(details.privateMessage ?? publicMessage, { cause: details.cause });
    this.code = code;
    this.status = ERROR_CODES[code].status;
    this.publicMessage = publicMessage;
    this.headers = details.headers ?? {};
  }
}

const REPORT_LIST = /^\/v1\/workspaces\/[^/]*\/reports$/;

/**
 * The body of an error (S3): `{error: {message}}` on v2, `{error}` on v1 and elsewhere; 400 and 500 of v1's list also
 * hold an empty `reports`. It goes by the path alone, so that it also serves requests that never reach a route.
 */
export function errorBody(
  path: string,
  status: number,
  message: string,
): CallErrorBody | ReportErrorBody | ReportListErrorBody {
  if (surfaceOf(path) === 'v2') return { error: { message } };
  const isReportList = REPORT_LIST.test(path) && (status === 400 || status === 500);
  return isReportList ? { reports: [], error: message } : { error: message };
}

/** The surface that a path belongs to, matched by a route or not. */
export function surfaceOf(path: string): 'v1' | 'v2' | 'other' {
  if (path === '/v1' || path.startsWith('/v1/')) return 'v1';
  if (path === '/v2' || path.startsWith('/v2/')) return 'v2';
  return 'other';
}

/** The 405 of every path that has a route (A2). */
export function methodNotAllowed(method: string): Problem {
  return new Problem('method_not_allowed', `The method ${method} is not allowed here; use GET or HEAD.`, {
    headers: { Allow: 'GET, HEAD' },
  });
}
