/** Makes the key of a request, in this one place. Pure. */
import { createHash } from 'node:crypto';
import type { ResourceKind } from '../upstream/resources.ts';
import type { ListQuery } from '../upstream/store.ts';

/** Goes up whenever an entry's stored form changes, so that two releases can run side by side over one Redis. */
const FORMAT = 'v2';

/** Beyond this a list is named by its hash: a list of 50 workspaces would otherwise have a key of 2 kB. */
const MAX_PLAIN_LENGTH = 200;

/**
 * Brings a query into the one form that all equal questions share.
 *
 * The store searches case-insensitively, so the case of ASCII letters can't change the answer and is dropped. Nothing
 * else is touched: beyond ASCII the rules of case differ between implementations, a space may be what is searched for,
 * and composed and decomposed characters are different strings to a substring search.
 */
export function normaliseQuery(query: ListQuery): ListQuery {
  const workspaceIds = [...new Set(query.workspaceIds.map((id) => id.toLowerCase()))].toSorted();
  const search = query.search === null || query.search === '' ? null : lowerAscii(query.search);
  return { workspaceIds, search, scorecardId: query.scorecardId, offset: query.offset, limit: query.limit };
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * The braces make everything that is kept beside the entry land in the same slot of a Redis Cluster:
 * `v2:{evaluation:ID}`, `v2:{evaluation:ID}:lease`.
 */
export function singleKey(kind: Exclude<ResourceKind, 'list'>, id: string): string {
  return `${FORMAT}:{${kind}:${id}}`;
}

/** `query` is normalised. Searched lists have hashed keys: what people search for is nobody else's business. */
export function listKey(query: ListQuery): string {
  const parts = [query.workspaceIds.join(','), query.scorecardId, query.offset, query.limit];
  if (query.search !== null) return `${FORMAT}:{search:${digest([...parts, query.search])}}`;
  const plain = parts.join('/');
  return `${FORMAT}:{list:${plain.length <= MAX_PLAIN_LENGTH ? plain : digest(parts)}}`;
}

/** Whether the key is that of a searched list. */
export function isSearchKey(key: string): boolean {
  return key.startsWith(`${FORMAT}:{search:`);
}

/** JSON keeps the parts apart whatever they hold. */
function digest(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
