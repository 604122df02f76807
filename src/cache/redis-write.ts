/** How an entry is put into Redis, for all scripts that do. */
import { encodeEntry } from './redis-entry.ts';
import { classOf, type StoredEntry } from './stored.ts';
import type { CacheTtl, TtlPolicy } from './ttl-policy.ts';

/**
 * Two fields of a hash, so that what is known of an entry can be read without its record. `read` gives what scripts
 * compare by; nil for what is no entry.
 */
export const ENTRY_LUA = `
local function write(key, meta, body, keepMs)
  redis.call('DEL', key)
  redis.call('HSET', key, 'meta', meta, 'body', body)
  redis.call('PEXPIRE', key, keepMs)
end
local function read(key)
  if redis.call('TYPE', key).ok ~= 'hash' then return nil end
  local isRead, meta = pcall(cjson.decode, redis.call('HGET', key, 'meta') or '')
  if not isRead or type(meta) ~= 'table' or type(meta.position) ~= 'table' then return nil end
  if type(meta.filledAtMs) ~= 'number' or type(meta.fetchedAtMs) ~= 'number' then return nil end
  return meta
end
`;

/** For those who wait for it: also what is of no use afterwards is kept so long. */
const LEAST_KEPT_MS = 5000;
const MOST_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

/** `meta`, `body` and `keepMs` of `write`. */
export type EntryArgs = readonly [meta: string, body: Buffer, keepMs: number];

export async function entryArgs(key: string, stored: StoredEntry, times: Pick<TtlPolicy, 'of'>): Promise<EntryArgs> {
  const { meta, body } = await encodeEntry(key, stored);
  return [meta, body, keptMs(times.of(classOf(stored.kind, stored.entry)))];
}

/**
 * How long Redis keeps an entry. Longer than it is served: past its times its validator may still save a transfer. The
 * times in force when it is read decide what it is good for; this only clears away what nobody reads any more.
 */
export function keptMs({ freshMs, staleMs, errorMs }: CacheTtl): number {
  return Math.min(MOST_KEPT_MS, Math.max(LEAST_KEPT_MS, freshMs + staleMs + errorMs));
}
