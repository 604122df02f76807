/** The introduction of the document: the API as a whole. */
import type { QuotaLimits } from '../../quota/limiter.ts';
import { errorCodes } from '../problem.ts';

/** Stands for the address of the gateway. The page puts the gateway's own in its place. */
export const EXAMPLE_ORIGIN = 'https://gateway.example';

const FEED_ADVICE =
  ' Then follow `GET /v2/changes`: it names what to read again and what is gone. Take its first cursor before you read all calls.';

function errorTable(hasFeed: boolean): string {
  const rows = errorCodes(hasFeed).map(([code, { status, meaning }]) => `| ${status} | \`${code}\` | ${meaning} |`);
  return ['| Status | X-Error-Code | Meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

/**
 * The part of the reference that holds for every operation. `limits`: those of a key that has none of its own. `origin`: of the
 * first request. `hasFeed`: whether there is a feed of changes.
 */
export function introductionOf(limits: QuotaLimits, origin: string, hasFeed: boolean): string {
  return `This API publishes the results of automated coaching evaluations of recorded sales calls. It only reads.

It has two surfaces. Version 1 (\`/v1\`) shows **reports** of one workspace. Version 2 (\`/v2\`) shows the same evaluations as **calls**, across all workspaces of a key, with transcripts in pages and with rubrics.

## First request
Ask for the two newest calls that your key may read:

\`\`\`bash
curl -H 'Authorization: Bearer YOUR_KEY' '${origin}/v2/calls?pageSize=2'
\`\`\`

\`\`\`javascript
const response = await fetch('${origin}/v2/calls?pageSize=2', {
  headers: { Authorization: 'Bearer YOUR_KEY' },
});
console.log(response.status, await response.json());
\`\`\`

\`\`\`python
import requests

response = requests.get(
    '${origin}/v2/calls?pageSize=2',
    headers={'Authorization': 'Bearer YOUR_KEY'},
)
print(response.status_code, response.json())
\`\`\`

To try the operations on this page, press *Authorize* and enter your key. Each answer then shows its request in the same three languages. Keys are for servers: there is no CORS, so web pages of other origins cannot call the API.

## Requests
Every operation is a GET and takes no body. HEAD works wherever GET does and answers with the same status and headers, without the body. Any other method is answered with 405.

Lengths are counted in Unicode code points. Version 1 ignores unknown parameters and corrects invalid numbers. Version 2 refuses every invalid query with 400: a parameter that is unknown, empty, repeated, of the wrong type or out of range. Only \`after\` of \`/v2/calls\` may be empty.

A request that is not proper HTTP, has headers of more than 16 kB, or does not arrive within 10 seconds is answered with 400. So is an address of more than 8192 bytes; the single reads of version 1 answer it with 404.

## Authentication
Send an API key with every request: \`Authorization: Bearer <API key>\`. A key has scopes (\`reports.read\`, \`calls.read\`, \`coaching.read\`) and workspaces.

- **401**: there is no key in the request, or it was never issued.
- **403**: the key was issued, but it is not active any more, lacks the scope, may not see the workspace, or is bound to addresses and was used from another. \`X-Error-Code\` says which.
- **404**: a record of another workspace looks the same as one that does not exist.

## Pagination
Lists are newest first. \`Link\` (RFC 8288) leads to the \`first\`, \`prev\`, \`next\` and \`last\` page of a list or a transcript; its addresses are relative to that of the request. Follow \`next\` until there is none.

## Keeping a copy
Two pages may be copies of different moments, so reading by \`page\` can leave gaps. Read all calls with \`GET /v2/calls?after=\` and follow \`next\`: each page holds the calls that follow the last one of the page before, whatever is added above it or removed. Keep calls by id, and send \`If-None-Match\`: a page that has not changed is a 304.${hasFeed ? FEED_ADVICE : ''}

## Rate limits
Each key has two sliding windows: ${limits.perMinute} requests in any 60 seconds (\`minute\`) and ${limits.perHour} requests in any 3600 seconds (\`hour\`), unless it has limits of its own. Every request with an active key counts, also one that is answered with an error, and both surfaces count together. A request that is refused with 429 counts in neither window, nor does one from an address that the key is not bound to (\`address_forbidden\`). Nor do requests to \`GET /v1/key\` and \`GET /v2/key\`, which show what a key may read and what is left of its quota.

Responses to counted requests carry the \`X-RateLimit-*\` headers for both windows and for the active one, which is the one with fewer requests left (\`minute\` if both have the same), and \`RateLimit\` and \`RateLimit-Policy\` of the IETF draft. \`Remaining\` is after this request. \`Reset\` is when the window would be empty again if no more requests came. On a 429, \`Retry-After\` is the earliest time at which one more request is admitted.

## Caching
Answers come from a cache if it holds them. \`Age\` is the age of the data in seconds, and \`Cache-Status\` says how the gateway answered. \`Cache-Control: private, max-age=..., must-revalidate\` says how long you may use a copy. Send its \`ETag\` as \`If-None-Match\`: if nothing has changed, the answer is a 304 without a body. A request cannot bypass the cache. Answers are compressed as \`Accept-Encoding\` asks.

## Versions
An operation that will end says so on every answer: \`Deprecation\` (RFC 9745) is since when, \`Sunset\` (RFC 8594) from when it may be gone, and \`Link\` where to read more.

## Errors
Errors are JSON in the form of their surface and must not be kept (\`Cache-Control: no-store\`). Their messages are for people. For programs, every error has an \`X-Error-Code\`:

${errorTable(hasFeed)}

Every response carries \`X-Request-Id\`; name it when you ask about a request.`;
}
