/** A failed request: what the consumer may read, what only the log may hold, and each surface's form for it. */
import type { CallErrorBody, ReportErrorBody, ReportListErrorBody } from '../domain/errors.ts';

export interface ProblemDetails {
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log only; without one the public message serves. */
  readonly privateMessage?: string;
  readonly cause?: unknown;
}

export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  /** Shown to anyone who asks: no ids, no addresses, no causes. */
  readonly publicMessage: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, publicMessage: string, details: ProblemDetails = {}) {
    super(details.privateMessage ?? publicMessage, { cause: details.cause });
    this.status = status;
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
  return new Problem(405, `The method ${method} is not allowed here; use GET or HEAD.`, {
    headers: { Allow: 'GET, HEAD' },
  });
}
