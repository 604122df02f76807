/** The error bodies of both surfaces. */
import { z } from 'zod';
import { reportSchema } from './report.ts';

const message = z.string().meta({ description: 'What went wrong, in plain words. Not meant for programs.' });

/** The error body of the workspace surface. */
export const reportErrorSchema = z.strictObject({ error: message }).meta({ id: 'ReportError' });

/** The error body of the list of reports for 400 and 500: an empty list beside the message. */
export const reportListErrorSchema = z
  .strictObject({ reports: z.array(reportSchema).max(0).meta({ description: 'Always empty.' }), error: message })
  .meta({ id: 'ReportListError' });

/** The error body of the calls surface. */
export const callErrorSchema = z
  .strictObject({ error: z.strictObject({ message }).meta({ id: 'CallErrorDetail' }) })
  .meta({ id: 'CallError' });

export type ReportErrorBody = z.output<typeof reportErrorSchema>;
export type ReportListErrorBody = z.output<typeof reportListErrorSchema>;
export type CallErrorBody = z.output<typeof callErrorSchema>;
