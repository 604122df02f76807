/** The rubric of a scorecard, as the calls surface shows it. */
import { z } from 'zod';
import type { ScorecardRecord } from './records.ts';

/** The body of a rubric. What `content` holds is the scorecard author's own and is passed on as it is. */
export const rubricBodySchema = z
  .strictObject({
    scorecard: z
      .strictObject({
        id: z.string(),
        name: z.string(),
        content: z.record(z.string(), z.unknown()).meta({
          description: 'The rubric as its authors wrote it. Its inner structure is not fixed.',
        }),
      })
      .meta({ id: 'Rubric' }),
  })
  .meta({ id: 'RubricBody' });

export type RubricBody = z.output<typeof rubricBodySchema>;

/** The public form of a scorecard's rubric. */
export function toRubricBody(record: ScorecardRecord): RubricBody {
  return { scorecard: { id: record._id, name: record.name, content: record.rubric } };
}
