/** The responses of the public API: what each status means, which headers it has and what its body is. */
import type {
  oas31,
  ZodOpenApiMediaTypeObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { callErrorSchema, reportErrorSchema, reportListErrorSchema } from '../../domain/errors.ts';
import { ERROR_CODES } from '../problem.ts';
import type { FailureStatus, Route } from '../route.ts';
import { alwaysHeaders, cachingHeaders, countedHeaders, headerReference, maybeCountedHeaders } from './headers.ts';

type Headers = Readonly<Record<string, oas31.ReferenceObject>>;

interface Failure {
  readonly description: string;
  readonly headers: Headers;
  readonly message: string;
}

const failures: Readonly<Record<FailureStatus | 405, Failure>> = {
  400: {
    description:
      'A query parameter breaks its rule, or the address is too long. The message names the parameter and the rule.',
    headers: countedHeaders,
    message: 'The query parameter search is too long.',
  },
  401: {
    description:
      'The `Authorization` header is missing, is not `Bearer`, or holds no key that was ever issued. With `Retry-After` where this address has failed too often.',
    headers: {
      'WWW-Authenticate': headerReference('WWW-Authenticate'),
      'Retry-After': headerReference('Retry-After-IfUseful'),
    },
    message: 'The API key is not valid.',
  },
  403: {
    description:
      'The key was issued but is deprecated, revoked or expired, lacks the scope, or may not see the workspace. The text is the same for all of these. The rate-limit headers are there where the key is active.',
    headers: maybeCountedHeaders,
    message: 'This API key may not read this.',
  },
  404: {
    description:
      'There is no such resource among those that the key may see, or the part asked for is not ready yet. The text is the same for all of these.',
    headers: countedHeaders,
    message: 'There is nothing here that this API key may read.',
  },
  405: {
    description: 'The method is neither GET nor HEAD. Never the answer to one of these two.',
    headers: { Allow: headerReference('Allow'), ...maybeCountedHeaders },
    message: 'The method POST is not allowed here; use GET or HEAD.',
  },
  429: {
    description: 'One of the two windows of the key is full. This request was not counted in either.',
    headers: { 'Retry-After': headerReference('Retry-After'), ...countedHeaders },
    message: 'The rate limit of this API key is used up. Try again after the time in Retry-After.',
  },
  500: {
    description:
      'The gateway cannot answer: the store behind it is down, slow or wrong and no copy can be used, keys cannot be checked, or load is being shed. The message says which. With `Retry-After` where trying again can help.',
    headers: { 'Retry-After': headerReference('Retry-After-IfUseful'), ...maybeCountedHeaders },
    message: 'The evaluation store did not answer in time. Try again later.',
  },
};

const readHeaders: Headers = { ...cachingHeaders, 'Content-Encoding': headerReference('Content-Encoding') };
const notKept: Headers = { 'Cache-Control': headerReference('Cache-Control-NoStore') };

/** All responses of a route: 200, 304 if it is cached, 405 and the failures that it declares. */
export function responsesOf(route: Route, example: object): ZodOpenApiResponsesObject {
  const statuses: readonly (FailureStatus | 405)[] = [...route.failures, 405];
  const isCached = route.parseRequest !== null;
  return {
    200: {
      description: route.success,
      headers: { ...alwaysHeaders, ...(isCached ? readHeaders : notKept), ...countedHeaders },
      content: { 'application/json': { schema: route.response, example } },
    },
    ...(isCached ? { 304: responseReference('NotModified') } : {}),
    ...Object.fromEntries(statuses.map((status) => [status, responseReference(failureName(status, route))] as const)),
  };
}

/** The response components of a surface, by their names. */
export function responseComponents(surface: Route['surface']): Record<string, ZodOpenApiResponseObject> {
  const notModified = {
    description: 'The copy that `If-None-Match` names still holds. There is no body.',
    headers: { ...alwaysHeaders, ...cachingHeaders, ...countedHeaders },
  };
  if (surface === 'v2') {
    const errors = failureComponents('Call', [400, 401, 403, 404, 405, 429, 500], (message) => ({
      schema: callErrorSchema,
      example: { error: { message } },
    }));
    return { NotModified: notModified, ...errors };
  }
  return {
    NotModified: notModified,
    ...failureComponents('Report', [400, 401, 403, 404, 405, 429, 500], (message) => ({
      schema: reportErrorSchema,
      example: { error: message },
    })),
    ...failureComponents('ReportList', [400, 500], (message) => ({
      schema: reportListErrorSchema,
      example: { reports: [], error: message },
    })),
  };
}

function failureComponents(
  prefix: string,
  statuses: readonly (FailureStatus | 405)[],
  mediaOf: (message: string) => ZodOpenApiMediaTypeObject,
): Record<string, ZodOpenApiResponseObject> {
  return Object.fromEntries(
    statuses.map((status) => {
      const { description, headers, message } = failures[status];
      return [
        `${prefix}Error${status}`,
        {
          description,
          headers: { ...alwaysHeaders, ...notKept, ...headers, 'X-Error-Code': errorCodeHeader(status) },
          content: { 'application/json': mediaOf(message) },
        },
      ];
    }),
  );
}

/** The codes that the status can have, and what each means. */
function errorCodeHeader(status: number): oas31.HeaderObject {
  const codes = Object.entries(ERROR_CODES).filter(([, code]) => code.status === status);
  return {
    description: codes.map(([name, { meaning }]) => `\`${name}\`: ${meaning}`).join(' '),
    required: true,
    schema: { type: 'string', enum: codes.map(([name]) => name) },
    example: codes[0]?.[0],
  };
}

function failureName(status: FailureStatus | 405, { surface, name }: Route): string {
  if (surface === 'v2') return `CallError${status}`;
  const isReportList = name === 'listReports' && (status === 400 || status === 500);
  return isReportList ? `ReportListError${status}` : `ReportError${status}`;
}

function responseReference(component: string): oas31.ReferenceObject {
  return { $ref: `#/components/responses/${component}` };
}
