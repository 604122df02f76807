/**
 * The last line of defence before a log line is written. Code that logs must not hand over secrets, addresses of the
 * store or query strings; what slips through all the same is taken out here. Pure.
 */

const HIDDEN = '[hidden]';

/** Members whose values are never written, whatever object they are in, compared in lower case without `-` and `_`. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'key',
  'apikey',
  'token',
  'tokens',
  'secret',
  'password',
  'hash',
  'url',
  'originalurl',
  'href',
  'query',
  'querystring',
  'search',
  'body',
]);

const MAX_DEPTH = 5;

/** A copy of what is to be logged, in which the values of secret members are hidden at any depth. */
export function scrubMembers(fields: Record<string, unknown>): Record<string, unknown> {
  return scrubObject(fields, 1);
}

function scrubObject(fields: object, depth: number): Record<string, unknown> {
  const scrubbed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    scrubbed[name] = isSecret(name) && value !== null && value !== undefined ? HIDDEN : scrubValue(value, depth);
  }
  return scrubbed;
}

function isSecret(name: string): boolean {
  return SECRET_MEMBERS.has(name.toLowerCase().replaceAll(/[-_]/g, ''));
}

function scrubValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  // Errors have a serializer of their own; dates and the like know how to write themselves.
  if (value instanceof Error || 'toJSON' in value) return value;
  if (depth >= MAX_DEPTH) return '[deep]';
  return Array.isArray(value)
    ? value.map((item: unknown) => scrubValue(item, depth + 1))
    : scrubObject(value, depth + 1);
}

/** Addresses with a scheme, up to what ends them in a sentence or in JSON. */
const ADDRESS = /\b(?:https?|rediss?(?:\+[a-z]+)?):\/\/[^\s"'\\<>]+/gi;
const TOKEN = /\bevg_[A-Za-z0-9]{8,}/g;
const CREDENTIALS = /\b(Bearer|Basic) +[^\s"'\\,]+/gi;

/** A text without keys of ours and without credentials of an Authorization header. Safe on JSON: no quote is touched. */
export function scrubTokens(text: string): string {
  return text.replaceAll(TOKEN, HIDDEN).replaceAll(CREDENTIALS, `$1 ${HIDDEN}`);
}

/** A text of an error without the addresses that it was about. */
export function scrubAddresses(text: string): string {
  return text
    .replaceAll(ADDRESS, '[address]')
    .replaceAll(/\bconnect (E[A-Z]+) \S+(?: - Local \([^)]*\))?/g, 'connect $1')
    .replaceAll(/\b(getaddrinfo|query[A-Za-z]*) (E[A-Z_]+) \S+/g, '$1 $2')
    .replaceAll(/\bHost: \S+ is not/g, 'the host is not')
    .replaceAll(/(altnames: .*?)(DNS|IP Address|IP):.*/g, '$1[address]');
}
