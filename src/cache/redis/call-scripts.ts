/**
 * The scripts of a miss: look or lease, renew, complete, end without an answer; and the backfill of a list's records. Each takes
 * one JSON and, beside it, the metadata and the body of what is filed, which are kept as they are sent.
 */
import { defineScript } from '../../redis/script.ts';
import type { Position } from '../../journal/journal.ts';
import type { CompletionStatus } from '../shared-cache.ts';
import { ENTRY_LUA, HAS_COPY } from './entry-format.ts';
import { SEEN_LUA, type SeenNote } from './redis-seen-calls.ts';

/**
 * Filing and ending copies. `key` is the hash of a key's owners, `copies` the names of the copies of some owners, in their order;
 * `listed` what the hash holds of them; `place` the one of the owner that the answer is filed under, 0 for none.
 *
 * Redis may evict the hash, and without it nobody could delete a copy by its id. So a copy that is not listed is none.
 *
 * `listedIn`: what the hash holds of these owners. `isEnded`: whether an answer that was requested later has ended the copies
 * of that owner. `list`: notes that there is one. `endOthers`: ends the copies of all these owners but one, unless `isSpared`
 * says of one that it is newer than the answer; and notes the time for so long, so that an older answer files nothing there;
 * where there was no copy, only if there is memory to spare. Returns the owners that had a copy; nil for none.
 */
const FILING_LUA = `
local function isEnded(listed, atMs)
  local endedAtMs = tonumber(listed or '')
  return endedAtMs ~= nil and isLater(endedAtMs, atMs)
end
local function listedIn(key, owners)
  local listed = redis.pcall('HMGET', key, unpack(owners))
  if not listed.err then return listed end
  redis.call('DEL', key)
  return {}
end
local function list(key, owner, keepMs)
  redis.call('HSET', key, owner, '${HAS_COPY}')
  keepAtLeast(key, keepMs)
end
local function endOthers(key, owners, copies, listed, place, answer, isSpared)
  local ended, changes = {}, {}
  for i, owner in ipairs(owners) do
    if i ~= place and not isEnded(listed[i], answer.requestedAtMs) then
      local isCopy = listed[i] == '${HAS_COPY}'
      local present = isCopy and read(copies[i])
      if not (present and isSpared(present)) then
        if isCopy then
          redis.call('DEL', copies[i])
          ended[#ended + 1] = owner
        end
        if isCopy or not answer.isShort then
          changes[#changes + 1] = owner
          changes[#changes + 1] = string.format('%.0f', answer.requestedAtMs)
        end
      end
    end
  end
  if #changes > 0 then
    redis.call('HSET', key, unpack(changes))
    keepAtLeast(key, answer.lateMs)
  end
  return #ended > 0 and ended or nil
end
`;

export interface LookArgs {
  /** Undefined if no lease is wanted. */
  readonly token: string | undefined;
  /** How long a lease holds. */
  readonly leaseMs: number;
  /** When the newest answer was requested that the process has seen, Unix milliseconds; undefined for none. */
  readonly seenAtMs: number | undefined;
  readonly owners: readonly string[];
  /** Whether what was last seen of the call is wanted with the lease. */
  readonly isSeenWanted: boolean;
}

/**
 * KEYS: lease, failure, negative entry, the key's owners, what was seen of the call, the copies of the set's owners.
 * ARGV: LookArgs. Returns a list that begins with JSON, for the first of these that there is:
 * 1. `found`: the newest answer that is newer than `seenAtMs`, and its meta, body and mark of a change; `place`: that of its owner
 *    (0: it is the negative entry). The process has to judge it before it asks again, with this `seenAtMs`. An answer from the
 *    future is only news to a process that has seen none (C9: it beats no other)
 * 2. `failed`, and the failure
 * 3. `taken`: how long another's lease still holds
 * 4. `leased`, with what was last seen; `nothing` if no lease is wanted
 */
export const LOOK = defineScript(
  'lookOrLease',
  `${ENTRY_LUA}${FILING_LUA}
local look = cjson.decode(ARGV[1])
local listed = listedIn(KEYS[4], look.owners)
local newest, newestAtMs, newestPlace
local function consider(key, place)
  local entry = read(key)
  if not entry or look.seenAtMs and not isLater(entry.requestedAtMs, look.seenAtMs) then return end
  local atMs = isFromFuture(entry.requestedAtMs) and 0 or entry.requestedAtMs
  if not newest or atMs > newestAtMs then newest, newestAtMs, newestPlace = key, atMs, place end
end
for place in ipairs(look.owners) do
  if listed[place] == '${HAS_COPY}' then consider(KEYS[5 + place], place) end
end
consider(KEYS[3], 0)
if newest then
  use(newest)
  local fields = redis.call('HMGET', newest, 'meta', 'body', 'changed')
  local found = {status = 'found', seenAtMs = newestAtMs, place = newestPlace}
  return {cjson.encode(found), fields[1], fields[2], fields[3]}
end
local failure = redis.call('GET', KEYS[2])
if failure then return {'{"status":"failed"}', failure} end
if not look.token then return {'{"status":"nothing"}'} end
if not redis.call('SET', KEYS[1], look.token, 'NX', 'PX', look.leaseMs) then
  return {cjson.encode({status = 'taken', leaseLeftMs = math.max(1, redis.call('PTTL', KEYS[1]))})}
end
local lastSeen = {}
local seen = look.isSeenWanted and redis.pcall('HMGET', KEYS[5], unpack(look.owners)) or {}
for place, owner in ipairs(look.owners) do lastSeen[owner] = seen[place] or nil end
return {cjson.encode({status = 'leased', lastSeen = lastSeen})}
`,
);

/** KEYS: lease. ARGV: token, how long it holds from now. */
export const RENEW = defineScript(
  'renewLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`,
);

export interface CompletionArgs {
  readonly token: string;
  readonly channel: string;
  /** Published if the answer is filed, and if it is not: then the others must not drop their copies for it. */
  readonly messages: { readonly filed: string; readonly unfiled: string };
  /** When the answer was requested, and how far the journal was known then: the same as in its meta. */
  readonly requestedAtMs: number;
  readonly position: Position;
  /** Whether the answer is filed; `replace`: only in the place of another copy. */
  readonly filing: 'always' | 'replace' | 'never';
  /** The place of the owner that it is filed under; 0: it is a negative entry. */
  readonly place: number;
  readonly owners: readonly string[];
  readonly keepMs: number;
  /** How long endings are remembered. */
  readonly lateMs: number;
  /** Who brings it. */
  readonly by: string;
  /** The sighting of the call in the answer, if it is to be noted. */
  readonly sighting: SeenNote | undefined;
}

export interface CompletionReply {
  readonly status: CompletionStatus;
  /** Whether it was filed where there was no copy. */
  readonly isAdded?: boolean | undefined;
  /** The owners whose copies have ended. */
  readonly ended?: readonly string[] | undefined;
}

/**
 * KEYS: lease, where the answer is filed, the key's owners, what was seen of the call, the copies of the set's owners.
 * ARGV: CompletionArgs, meta, body. Returns CompletionReply.
 *
 * Calls for several sets may be under way at once, and a page may backfill the copy:
 * 1. This call begins.
 * 2. Another one begins later, and files its answer first, or ends the copy.
 * 3. This one completes. Its copy is older, and is not filed, if the other one knew of as many purges. A negative entry is
 *    filed all the same: nobody else writes that of its set, and an id that the store does not have must leave what a foreign
 *    record leaves (K7a: nobody can tell them apart).
 */
export const COMPLETE = defineScript(
  'completeLease',
  `${ENTRY_LUA}${FILING_LUA}${SEEN_LUA}
local args = cjson.decode(ARGV[1])
if redis.call('GET', KEYS[1]) ~= args.token then return '{"status":"lost"}' end
redis.call('DEL', KEYS[1])
if args.sighting then noteSeen(KEYS[4], args.sighting) end
local owners, copies, place, requestedAtMs = args.owners, {unpack(KEYS, 5)}, args.place, args.requestedAtMs
local listed = listedIn(KEYS[3], owners)
local answer = {requestedAtMs = requestedAtMs, lateMs = args.lateMs, isShort = args.filing == 'replace'}
local function isSpared(present)
  return isLater(present.requestedAtMs, requestedAtMs)
end
local status, present = 'stored', nil
if place > 0 then
  present = listed[place] == '${HAS_COPY}' and read(KEYS[2])
  local isOvertaken = present and isSpared(present) and present.position.history == args.position.history
    and present.position.sequence >= args.position.sequence
  if isOvertaken or isEnded(listed[place], requestedAtMs) then status = 'overtaken'
  elseif args.filing == 'never' or args.filing == 'replace' and not present then status = 'unshared' end
end
local isFiled = status == 'stored'
if isFiled then write(KEYS[2], ARGV[2], ARGV[3], args.keepMs, args.by) end
if isFiled and place > 0 then list(KEYS[3], owners[place], args.keepMs) end
local ended = endOthers(KEYS[3], owners, copies, listed, place, answer, isSpared)
redis.call('PUBLISH', args.channel, isFiled and args.messages.filed or args.messages.unfiled)
return cjson.encode({status = status, isAdded = isFiled and place > 0 and not present, ended = ended})
`,
);

export interface EndArgs extends Pick<CompletionArgs, 'token' | 'channel'> {
  readonly message: string;
  /** As JSON; undefined if the call was not sent. */
  readonly failure: string | undefined;
  readonly rememberMs: number;
}

/** KEYS: lease, failure. ARGV: EndArgs. */
export const END = defineScript(
  'endLease',
  `
local args = cjson.decode(ARGV[1])
if redis.call('GET', KEYS[1]) ~= args.token then return 0 end
redis.call('DEL', KEYS[1])
if args.failure then redis.call('SET', KEYS[2], args.failure, 'PX', args.rememberMs) end
redis.call('PUBLISH', args.channel, args.message)
return 1
`,
);

/** One record of a list. */
export interface BackfillRecord extends Pick<CompletionArgs, 'requestedAtMs' | 'place' | 'owners' | 'keepMs'> {
  readonly filing: 'always' | 'replace';
  /** How long the copy is kept unless it is read alone. */
  readonly briefMs: number;
}

export interface BackfillArgs extends Pick<CompletionArgs, 'lateMs' | 'by'> {
  readonly records: readonly BackfillRecord[];
}

export interface BackfillReply extends Pick<CompletionReply, 'isAdded' | 'ended'> {
  /** Something is there whose fetch was not over when the new one began. */
  readonly isTooLate: boolean;
}

/**
 * KEYS: of each record its key's owners, and the copies of some of them. ARGV: BackfillArgs, then of each record its meta and
 * body. Returns a BackfillReply for each. A copy that takes the place of another that was read counts as read.
 */
export const BACKFILL = defineScript(
  'backfillCopies',
  `${ENTRY_LUA}${FILING_LUA}
local args, replies, at = cjson.decode(ARGV[1]), {}, 1
for i, record in ipairs(args.records) do
  local meta, body, owners, place = ARGV[2 * i], ARGV[2 * i + 1], record.owners, record.place
  local requestedAtMs = record.requestedAtMs
  local listing, copies = KEYS[at], {unpack(KEYS, at + 1, at + #owners)}
  at = at + 1 + #owners
  local listed = listedIn(listing, owners)
  local answer = {requestedAtMs = requestedAtMs, lateMs = args.lateMs, isShort = record.filing == 'replace'}
  local function isSpared(present)
    return present.receivedAtMs >= requestedAtMs and not isFromFuture(present.requestedAtMs)
  end
  local present = listed[place] == '${HAS_COPY}' and read(copies[place]) or nil
  local isTooLate = isEnded(listed[place], requestedAtMs) or present ~= nil and isSpared(present)
  local isFiled = not isTooLate and (present ~= nil or record.filing ~= 'replace')
  if isFiled then
    local wasRead = present and redis.call('HEXISTS', copies[place], 'whole') == 0
    write(copies[place], meta, body, record.keepMs, args.by, not wasRead and record.briefMs or nil)
    list(listing, owners[place], record.keepMs)
  end
  local ended = endOthers(listing, owners, copies, listed, place, answer, isSpared)
  replies[i] = {isTooLate = isTooLate, isAdded = isFiled and not present, ended = ended}
end
return cjson.encode(replies)
`,
);
