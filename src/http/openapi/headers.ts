/** The headers of the public API as reusable components, and which of them a response has. */
import type { oas31 } from 'zod-openapi';
import { COMMON_HEADERS, REQUEST_ID } from '../middleware/request-context.ts';
import { ALLOWED_METHODS } from '../problem.ts';
import { CODINGS } from '../respond.ts';

type Header = oas31.HeaderObject;
type Headers = Readonly<Record<string, Header>>;
type HeaderReferences = Readonly<Record<string, oas31.ReferenceObject>>;

const always: Headers = {
  'X-Request-Id': text(
    'Names the request in the logs of the gateway: the `X-Request-Id` that was sent, or a new one.',
    REQUEST_ID.source,
    'b5e0c1de-6f0e-4bb4-9a53-6d5a1f0c8e11',
  ),
  Vary: fixed('The response depends on these headers beside its address.', COMMON_HEADERS.Vary),
};

const sometimes: Headers = {
  Deprecation: text(
    'Only where the operation is deprecated, or will be: since when (RFC 9745), as an `@` and a Unix time in seconds.',
    '^@[0-9]+$',
    '@1798761600',
  ),
  Sunset: {
    description: 'Only where that is settled: from when the operation may be gone (RFC 8594).',
    schema: { type: 'string' },
    example: 'Sat, 01 Jan 2028 00:00:00 GMT',
  },
  Link: text(
    'On lists and transcript pages: the `first`, `prev`, `next` and `last` page, as far as there are such (RFC 8288), relative to the address of the request. Where the operation is deprecated: what people can read about it.',
    '^<[^>]+>; rel="[a-z]+"(?:, <[^>]+>; rel="[a-z]+")*$',
    '<?page=1&pageSize=50>; rel="first", <?page=2&pageSize=50>; rel="next", <?page=7&pageSize=50>; rel="last"',
  ),
};

const age = integer(
  'Seconds since the gateway fetched the data. Missing if a clock was wrong then, so that they are unknown.',
  0,
  12,
);

const caching: Headers = {
  ETag: text(
    'Names these bytes in this coding. Send it as `If-None-Match` to get a 304 while nothing has changed.',
    '^"[!#-~]+"$',
    '"2jmj7l5rSw0yVb_vlWAYkK_YBwk"',
  ),
  Age: age,
  'Cache-Control': text(
    'Only the consumer itself may keep the response. `max-age` is `Age` and the whole seconds of freshness that are left; 0 when the data is stale. A stale copy must be revalidated before it is used.',
    '^private, max-age=[0-9]+, must-revalidate$',
    'private, max-age=300, must-revalidate',
  ),
  'Cache-Status': text(
    'How the gateway answered (RFC 9211): `hit` from its cache, with the seconds of freshness left as `ttl` (negative when stale), or `fwd` where the store was asked.',
    '^evalgate; (?:hit|fwd=[a-z-]+)(?:; .+)?$',
    'evalgate; hit; ttl=288',
  ),
};

/** S4: how many records a page lacks. */
const omitted: Headers = {
  'X-Records-Omitted': integer(
    'Only on a list: how many records of this page are left out, because the store holds them incomplete or malformed. Missing if none is. `total_count` counts them.',
    1,
    7,
  ),
};

const counted: Headers = {
  ...windowHeaders('X-RateLimit', 'active', [120, 117, 1772600827]),
  'X-RateLimit-Active-Window': choice('The window with fewer requests left; `minute` where both have the same.', [
    'minute',
    'hour',
  ]),
  ...windowHeaders('X-RateLimit-Minute', 'minute', [120, 117, 1772600827]),
  ...windowHeaders('X-RateLimit-Hour', 'hour', [3000, 2875, 1772604367]),
  'RateLimit-Policy': text(
    'Both limits (`q`) and the lengths of their windows in seconds (`w`), as in the IETF draft.',
    '^"minute";q=[0-9]+;w=60, "hour";q=[0-9]+;w=3600$',
    '"minute";q=120;w=60, "hour";q=3000;w=3600',
  ),
  RateLimit: text(
    'The requests left in both windows (`r`), and the seconds until the next request leaves each (`t`), as in the IETF draft.',
    '^"minute";r=[0-9]+(?:;t=[0-9]+)?, "hour";r=[0-9]+(?:;t=[0-9]+)?$',
    '"minute";r=117;t=14, "hour";r=2875;t=902',
  ),
};

const particular: Headers = {
  'Content-Encoding': choice('The coding of the body, where it has one. It follows `Accept-Encoding`.', CODINGS),
  'Cache-Control-NoStore': fixed('The response is not to be kept.', 'no-store'),
  ...required({
    'WWW-Authenticate': text('The scheme to authenticate with.', '^Bearer', 'Bearer'),
    Allow: fixed('The methods that are allowed.', ALLOWED_METHODS),
    'Retry-After': integer('Seconds, rounded up, until one request is admitted if no others come.', 1, 14),
  }),
  'Retry-After-IfUseful': integer('Seconds until trying again can help; left out where it cannot.', 1, 5),
};

/** Every header component by its name. `...-IfCounted` is there if the request counted against a key. */
export const headerComponents: Headers = {
  ...required(always),
  ...required(caching),
  Age: age,
  ...omitted,
  ...required(counted),
  ...Object.fromEntries(Object.entries(counted).map(([name, header]) => [`${name}-IfCounted`, header])),
  ...sometimes,
  ...particular,
};

/** On every response, or on every one of a deprecated operation or of a list. */
export const alwaysHeaders = { ...references(always), ...references(sometimes) };
/** On what was read: 200 and 304. */
export const cachingHeaders = references({ ...caching, ...omitted });
/** On every response to a request that counted against a key. */
export const countedHeaders = references(counted);
/** The same on a status that a request may also get before its key is known to be active. */
export const maybeCountedHeaders = references(counted, '-IfCounted');

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
    description:
      'An id of your own for this request: 1 to 64 letters, digits, dots, hyphens and underscores. One of another form, or with `evg_` in it, is replaced by a new one.',
    schema: { type: 'string', pattern: REQUEST_ID.source, minLength: 1, maxLength: 64 },
  },
} as const satisfies Readonly<Record<string, oas31.ParameterObject>>;

/** One header by the name of its component, if that differs from the header's own. */
export function headerReference(component: string): oas31.ReferenceObject {
  return { $ref: `#/components/headers/${component}` };
}

/** Limit, remaining requests and reset of one window; the examples in this order. */
function windowHeaders(prefix: string, window: string, [limit, remaining, reset]: readonly [number, number, number]) {
  return {
    [`${prefix}-Limit`]: integer(`Limit of the ${window} window.`, 1, limit),
    [`${prefix}-Remaining`]: integer(`Requests left in the ${window} window, after this one.`, 0, remaining),
    [`${prefix}-Reset`]: integer(
      `The ${window} window: Unix time in seconds, rounded up, at which that window is empty again if no more requests come.`,
      0,
      reset,
      'int64',
    ),
  };
}

function text(description: string, pattern: string, example: string): Header {
  return { description, schema: { type: 'string', pattern }, example };
}

function integer(description: string, minimum: number, example: number, format = 'int32'): Header {
  return { description, schema: { type: 'integer', format, minimum }, example };
}

function choice(description: string, values: readonly string[]): Header {
  return { description, schema: { type: 'string', enum: [...values] }, example: values[0] };
}

function fixed(description: string, value: string): Header {
  return { description, required: true, schema: { type: 'string', const: value }, example: value };
}

function references(headers: Headers, suffix = ''): HeaderReferences {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, headerReference(`${name}${suffix}`)]));
}

function required(headers: Headers): Record<string, Header> {
  return Object.fromEntries(Object.entries(headers).map(([name, header]) => [name, { ...header, required: true }]));
}
