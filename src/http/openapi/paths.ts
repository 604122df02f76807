/** The paths of the OpenAPI document, made from the table of operations. */
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject } from 'zod-openapi';
import { type Deprecation, deprecationOf } from '../../domain/operations.ts';
import { bodyExamples } from './examples.ts';
import { CALLS_KEY, TAGS, WORKSPACE_KEY } from './info.ts';
import { type Operation, operations } from './operations.ts';
import { parameterReferences } from './parameters.ts';
import { responsesOf, type Surface } from './responses.ts';

/** The paths of the document, each with its one operation. */
export function pathsWith(deprecations: readonly Deprecation[]): ZodOpenApiPathsObject {
  return Object.fromEntries(
    operations.map((operation) => {
      const deprecation = deprecationOf(deprecations, surfaceOfPath(operation.path), operation.id);
      return [operation.path, { get: toOperationObject(operation, deprecation) }];
    }),
  );
}

/** Which surface a path of the document belongs to. */
export function surfaceOfPath(path: string): Surface {
  return path.startsWith('/v1/') ? 'v1' : 'v2';
}

function toOperationObject(operation: Operation, deprecation: Deprecation | null): ZodOpenApiOperationObject {
  const surface = surfaceOfPath(operation.path);
  const { scope } = operation;
  const isCounted = scope !== null;
  return {
    operationId: operation.id,
    tags: [TAGS[surface].name],
    summary: operation.summary,
    description: descriptionOf(operation, deprecation),
    ...(deprecation === null ? {} : { deprecated: true }),
    security: [{ [surface === 'v1' ? WORKSPACE_KEY : CALLS_KEY]: [] }],
    ...(scope === null ? {} : { 'x-required-scope': scope }),
    parameters: parameterReferences(
      ...operation.pathParameters,
      ...operation.queryParameters,
      ...(isCounted ? ['IfNoneMatch'] : []),
      'RequestId',
    ),
    responses: responsesOf({
      surface,
      isReportList: operation.id === 'listReports',
      body: operation.body,
      example: bodyExamples[operation.id],
      description: operation.success,
      statuses: operation.statuses,
      isCached: isCounted,
    }),
  };
}

function descriptionOf({ description, scope }: Operation, deprecation: Deprecation | null): string {
  const access = scope === null ? 'Any active key may ask, whatever its scopes.' : `Scope: \`${scope}\`.`;
  const notice = deprecation === null ? [] : [noticeOf(deprecation)];
  return [...notice, description, access].join('\n\n');
}

function noticeOf({ fromMs, untilMs, link }: Deprecation): string {
  const end = untilMs === null ? '' : ` and may be gone from ${dayOf(untilMs)} on`;
  return `Deprecated from ${dayOf(fromMs)} on${end}.${link === null ? '' : ` See <${link}>.`}`;
}

function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
