/** Deal insights of a report, as the workspace surface shows them. */
import { z } from 'zod';
import type { DealInsightsRecord } from './records.ts';

/** The body of deal insights. What `deal_insights` holds is passed on as it is. */
export const dealInsightsBodySchema = z
  .strictObject({
    evaluation_id: z.string(),
    link: z.string().meta({ description: 'Where a person can read the evaluation.' }),
    deal_insights: z.record(z.string(), z.unknown()).meta({
      description: 'What the evaluation says about the deal. Its inner structure is not fixed.',
    }),
  })
  .meta({ id: 'DealInsightsBody' });

export type DealInsightsBody = z.output<typeof dealInsightsBodySchema>;

/** The public form of deal insights. */
export function toDealInsightsBody(record: DealInsightsRecord): DealInsightsBody {
  return { evaluation_id: record.evaluationId, link: record.permalink, deal_insights: record.insights };
}
