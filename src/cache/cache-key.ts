/** Makes the key of a request, in this one place. Pure. */
import { createHash } from 'node:crypto';
import type { ResourceKind } from '../upstream/resources.ts';
import type { ListQuery } from '../upstream/store.ts';

/** Goes up with ENTRY_VERSION in redis/entry-format.ts, so that two releases can run side by side over one Redis. */
const KEY_VERSION = 'v2';

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

/** The key of a single record: `v2:{evaluation:ID}`. Its name in Redis, and the hash tag in it, are made in redis/names.ts. */
export function singleKey(kind: Exclude<ResourceKind, 'list'>, id: string): string {
  return `${KEY_VERSION}:{${kind}:${id}}`;
}

/** `query` is normalised. Searched lists have hashed keys: what people search for is nobody else's business. */
export function listKey(query: ListQuery): string {
  const parts = [query.workspaceIds.join(','), query.scorecardId, query.offset, query.limit];
  if (query.search !== null) return `${KEY_VERSION}:{search:${digest([...parts, query.search])}}`;
  const plain = parts.join('/');
  return `${KEY_VERSION}:{list:${plain.length <= MAX_PLAIN_LENGTH ? plain : digest(parts)}}`;
}

/** Whether the key is that of a searched list. */
export function isSearchKey(key: string): boolean {
  return key.startsWith(`${KEY_VERSION}:{search:`);
}

/** JSON keeps the parts apart whatever they hold. */
function digest(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
