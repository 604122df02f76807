/** The Call of the calls surface (v2): an evaluation (Q8: every field is always there); and its lists. */
import { z } from 'zod';
import { peopleFields, sharedFields, toPeople, toSharedFields } from './evaluation.ts';
import { CRM_OBJECT_TYPES, type EvaluationPage, type EvaluationRecord } from './records.ts';

const crmObjectSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    url: z.string().nullable(),
    type: z.enum(CRM_OBJECT_TYPES),
  })
  .meta({ id: 'CrmObject', description: 'An object in the CRM that the call belongs to.' });

/** With no member beyond those of the specification. */
const callSchema = z
  .strictObject({
    ...sharedFields,
    evaluatee_user_id: z.string().nullable().meta({
      description: 'The user whose call was evaluated; null where the store knows none.',
    }),
    evaluatee_user_name: z.string(),
    evaluatee_email: z.string().meta({
      description: 'As the store has it: usually an e-mail address, in any form.',
    }),
    ...peopleFields,
    crm_objects: z.array(crmObjectSchema).meta({ description: 'All objects in the CRM that the call belongs to.' }),
  })
  .meta({ id: 'Call', description: 'One completed evaluation of a recorded call, as the calls surface shows it.' });

export const callBodySchema = z.strictObject({ call: callSchema }).meta({ id: 'CallBody' });

/** The fields of every Pagination object of the calls surface. */
export const paginationFields = {
  page: z.int().min(1).meta({ format: 'int32', description: 'The page asked for, from 1.' }),
  page_size: z.int().min(1).meta({ format: 'int32', description: 'The page size asked for.' }),
  total_count: z.int().min(0).meta({ description: 'How many there are on all pages together.' }),
  total_pages: z.int().min(0).meta({ description: 'How many pages there are; 0 where there is nothing.' }),
} as const;

export const callsPageSchema = z
  .strictObject({
    calls: z.array(callSchema).meta({ description: 'Newest first: by `created_at`, then `id`, descending.' }),
    pagination: z.strictObject(paginationFields).meta({ id: 'Pagination' }),
  })
  .meta({ id: 'CallsPage' });

/** The call of a record. */
export function toCall(record: EvaluationRecord): z.output<typeof callSchema> {
  return {
    ...toSharedFields(record),
    evaluatee_user_id: record.evaluatee.userId ?? null,
    evaluatee_user_name: record.evaluatee.displayName,
    evaluatee_email: record.evaluatee.email,
    ...toPeople(record),
    crm_objects: record.crmLinks.map((link) => ({
      id: link.externalId,
      name: link.label,
      url: link.href,
      type: link.objectType,
    })),
  };
}

/** A page of calls, counted from 1 (Q6: past the end it is empty, with the true counts). */
export function toCallsPage(
  list: Pick<EvaluationPage, 'items' | 'total'>,
  page: number,
  pageSize: number,
): z.output<typeof callsPageSchema> {
  return {
    calls: list.items.map(toCall),
    pagination: {
      page,
      page_size: pageSize,
      total_count: list.total,
      total_pages: Math.ceil(list.total / pageSize),
    },
  };
}
