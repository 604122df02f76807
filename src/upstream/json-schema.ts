/** The JSON Schema of the store's answers, made from the schemas that check them. */
import { z } from 'zod';
import { UUID_PATTERN } from '../domain/vocabulary.ts';
import { openObjectSchema } from '../domain/records.ts';
import { RESOURCES } from './resources.ts';

/** The body of each 200, by the name that docs/store-interface.md gives it. */
const BODIES = {
  List: RESOURCES.list,
  Evaluation: RESOURCES.evaluation,
  Transcript: RESOURCES.transcript,
  ScoredCard: RESOURCES.scorecard,
  DealInsights: RESOURCES.dealInsights,
  Scorecard: RESOURCES.rubric,
} as const;

const errorSchema = z.object({ code: z.string(), message: z.string().optional() });

/** A schema of the draft 2020-12: each body is in `$defs`, and any of them is valid. Unknown members are allowed anywhere. */
export function buildStoreSchema(): object {
  const registry = z.registry<{ id: string; description: string }>();
  for (const [id, { template, schema }] of Object.entries(BODIES)) {
    registry.add(schema, { id, description: `The body of a 200 of GET ${template}.` });
  }
  registry.add(errorSchema, {
    id: 'Error',
    description: 'The body of an error. A 404 or 410 counts as absence only with the code NOT_FOUND or NOT_READY.',
  });
  const bodies = Object.values(BODIES).map(({ schema }) => schema);
  const document = z.toJSONSchema(z.union([...bodies, errorSchema]), {
    metadata: registry,
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema === openObjectSchema) jsonSchema.type = 'object';
      // The pattern's flag, which allows capitals, has no place in JSON Schema.
      if (jsonSchema.pattern !== UUID_PATTERN.source) return;
      delete jsonSchema.pattern;
      jsonSchema.format = 'uuid';
    },
  });
  return { title: "The answers of evalgate's store", ...document };
}
