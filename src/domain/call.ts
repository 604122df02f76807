/** The Call of the calls surface (v2): an evaluation with every field always there. */
import { z } from 'zod';
import {
  attendeesSchema,
  participantsSchema,
  sharedFields,
  toAttendees,
  toParticipants,
  toSharedFields,
} from './evaluation.ts';
import { CRM_OBJECT_TYPES } from './records.ts';
import type { EvaluationRecord } from './records.ts';

const crmObjectSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    url: z.string().nullable(),
    type: z.enum(CRM_OBJECT_TYPES),
  })
  .meta({ id: 'CrmObject', description: 'An object in the CRM that the call belongs to.' });

/** A call, with no member beyond those of the specification. */
export const callSchema = z
  .strictObject({
    ...sharedFields,
    evaluatee_user_id: z.string().nullable().meta({
      description: 'The user whose call was evaluated; null where the store knows none.',
    }),
    evaluatee_user_name: z.string(),
    evaluatee_email: z.string(),
    participants: participantsSchema,
    attendees: attendeesSchema,
    crm_objects: z.array(crmObjectSchema).meta({ description: 'All objects in the CRM that the call belongs to.' }),
  })
  .meta({ id: 'Call', description: 'One completed evaluation of a recorded call, as the calls surface shows it.' });

/** The body of a single call. */
export const callBodySchema = z.strictObject({ call: callSchema }).meta({ id: 'CallBody' });

export type Call = z.output<typeof callSchema>;

/** The call of a record. */
export function toCall(record: EvaluationRecord): Call {
  return {
    ...toSharedFields(record),
    evaluatee_user_id: record.evaluatee.userId ?? null,
    evaluatee_user_name: record.evaluatee.displayName,
    evaluatee_email: record.evaluatee.email,
    participants: toParticipants(record.people),
    attendees: toAttendees(record.people),
    crm_objects: record.crmLinks.map((link) => ({
      id: link.externalId,
      name: link.label,
      url: link.href,
      type: link.objectType,
    })),
  };
}
