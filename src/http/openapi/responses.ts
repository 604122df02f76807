/** The responses of the public API: what each status means, which headers it has and what its body is. */
import type { oas31, ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import { ERROR_SCHEMAS, errorBody, errorCodes, errorFormOf } from '../problem.ts';
import { alwaysHeaders, cachingHeaders, countedHeaders, headerReference, maybeCountedHeaders } from './headers.ts';
import type { FailureStatus, Route } from '../state.ts';

type Headers = Readonly<Record<string, oas31.ReferenceObject>>;
type Status = FailureStatus | 405;

const failures: Readonly<Record<Status, { description: string; headers: Headers; message: string }>> = {
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
      'The key was issued but is deprecated, revoked or expired, lacks the scope, may not see the workspace, or is bound to addresses and was used from another (`address_forbidden`). The text is the same for all of these; `X-Error-Code` says which. The rate-limit headers are there where the key is active and may be used from this address.',
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

const STATUSES: readonly Status[] = [400, 401, 403, 404, 405, 429, 500];
/** Paths whose errors have every form that the surface has. */
const PATHS = { v1: ['/v1/key', '/v1/workspaces/{workspaceId}/reports'], v2: ['/v2/key'] } as const;

const NOT_MODIFIED = { description: 'The copy that `If-None-Match` names still holds. There is no body.' } as const;
const coded: Headers = { 'Content-Encoding': headerReference('Content-Encoding') };
/** The headers of an answer that is made anew each time. */
const validated: Headers = { ETag: headerReference('ETag'), 'Cache-Control': headerReference('Cache-Control') };
const validatedHeaders: Headers = { ...validated, ...coded };
const readHeaders: Headers = { ...cachingHeaders, ...coded };
const notKept: Headers = { 'Cache-Control': headerReference('Cache-Control-NoStore') };

/** Whether the answers of a route have an ETag, and `If-None-Match` is honoured. */
export function hasEtag(route: Route): boolean {
  return route.parseRequest !== null || route.hasEtag === true;
}

/** All responses of a route: 200, 304 if it has an ETag, 405 and the failures that it declares. */
export function responsesOf(route: Route, example: object): ZodOpenApiResponsesObject {
  const isCached = route.parseRequest !== null;
  const headers = isCached ? readHeaders : hasEtag(route) ? validatedHeaders : notKept;
  const notModified = isCached
    ? reference('NotModified')
    : { ...NOT_MODIFIED, headers: { ...alwaysHeaders, ...validated, ...countedHeaders } };
  const statuses: readonly Status[] = [...route.failures, 405];
  const errors = statuses.map((status) => [status, reference(errorName(route.template, status))] as const);
  return {
    200: {
      description: route.success,
      headers: { ...alwaysHeaders, ...headers, ...countedHeaders },
      content: { 'application/json': { schema: route.response, example } },
    },
    ...(hasEtag(route) ? { 304: notModified } : {}),
    ...Object.fromEntries(errors),
  };
}

/** The response components of a surface, by their names. `hasFeed`: whether there is a feed of changes. */
export function responseComponents(
  surface: Route['surface'],
  hasFeed: boolean,
): Record<string, ZodOpenApiResponseObject> {
  const errors = PATHS[surface].flatMap((path) =>
    STATUSES.map((status) => [errorName(path, status), errorResponse(path, status, hasFeed)] as const),
  );
  return {
    NotModified: {
      ...NOT_MODIFIED,
      headers: { ...alwaysHeaders, ...cachingHeaders, ...countedHeaders },
    },
    ...Object.fromEntries(errors),
  };
}

function errorName(path: string, status: Status): string {
  return `${errorFormOf(path, status)}${status}`;
}

function errorResponse(path: string, status: Status, hasFeed: boolean): ZodOpenApiResponseObject {
  const { description, headers, message } = failures[status];
  const schema = ERROR_SCHEMAS[errorFormOf(path, status)];
  return {
    description,
    headers: { ...alwaysHeaders, ...notKept, ...headers, 'X-Error-Code': errorCodeHeader(status, hasFeed) },
    content: { 'application/json': { schema, example: errorBody(path, status, message) } },
  };
}

/** The codes that the status can have, and what each means. */
function errorCodeHeader(status: Status, hasFeed: boolean): oas31.HeaderObject {
  const codes = errorCodes(hasFeed).filter(([, code]) => code.status === status);
  return {
    description: codes.map(([name, { meaning }]) => `\`${name}\`: ${meaning}`).join(' '),
    required: true,
    schema: { type: 'string', enum: codes.map(([name]) => name) },
    example: codes[0]?.[0],
  };
}

function reference(component: string): oas31.ReferenceObject {
  return { $ref: `#/components/responses/${component}` };
}
