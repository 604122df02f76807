/** How each surface writes an error down (the specification's "Errors"; S3). */
import type { CallErrorBody, ReportErrorBody, ReportListErrorBody } from '../domain/errors.ts';
import { surfaceOf } from './layers/request-context.ts';
import type { Context } from './state.ts';

/** The body of an error: v1 and v2 differ in it, and v1's list has more to it. */
type ErrorForm = (status: number, publicMessage: string, ctx: Context) => object;

const LIST_STATUSES_WITH_REPORTS: ReadonlySet<number> = new Set([400, 500]);

/** `{error}`; the list's 400 and 500 also hold an empty `reports`. */
const v1ErrorForm: ErrorForm = (status, error, ctx): ReportErrorBody | ReportListErrorBody =>
  ctx.state.match?.route.name === 'listReports' && LIST_STATUSES_WITH_REPORTS.has(status)
    ? { reports: [], error }
    : { error };

/** `{error: {message}}` */
const v2ErrorForm: ErrorForm = (_status, message): CallErrorBody => ({ error: { message } });

const REPORT_LIST = /^\/v1\/workspaces\/[^/?]*\/reports$/;

/** The 400 of what never became a request, by as much of its address as could be read. */
export function errorBodyAt(
  message: string,
  address: string | null,
): ReportErrorBody | ReportListErrorBody | CallErrorBody {
  const [path = ''] = address?.split('?') ?? [];
  if (surfaceOf(path) === 'v2') return { error: { message } };
  return REPORT_LIST.test(path) ? { reports: [], error: message } : { error: message };
}

/** Outside both surfaces: as v1. */
const plainErrorForm: ErrorForm = (_status, error): ReportErrorBody => ({ error });

const FORMS = { v1: v1ErrorForm, v2: v2ErrorForm, other: plainErrorForm } as const;

/** The form of the surface that the request is for. */
export function errorFormOf(ctx: Context): ErrorForm {
  return FORMS[ctx.state.match?.route.surface ?? surfaceOf(ctx.path)];
}
