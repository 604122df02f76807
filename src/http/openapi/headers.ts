/** The response headers of the public API as reusable components, and which of them a response has. */
import type { oas31 } from 'zod-openapi';

type Header = oas31.HeaderObject;
type HeaderReferences = Readonly<Record<string, oas31.ReferenceObject>>;

const seconds = { type: 'integer', minimum: 0 } as const;
const count = { type: 'integer', minimum: 0 } as const;
const limit = { type: 'integer', minimum: 1 } as const;
const unixSeconds = { type: 'integer', minimum: 0 } as const;
const RESET = 'Unix time in seconds, rounded up, at which that window is empty again if no more requests come.';

const always: Readonly<Record<string, Header>> = {
  'X-Request-Id': {
    description: 'Names the request in the logs of the gateway: the `X-Request-Id` that was sent, or a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
    example: 'b5e0c1de-6f0e-4bb4-9a53-6d5a1f0c8e11',
  },
  Vary: {
    description: 'The response depends on these headers beside its address.',
    schema: { type: 'string', const: 'Authorization, Accept-Encoding' },
    example: 'Authorization, Accept-Encoding',
  },
};

const sometimes: Readonly<Record<string, Header>> = {
  Deprecation: {
    description:
      'Only where the operation is deprecated, or will be: since when (RFC 9745), as an `@` and a Unix time in seconds.',
    schema: { type: 'string', pattern: '^@[0-9]+$' },
    example: '@1798761600',
  },
  Sunset: {
    description: 'Only where that is settled: from when the operation may be gone (RFC 8594).',
    schema: { type: 'string' },
    example: 'Sat, 01 Jan 2028 00:00:00 GMT',
  },
  Link: {
    description:
      'On lists and transcript pages: the `first`, `prev`, `next` and `last` page, as far as there are such (RFC 8288), relative to the address of the request. Where the operation is deprecated: what people can read about it.',
    schema: { type: 'string', pattern: '^<[^>]+>; rel="[a-z]+"(?:, <[^>]+>; rel="[a-z]+")*$' },
    example: '<?page=1&pageSize=50>; rel="first", <?page=2&pageSize=50>; rel="next", <?page=7&pageSize=50>; rel="last"',
  },
};

const caching: Readonly<Record<string, Header>> = {
  ETag: {
    description: 'Names these bytes in this coding. Send it as `If-None-Match` to get a 304 while nothing has changed.',
    schema: { type: 'string', pattern: '^"[!#-~]+"$' },
    example: '"2jmj7l5rSw0yVb_vlWAYkK_YBwk"',
  },
  Age: {
    description: 'Seconds since the gateway fetched the data.',
    schema: seconds,
    example: 12,
  },
  'Cache-Control': {
    description:
      'Only the consumer itself may keep the response. `max-age` is `Age` and the whole seconds of freshness that are left; 0 when the data is stale.',
    schema: { type: 'string', pattern: '^private, max-age=[0-9]+$' },
    example: 'private, max-age=300',
  },
  'Cache-Status': {
    description:
      'How the gateway answered (RFC 9211): `hit` from its cache, with the seconds of freshness left as `ttl` (negative when stale), or `fwd` where the store was asked.',
    schema: { type: 'string', pattern: '^evalgate; (?:hit|fwd=[a-z-]+)(?:; .+)?$' },
    example: 'evalgate; hit; ttl=288',
  },
};

const counted: Readonly<Record<string, Header>> = {
  'X-RateLimit-Limit': { description: 'Limit of the active window.', schema: limit, example: 120 },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the active window, after this one.',
    schema: count,
    example: 117,
  },
  'X-RateLimit-Reset': { description: `The active window: ${RESET}`, schema: unixSeconds, example: 1772600827 },
  'X-RateLimit-Active-Window': {
    description: 'The window with fewer requests left; `minute` where both have the same.',
    schema: { type: 'string', enum: ['minute', 'hour'] },
    example: 'minute',
  },
  'X-RateLimit-Minute-Limit': { description: 'Limit of the minute window.', schema: limit, example: 120 },
  'X-RateLimit-Minute-Remaining': {
    description: 'Requests left in the minute window, after this one.',
    schema: count,
    example: 117,
  },
  'X-RateLimit-Minute-Reset': { description: `The minute window: ${RESET}`, schema: unixSeconds, example: 1772600827 },
  'X-RateLimit-Hour-Limit': { description: 'Limit of the hour window.', schema: limit, example: 3000 },
  'X-RateLimit-Hour-Remaining': {
    description: 'Requests left in the hour window, after this one.',
    schema: count,
    example: 2875,
  },
  'X-RateLimit-Hour-Reset': { description: `The hour window: ${RESET}`, schema: unixSeconds, example: 1772604367 },
  'RateLimit-Policy': {
    description: 'Both limits (`q`) and the lengths of their windows in seconds (`w`), as in the IETF draft.',
    schema: { type: 'string', pattern: '^"minute";q=[0-9]+;w=60, "hour";q=[0-9]+;w=3600$' },
    example: '"minute";q=120;w=60, "hour";q=3000;w=3600',
  },
  RateLimit: {
    description:
      'The requests left in both windows (`r`), and the seconds until the next request leaves each (`t`), as in the IETF draft.',
    schema: { type: 'string', pattern: '^"minute";r=[0-9]+(?:;t=[0-9]+)?, "hour";r=[0-9]+(?:;t=[0-9]+)?$' },
    example: '"minute";r=117;t=14, "hour";r=2875;t=902',
  },
};

const particular: Readonly<Record<string, Header>> = {
  'Content-Encoding': {
    description: 'The coding of the body, where it has one. It follows `Accept-Encoding`.',
    schema: { type: 'string', enum: ['br', 'zstd', 'gzip'] },
    example: 'br',
  },
  'Cache-Control-NoStore': {
    description: 'The response is not to be kept.',
    required: true,
    schema: { type: 'string', const: 'no-store' },
    example: 'no-store',
  },
  'WWW-Authenticate': {
    description: 'The scheme to authenticate with.',
    required: true,
    schema: { type: 'string', pattern: '^Bearer' },
    example: 'Bearer',
  },
  Allow: {
    description: 'The methods that are allowed.',
    required: true,
    schema: { type: 'string', const: 'GET, HEAD' },
    example: 'GET, HEAD',
  },
  'Retry-After': {
    description: 'Seconds, rounded up, until one request is admitted if no others come.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
    example: 14,
  },
  'Retry-After-IfUseful': {
    description: 'Seconds until trying again can help; left out where it cannot.',
    schema: { type: 'integer', minimum: 1 },
    example: 5,
  },
};

/** Every header component by its name. `...-IfCounted` is there where the request counted against a key. */
export const headerComponents: Readonly<Record<string, Header>> = {
  ...required(always),
  ...required(caching),
  ...required(counted),
  ...Object.fromEntries(Object.entries(counted).map(([name, header]) => [`${name}-IfCounted`, header])),
  ...sometimes,
  ...particular,
};

/** On every response, or on every one of a deprecated operation or of a list. */
export const alwaysHeaders = { ...references(always), ...references(sometimes) };
/** On what was read: 200 and 304. */
export const cachingHeaders = references(caching);
/** On every response to a request that counted against a key. */
export const countedHeaders = references(counted);
/** The same on a status that a request may also get before its key is known to be active. */
export const maybeCountedHeaders = references(counted, '-IfCounted');

/** One header by the name of its component, where that differs from the header's own. */
export function headerReference(component: string): oas31.ReferenceObject {
  return { $ref: `#/components/headers/${component}` };
}

function references(headers: Readonly<Record<string, Header>>, suffix = ''): HeaderReferences {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, headerReference(`${name}${suffix}`)]));
}

function required(headers: Readonly<Record<string, Header>>): Record<string, Header> {
  return Object.fromEntries(Object.entries(headers).map(([name, header]) => [name, { ...header, required: true }]));
}
