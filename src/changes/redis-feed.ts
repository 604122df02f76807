/**
 * The feed of processes over one Redis, in the slot of the journal:
 * - `feed`: a hash. `history`, that of the journal for which the feed was begun; `word`, a random one that names the feed;
 *   `settled`, up to which event of the journal all processes have applied; and per workspace the number of its last event.
 * - `feed:WORKSPACE`: a stream. Entry `n-0` is event n of the workspace: `sequence`, the number of its announcement in the
 *   journal; `order`, its place among the events of that announcement; `at`, Unix milliseconds; `event`, JSON.
 * - `announced:ID`: the journal's history and the number of the announcement of that id, for a day.
 *
 * The script that appends the announcement writes its events, so no event is lost between the two. How a reader could miss
 * events, and why it is told: the journal has begun a new history, or the hash is gone (another word); a stream is gone,
 * or was trimmed (its first entry is not the one that follows, or there is none although the hash counts more).
 */
import { z } from 'zod';
import { messageOf } from '../log/error.ts';
import type { RedisJournal } from '../journal/redis-journal.ts';
import { journalScript, recordingScript } from '../journal/scripts.ts';
import type { RedisLink } from '../redis/connection.ts';
import { announcementKey, FEED_KEY, feedOfKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { EVENT_CHANGES, EVENT_KINDS } from './events.ts';
import {
  BEGIN_BEFORE_MS,
  type Appended,
  type Appending,
  type ChangeFeed,
  FeedUnavailableError,
  type FeedPage,
  type FeedQuery,
  MAX_EVENTS,
  REMEMBERED_MS,
  VISIBLE_AFTER_MS,
} from './feed.ts';

/** Old events that one announcement removes from a stream at most. */
const TRIMMED_AT_ONCE = 1000;
/** Events of one workspace that a reading takes from its stream at a time. */
const BATCH = 100;

/** KEYS[3]: feed. Begins a new feed if there is none of this history; defines `feedWord`, its name, and `nowMs`. */
const OPEN_LUA = `
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local feed = redis.call('HMGET', KEYS[3], 'history', 'word')
local feedWord = feed[2]
if feed[1] ~= history or not feedWord then
  feedWord = asked.begin
  redis.call('DEL', KEYS[3])
  redis.call('HSET', KEYS[3], 'history', history, 'word', feedWord)
end
local function id(number) return string.format('%.0f-0', number) end
`;

/**
 * KEYS: also feed, the announcement, then the stream of each workspace. ARGV: also the event, JSON of its `mode` and `lists`,
 * `isNamed`, `hasFeed`, `rememberMs`, `keepMs` and `events`, which has a workspace and its events for each stream. Returns the
 * history and number of the announcement that was made before, or nothing. A large event would take long to be decoded here.
 *
 * A process without the feed begins none, but goes on with the one that others have, or had before they were started anew.
 */
const ANNOUNCE = recordingScript(
  'announceChanges',
  `
local given = cjson.decode(ARGV[3])
local before = given.isNamed and redis.call('GET', KEYS[4])
if before then return position(before) end
recordChanges(ARGV[2], given.mode, given.lists)
if given.hasFeed or redis.call('EXISTS', KEYS[3]) == 1 then
${OPEN_LUA}
  local announcement, at = string.format('%.0f', sequence), string.format('%.0f', nowMs)
  for i, of in ipairs(given.events) do
    local stream, workspace = KEYS[4 + i], of[1]
    local number = tonumber(redis.call('HGET', KEYS[3], workspace))
    if not number then redis.call('DEL', stream) end
    number = number or 0
    for _, event in ipairs(of[2]) do
      number = number + 1
      redis.call('XADD', stream, id(number), 'sequence', announcement, 'order', event[1], 'at', at, 'event', event[2])
    end
    redis.call('HSET', KEYS[3], workspace, string.format('%.0f', number))
    redis.call('XTRIM', stream, 'MAXLEN', ${MAX_EVENTS})
    for _ = 1, ${TRIMMED_AT_ONCE} do
      local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
      if not oldest or tonumber(oldest[2][6]) >= nowMs - given.keepMs then break end
      redis.call('XDEL', stream, oldest[1])
    end
    redis.call('PEXPIRE', stream, string.format('%.0f', given.keepMs))
  end
end
if given.isNamed then
  redis.call('SET', KEYS[4], history .. string.format(' %.0f', sequence), 'PX', given.rememberMs)
end
return position()
`,
);

/** KEYS: feed. ARGV: history, number. */
const SETTLE = defineScript(
  'settleFeed',
  `
local feed = redis.call('HMGET', KEYS[1], 'history', 'settled')
if feed[1] ~= ARGV[1] or tonumber(feed[2] or 0) >= tonumber(ARGV[2]) then return 0 end
return redis.call('HSET', KEYS[1], 'settled', ARGV[2])
`,
);

/**
 * KEYS: also feed, then the stream of each workspace. ARGV: JSON of `word` and `numbers`, the place by workspace (no word: from
 * now on), `workspaces`, `wanted`, which of them are read, and `limit`. Returns the word, or nothing if the place has
 * expired; the numbers of the place behind the events; whether there are more; and of each event its time and JSON.
 *
 * Events are visible in their order in the journal, so those of a workspace are a beginning of its stream.
 */
const READ = journalScript(
  'readFeed',
  `
${OPEN_LUA}
local given = cjson.decode(ARGV[2])
if given.word ~= '' and given.word ~= feedWord then return position(false) end
local settled = tonumber(redis.call('HGET', KEYS[3], 'settled') or 0)
local function isVisible(entry)
  return tonumber(entry[2][2]) <= settled or tonumber(entry[2][6]) <= nowMs - ${VISIBLE_AFTER_MS}
end
local lasts = redis.call('HMGET', KEYS[3], unpack(given.workspaces))
local numbers = {}
for i = 1, #given.workspaces do lasts[i] = tonumber(lasts[i] or 0) end
if given.word == '' then
  local fromMs = nowMs - ${BEGIN_BEFORE_MS}
  for i, last in ipairs(lasts) do
    local oldest = redis.call('XRANGE', KEYS[3 + i], '-', '+', 'COUNT', 1)[1]
    local low, high = oldest and numberOf(oldest) - 1 or last, last
    while low < high do
      local middle = math.ceil((low + high) / 2)
      local entry = redis.call('XRANGE', KEYS[3 + i], id(middle), id(middle))[1]
      if entry and tonumber(entry[2][6]) > fromMs then high = middle - 1 else low = middle end
    end
    numbers[i] = string.format('%.0f', low)
  end
  return position(feedWord, numbers, 0, {})
end
local heads = {}
for i, number in ipairs(given.numbers) do numbers[i] = number end
for _, i in ipairs(given.wanted) do
  if numbers[i] > lasts[i] then return position(false) end
  if numbers[i] < lasts[i] then
    local oldest = redis.call('XRANGE', KEYS[3 + i], '-', '+', 'COUNT', 1)[1]
    if not oldest or numberOf(oldest) > numbers[i] + 1 then return position(false) end
    table.insert(heads, {at = i, entries = {}, next = 1})
  end
end
local function headOf(head)
  if not head.entries[head.next] then
    head.entries = redis.call('XRANGE', KEYS[3 + head.at], id(numbers[head.at] + 1), '+', 'COUNT', ${BATCH})
    head.next = 1
  end
  local entry = head.entries[head.next]
  return entry and isVisible(entry) and entry or nil
end
local function isBefore(entry, other)
  local sequence, of = tonumber(entry[2][2]), tonumber(other[2][2])
  return sequence < of or sequence == of and tonumber(entry[2][4]) < tonumber(other[2][4])
end
local function oldestHead()
  local found, foundEntry
  for _, head in ipairs(heads) do
    local entry = headOf(head)
    if entry and (not found or isBefore(entry, foundEntry)) then found, foundEntry = head, entry end
  end
  return found, foundEntry
end
local events = {}
local head, entry = oldestHead()
while head and #events < given.limit do
  table.insert(events, {entry[2][6], entry[2][8]})
  numbers[head.at] = numberOf(entry)
  head.next = head.next + 1
  head, entry = oldestHead()
end
for i, number in ipairs(numbers) do numbers[i] = string.format('%.0f', number) end
return position(feedWord, numbers, head and 1 or 0, events)
`,
);

const eventSchema = z.tuple([z.string(), z.enum(EVENT_KINDS), z.enum(EVENT_CHANGES)]);
const knownSchema = z.string().regex(/^\S+ \d+$/);
const readSchema = z.tuple([
  z.string(),
  z.array(z.coerce.number()),
  z.literal([0, 1]),
  z.array(z.tuple([z.coerce.number(), z.string()])),
]);

export interface RedisFeedOptions {
  /** To the state Redis. */
  readonly link: RedisLink;
  readonly journal: RedisJournal;
  /** How long an event is kept. */
  readonly keepMs: number;
}

export class RedisFeed implements ChangeFeed {
  readonly #options: RedisFeedOptions;

  constructor(options: RedisFeedOptions) {
    this.#options = options;
  }

  async append({ event, events, hasFeed, id }: Appending): Promise<Appended> {
    const { journal, keepMs } = this.#options;
    const text = JSON.stringify(event);
    const added = [...events];
    const given = {
      mode: event.mode,
      lists: event.lists,
      isNamed: id !== null,
      hasFeed,
      rememberMs: REMEMBERED_MS,
      keepMs,
      events: added.map(([workspace, ofWorkspace]) => [
        workspace,
        ofWorkspace.map(({ order, ...one }) => [order, JSON.stringify([one.id, one.kind, one.change])]),
      ]),
    };
    const keys = [FEED_KEY, announcementKey(id ?? ''), ...added.map(([workspace]) => feedOfKey(workspace))];
    const [before] = await journal.run(ANNOUNCE, text, { keys, args: [text, JSON.stringify(given)] });
    const { history, sequence } = journal.position;
    if (before === undefined) return { sequence, isRepeated: false };
    const [ofHistory, number] = knownSchema.parse(before).split(' ');
    // One of another history counts as in force everywhere: with the history all memory was dropped.
    return { sequence: ofHistory === history ? Number(number) : 0, isRepeated: true };
  }

  async settle(sequence: number): Promise<void> {
    const { link, journal } = this.#options;
    try {
      await runScript(link, SETTLE, { keys: [FEED_KEY], args: [journal.position.history, sequence] });
    } catch {
      // The events can be read a second after they were announced.
    }
  }

  async read({ workspaces, wanted, after, limit }: FeedQuery): Promise<FeedPage | null> {
    const given = {
      word: after?.feed ?? '',
      numbers: workspaces.map((workspace) => after?.numbers.get(workspace) ?? 0),
      workspaces,
      wanted: wanted.map((workspace) => workspaces.indexOf(workspace) + 1),
      limit,
    };
    const keys = [FEED_KEY, ...workspaces.map((workspace) => feedOfKey(workspace))];
    const call = { keys, args: [JSON.stringify(given)] };
    const reply = await this.#options.journal.run(READ, '', call).catch((error: unknown) => {
      throw new FeedUnavailableError(`the feed of changes cannot be read: ${messageOf(error)}`, { cause: error });
    });
    if (reply[0] === null) return null;
    const [feed, counts, more, found] = readSchema.parse(reply);
    const numbers = new Map(workspaces.map((workspace, index) => [workspace, counts[index] ?? 0]));
    const events = found.map(([atMs, text]) => {
      const [id, kind, change] = eventSchema.parse(JSON.parse(text));
      return { id, kind, change, atMs };
    });
    return { events, place: { feed, numbers }, hasMore: more === 1 };
  }
}
