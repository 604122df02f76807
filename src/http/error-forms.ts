/** How each surface writes an error down (the specification's "Errors"; S3). */
import type { CallErrorBody, ReportErrorBody, ReportListErrorBody } from '../domain/errors.ts';
import type { ErrorForm } from './middleware/render-errors.ts';

const LIST_STATUSES_WITH_REPORTS: ReadonlySet<number> = new Set([400, 500]);

/** `{error}`; the list's 400 and 500 also hold an empty `reports`. */
export const v1ErrorForm: ErrorForm = (status, error, ctx): ReportErrorBody | ReportListErrorBody =>
  ctx.state.route?.name === 'listReports' && LIST_STATUSES_WITH_REPORTS.has(status)
    ? { reports: [], error }
    : { error };

/** `{error: {message}}` */
export const v2ErrorForm: ErrorForm = (_status, message): CallErrorBody => ({ error: { message } });

/** Outside both surfaces: as v1. */
export const plainErrorForm: ErrorForm = (_status, error): ReportErrorBody => ({ error });
