/**
 * Parameters that several routes declare. Only required ones have examples, because a docs page fills examples in and then
 * sends them.
 */
import type { oas31 } from 'zod-openapi';
import { ID_PATTERN } from '../../domain/records.ts';
import { EXAMPLE_EVALUATION_ID, EXAMPLE_SCORECARD_ID, EXAMPLE_WORKSPACE_ID } from './examples.ts';

const EXAMPLES = {
  reportId: EXAMPLE_EVALUATION_ID,
  callId: EXAMPLE_EVALUATION_ID,
  scorecardId: EXAMPLE_SCORECARD_ID,
} as const;

export const workspaceParameter: oas31.ParameterObject = {
  name: 'workspaceId',
  in: 'path',
  required: true,
  description: 'The workspace. Anything that is no UUID is a workspace that the key may not see: 403.',
  schema: { type: 'string', format: 'uuid' },
  example: EXAMPLE_WORKSPACE_ID,
};

/** An id of the store in the path. */
export function pathId(name: keyof typeof EXAMPLES, description: string): oas31.ParameterObject {
  return {
    name,
    in: 'path',
    required: true,
    description: `${description} Against the pattern: 404.`,
    schema: { type: 'string', pattern: ID_PATTERN.source },
    example: EXAMPLES[name],
  };
}

/** Request headers, as reusable components. */
export const headerParameters = {
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of a copy held, or several with commas: 304 without a body where it still holds.',
    schema: { type: 'string' },
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description: 'An id of your own for this request. One that does not match the pattern is replaced by a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
  },
} as const satisfies Readonly<Record<string, oas31.ParameterObject>>;
