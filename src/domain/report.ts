/** The Report of the workspace surface (v1): an evaluation with its evaluatee, share and CRM deals; and its lists. */
import { z } from 'zod';
import { peopleFields, sharedFields, timestampSchema, toPeople, toSharedFields, toTimestamp } from './evaluation.ts';
import type { EvaluationPage, EvaluationRecord } from './records.ts';

const STATUS_OF = {
  QUEUED: 'queued',
  TRANSCRIBING: 'transcribing',
  SCORING: 'scoring',
  COMPLETED: 'completed',
  FAILED: 'failed',
} as const satisfies Record<EvaluationRecord['state'], string>;

const evaluateeUserSchema = z
  .strictObject({
    name: z.string(),
    first_name: z.string(),
    email: z.string().meta({ format: 'email' }),
    id: z.string().exactOptional().meta({ description: 'Left out where the store knows no user.' }),
    avatar_url: z.string().nullable().exactOptional().meta({ description: 'Left out where the store says nothing.' }),
  })
  .meta({ id: 'EvaluateeUser', description: 'The person whose call was evaluated.' });

const shareSchema = z
  .strictObject({
    id: z.string(),
    deactivated_at: timestampSchema.nullable().meta({
      description: 'When the share was deactivated; null while it is active.',
    }),
  })
  .meta({ id: 'Share', description: 'A public link to the report.' });

const crmDealSchema = z
  .strictObject({ id: z.string(), name: z.string(), url: z.string().nullable() })
  .meta({ id: 'CrmDeal', description: 'A deal in the CRM that the call belongs to.' });

/** A report, with no member beyond those of the specification (Q8: `share` only if there is one, arrays always). */
export const reportSchema = z
  .strictObject({
    ...sharedFields,
    status: z.enum(STATUS_OF).meta({ description: 'Where the evaluation stands. Lists hold `completed` ones only.' }),
    evaluatee_user: evaluateeUserSchema,
    share: shareSchema.exactOptional().meta({ description: 'Left out where the report was never shared.' }),
    ...peopleFields,
    crm_deals: z.array(crmDealSchema).meta({ description: 'The deals that the call belongs to.' }),
  })
  .meta({ id: 'Report', description: 'One evaluation of a recorded call, as the workspace surface shows it.' });

export const reportBodySchema = z.strictObject({ report: reportSchema }).meta({ id: 'ReportBody' });

export const reportsPageSchema = z
  .strictObject({
    reports: z.array(reportSchema).meta({ description: 'Newest first: by `created_at`, then `id`, descending.' }),
    page: z.int().min(1).meta({ format: 'int32', description: 'The page that this is, from 1.' }),
    total_count: z.int().min(0).meta({ description: 'How many reports match on all pages together.' }),
  })
  .meta({ id: 'ReportsPage' });

type Report = z.output<typeof reportSchema>;

/**
 * An e-mail address as JSON Schema's `email` format accepts it (RFC 5321 mailbox without quoting). The specification promises
 * that format of a Report, and of nothing else.
 */
const EMAIL_PATTERN =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
const MAX_EMAIL_LENGTH = 320;
/** The member of a record that decides whether it has a report. */
export const REPORT_EMAIL_PATH = 'evaluatee.email';

/** Whether the record can be published as a report, which promises an e-mail address of the `email` format. */
export function hasReport({ evaluatee: { email } }: Pick<EvaluationRecord, 'evaluatee'>): boolean {
  return email.length <= MAX_EMAIL_LENGTH && EMAIL_PATTERN.test(email);
}

/**
 * The report of a record that has one. `participants`, `attendees` and `crm_deals` are always there, `share` only if there is one.
 */
export function toReport(record: EvaluationRecord): Report {
  const { shareLink } = record;
  return {
    ...toSharedFields(record),
    status: STATUS_OF[record.state],
    evaluatee_user: toEvaluateeUser(record.evaluatee),
    ...(shareLink === null || shareLink === undefined ? {} : { share: toShare(shareLink) }),
    ...toPeople(record),
    crm_deals: record.crmLinks
      .filter((link) => link.objectType === 'deal')
      .map((link) => ({ id: link.externalId, name: link.label, url: link.href })),
  };
}

function toEvaluateeUser(evaluatee: EvaluationRecord['evaluatee']): Report['evaluatee_user'] {
  return {
    name: evaluatee.displayName,
    first_name: evaluatee.givenName,
    email: evaluatee.email,
    ...(typeof evaluatee.userId === 'string' ? { id: evaluatee.userId } : {}),
    ...(evaluatee.avatar === undefined ? {} : { avatar_url: evaluatee.avatar }),
  };
}

function toShare(link: NonNullable<EvaluationRecord['shareLink']>): NonNullable<Report['share']> {
  return { id: link.id, deactivated_at: link.deactivatedAtMs === null ? null : toTimestamp(link.deactivatedAtMs) };
}

/** A page of reports, counted from 1, without records that have none; `total_count` is the store's, also past the end. */
export function toReportsPage(
  list: Pick<EvaluationPage, 'items' | 'total'>,
  page: number,
): z.output<typeof reportsPageSchema> {
  return { reports: list.items.filter(hasReport).map(toReport), page, total_count: list.total };
}
