/**
 * The request parameters of the public API as reusable components: each with its exact rule and default. Only those that
 * are required have examples, because a docs page fills examples in and then sends them.
 */
import type { oas31 } from 'zod-openapi';
import { EXAMPLE_EVALUATION_ID, EXAMPLE_SCORECARD_ID, EXAMPLE_WORKSPACE_ID } from './examples.ts';

type Parameter = oas31.ParameterObject;

const ID = '^[A-Za-z0-9_-]{1,64}$';

const path: Readonly<Record<string, Parameter>> = {
  WorkspaceId: {
    name: 'workspaceId',
    in: 'path',
    required: true,
    description: 'The workspace. Anything that is no UUID is a workspace that the key may not see: 403.',
    schema: { type: 'string', format: 'uuid' },
    example: EXAMPLE_WORKSPACE_ID,
  },
  ReportId: pathId('reportId', 'The report.', EXAMPLE_EVALUATION_ID),
  CallId: pathId('callId', 'The call.', EXAMPLE_EVALUATION_ID),
  ScorecardId: pathId('scorecardId', 'The scorecard.', EXAMPLE_SCORECARD_ID),
};

const header: Readonly<Record<string, Parameter>> = {
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
};

const listReports: Readonly<Record<string, Parameter>> = {
  ReportsPage: {
    name: 'page',
    in: 'query',
    description:
      'The page, from 1. Lenient: missing, repeated, no integer (`-?[0-9]{1,9}`) or below 1 counts as 1. A page past the end is an empty list.',
    schema: { type: 'integer', minimum: 1, default: 1 },
  },
  ReportsLimit: {
    name: 'limit',
    in: 'query',
    description:
      'How many reports a page holds. Lenient: missing, repeated or no integer (`-?[0-9]{1,9}`) counts as 50; a number out of range is clamped to 1 to 50.',
    schema: { type: 'integer', minimum: 1, maximum: 50, default: 50 },
  },
  ReportsSearch: {
    name: 'search',
    in: 'query',
    description:
      'Only reports whose name, evaluatee, attendee e-mail address or CRM deal name holds this text (such as `renewal`), whatever its case. Up to 100 characters (Unicode code points); longer or repeated: 400. Empty counts as absent.',
    schema: { type: 'string', minLength: 1, maxLength: 100 },
  },
  ReportsScorecardId: {
    name: 'scorecardId',
    in: 'query',
    description:
      'Only reports that were scored with this scorecard. No UUID, or repeated: 400. Empty counts as absent.',
    schema: { type: 'string', format: 'uuid' },
  },
};

const listCalls: Readonly<Record<string, Parameter>> = {
  CallsWorkspaceId: {
    name: 'workspaceId',
    in: 'query',
    description:
      "Only calls of this workspace; without it, of all workspaces of the key. No UUID, empty or repeated: 400. Not one of the key's: 403, whatever else is wrong with the query.",
    schema: { type: 'string', format: 'uuid' },
  },
  Page: {
    name: 'page',
    in: 'query',
    description:
      'The page, from 1. A page past the end is empty. No integer of up to 9 digits, below 1 or repeated: 400.',
    schema: { type: 'integer', minimum: 1, maximum: 999_999_999, default: 1 },
  },
  CallsPageSize: {
    name: 'pageSize',
    in: 'query',
    description: 'How many calls a page holds. No integer, out of range or repeated: 400.',
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
  },
  CallsSearch: {
    name: 'search',
    in: 'query',
    description:
      'Only calls whose name, evaluatee, attendee e-mail address or CRM deal name holds this text (such as `renewal`), whatever its case. 1 to 200 characters (Unicode code points); empty, longer or repeated: 400.',
    schema: { type: 'string', minLength: 1, maxLength: 200 },
  },
  CallsScorecardId: {
    name: 'scorecardId',
    in: 'query',
    description: 'Only calls that were scored with this scorecard. Against the pattern, or repeated: 400.',
    schema: { type: 'string', pattern: ID },
  },
};

const callTranscript: Readonly<Record<string, Parameter>> = {
  TranscriptPageSize: {
    name: 'pageSize',
    in: 'query',
    description: 'How many segments a page holds at most. No integer, out of range or repeated: 400.',
    schema: { type: 'integer', minimum: 1, maximum: 200, default: 100 },
  },
  MaxChars: {
    name: 'maxChars',
    in: 'query',
    description:
      'How many characters (Unicode code points) `transcript.text` holds at most. A turn that is longer is cut and goes on on the next page. No integer, out of range or repeated: 400.',
    schema: { type: 'integer', minimum: 1, maximum: 50_000, default: 50_000 },
  },
  Raw: {
    name: 'raw',
    in: 'query',
    allowEmptyValue: true,
    description:
      'Exact slices of the stored transcript instead of the parsed turns. Any value but `false` counts as true, the empty one too (`raw`, `raw=`); repeated: 400.',
    schema: { type: 'boolean', default: false },
  },
};

/** Every parameter component by its name. */
export const parameterComponents: Readonly<Record<string, Parameter>> = {
  ...path,
  ...header,
  ...listReports,
  ...listCalls,
  ...callTranscript,
};

/** References to parameter components, by their names. Throws where there is none of a name. */
export function parameterReferences(...names: readonly string[]): oas31.ReferenceObject[] {
  return names.map((name) => {
    if (parameterComponents[name] === undefined) throw new Error(`There is no parameter component ${name}`);
    return { $ref: `#/components/parameters/${name}` };
  });
}

function pathId(name: string, description: string, example: string): Parameter {
  return {
    name,
    in: 'path',
    required: true,
    description: `${description} Against the pattern: 404.`,
    schema: { type: 'string', pattern: ID },
    example,
  };
}
