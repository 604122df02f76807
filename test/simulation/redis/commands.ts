/** The commands that evalgate sends, from scripts or by themselves, as Redis's documentation has them: all that need only keys. */
import type { Keyspace, StreamEntry } from './keyspace.ts';
import { Failure, OK, type Reply, Status } from './reply.ts';

type Run = (keyspace: Keyspace, args: readonly string[]) => Reply;

const SYNTAX = 'ERR syntax error';

/** Throws a Failure if the command has fewer arguments. */
function at(args: readonly string[], place: number): string {
  const word = args[place];
  if (word === undefined) throw new Failure('ERR wrong number of arguments');
  return word;
}

function integer(text: string): number {
  if (!/^-?\d+$/.test(text)) throw new Failure('ERR value is not an integer or out of range');
  return Number(text);
}

function pairsOf(words: readonly string[]): readonly (readonly [string, string])[] {
  if (words.length === 0 || words.length % 2 === 1) throw new Failure('ERR wrong number of arguments');
  return words.filter((_, index) => index % 2 === 0).map((word, index) => [word, at(words, 2 * index + 1)] as const);
}

/** Places of a range that may count from the end. */
function rangeOf(length: number, from: string, to: string): readonly [number, number] {
  const place = (text: string): number => (integer(text) < 0 ? length + integer(text) : integer(text));
  return [Math.max(0, place(from)), Math.max(0, Math.min(length - 1, place(to)) + 1)];
}

/** Redis's patterns, as far as they are used: `*` for anything, and `\` before what is meant literally. */
function matcherOf(pattern: string): RegExp {
  const source = pattern.replaceAll(/\\(.)|\*|[^\w\\*]/g, (all, literal: string | undefined) => {
    if (all === '*') return '[^]*';
    return (literal ?? all).replace(/[^\w]/, '\\$&');
  });
  return new RegExp(`^${source}$`);
}

const STRINGS: Record<string, Run> = {
  GET: (keyspace, args) => keyspace.find(at(args, 0), 'string')?.text ?? null,
  MGET: (keyspace, args) =>
    args.map((name) => (keyspace.kindOf(name) === 'string' ? (keyspace.find(name, 'string')?.text ?? null) : null)),
  SET: (keyspace, args) => {
    const [name, text, ...options] = [at(args, 0), at(args, 1), ...args.slice(2).map((word) => word.toUpperCase())];
    let [expiresAtMs, isWanted]: [number | null, boolean] = [null, true];
    for (let i = 0; i < options.length; i += 1) {
      const option = options[i];
      if (option === 'NX') isWanted &&= keyspace.kindOf(name) === 'none';
      else if (option === 'XX') isWanted &&= keyspace.kindOf(name) !== 'none';
      else if (option === 'PX' || option === 'EX') {
        i += 1;
        expiresAtMs = keyspace.nowMs() + integer(at(options, i)) * (option === 'EX' ? 1000 : 1);
      } else throw new Failure(SYNTAX);
    }
    if (!isWanted) return null;
    keyspace.setString(name, text, expiresAtMs);
    return OK;
  },
  INCRBY: (keyspace, args) => {
    const sum = integer(keyspace.find(at(args, 0), 'string')?.text ?? '0') + integer(at(args, 1));
    keyspace.findOrMake(at(args, 0), 'string').text = String(sum);
    return sum;
  },
};

const KEYS: Record<string, Run> = {
  DEL: (keyspace, args) => args.filter((name) => keyspace.delete(name)).length,
  EXISTS: (keyspace, args) => args.filter((name) => keyspace.kindOf(name) !== 'none').length,
  TYPE: (keyspace, args) => new Status(keyspace.kindOf(at(args, 0))),
  PEXPIRE: (keyspace, args) =>
    Number(keyspace.expireAt(at(args, 0), keyspace.nowMs() + Math.trunc(integer(at(args, 1))))),
  PEXPIREAT: (keyspace, args) => Number(keyspace.expireAt(at(args, 0), integer(at(args, 1)))),
  PTTL: (keyspace, args) => keyspace.leftMs(at(args, 0)),
  DBSIZE: (keyspace) => keyspace.names().length,
  RANDOMKEY: (keyspace) => keyspace.names()[0] ?? null,
  /** All names in one batch. */
  SCAN: (keyspace, args) => {
    const options = new Map(pairsOf(args.slice(1)).map(([name, value]) => [name.toUpperCase(), value]));
    const pattern = matcherOf(options.get('MATCH') ?? '*');
    return ['0', keyspace.names().filter((name) => pattern.test(name))];
  },
  TIME: (keyspace) => {
    const micros = keyspace.nowMicros();
    return [String(Math.floor(micros / 1_000_000)), String(micros % 1_000_000)];
  },
  MEMORY: (keyspace, args) => (keyspace.kindOf(at(args, 1)) === 'none' ? null : 500),
};

const HASHES: Record<string, Run> = {
  HGET: (keyspace, args) => keyspace.find(at(args, 0), 'hash')?.get(at(args, 1)) ?? null,
  HMGET: (keyspace, args) => {
    const hash = keyspace.find(at(args, 0), 'hash');
    return args.slice(1).map((field) => hash?.get(field) ?? null);
  },
  HGETALL: (keyspace, args) => new Map(keyspace.find(at(args, 0), 'hash')),
  HKEYS: (keyspace, args) => [...(keyspace.find(at(args, 0), 'hash')?.keys() ?? [])],
  HVALS: (keyspace, args) => [...(keyspace.find(at(args, 0), 'hash')?.values() ?? [])],
  HLEN: (keyspace, args) => keyspace.find(at(args, 0), 'hash')?.size ?? 0,
  HEXISTS: (keyspace, args) => Number(keyspace.find(at(args, 0), 'hash')?.has(at(args, 1)) ?? false),
  HSTRLEN: (keyspace, args) => keyspace.find(at(args, 0), 'hash')?.get(at(args, 1))?.length ?? 0,
  HSET: (keyspace, args) => {
    const pairs = pairsOf(args.slice(1));
    const hash = keyspace.findOrMake(at(args, 0), 'hash');
    const before = hash.size;
    for (const [field, value] of pairs) hash.set(field, value);
    return hash.size - before;
  },
  HSETNX: (keyspace, args) => {
    const hash = keyspace.findOrMake(at(args, 0), 'hash');
    if (hash.has(at(args, 1))) return 0;
    hash.set(at(args, 1), at(args, 2));
    return 1;
  },
  HINCRBY: (keyspace, args) => {
    const sum = integer(keyspace.find(at(args, 0), 'hash')?.get(at(args, 1)) ?? '0') + integer(at(args, 2));
    keyspace.findOrMake(at(args, 0), 'hash').set(at(args, 1), String(sum));
    return sum;
  },
  HDEL: (keyspace, args) => {
    const hash = keyspace.find(at(args, 0), 'hash');
    const deleted = args.slice(1).filter((field) => hash?.delete(field)).length;
    keyspace.deleteIfEmpty(at(args, 0));
    return deleted;
  },
  HSCAN: (keyspace, args) => ['0', [...(keyspace.find(at(args, 0), 'hash') ?? [])].flat()],
};

const LISTS: Record<string, Run> = {
  LLEN: (keyspace, args) => keyspace.find(at(args, 0), 'list')?.length ?? 0,
  LINDEX: (keyspace, args) => keyspace.find(at(args, 0), 'list')?.at(integer(at(args, 1))) ?? null,
  LRANGE: (keyspace, args) => {
    const list = keyspace.find(at(args, 0), 'list') ?? [];
    return list.slice(...rangeOf(list.length, at(args, 1), at(args, 2)));
  },
  RPUSH: (keyspace, args) => keyspace.findOrMake(at(args, 0), 'list').push(...args.slice(1)),
  LPUSH: (keyspace, args) => keyspace.findOrMake(at(args, 0), 'list').unshift(...args.slice(1).toReversed()),
  RPOP: (keyspace, args) => {
    const popped = keyspace.find(at(args, 0), 'list')?.pop() ?? null;
    keyspace.deleteIfEmpty(at(args, 0));
    return popped;
  },
  LSET: (keyspace, args) => {
    const list = keyspace.find(at(args, 0), 'list');
    if (list === undefined) throw new Failure('ERR no such key');
    const place = integer(at(args, 1));
    if (list[place < 0 ? list.length + place : place] === undefined) throw new Failure('ERR index out of range');
    list.splice(place, 1, at(args, 2));
    return OK;
  },
  LREM: (keyspace, args) => {
    const list = keyspace.find(at(args, 0), 'list') ?? [];
    const count = integer(at(args, 1));
    const places = [...list.keys()].filter((place) => list[place] === at(args, 2));
    // A negative count begins at the end.
    const removed = count < 0 ? places.slice(count) : places.slice(0, count || places.length);
    for (const place of removed.toReversed()) list.splice(place, 1);
    keyspace.deleteIfEmpty(at(args, 0));
    return removed.length;
  },
  LTRIM: (keyspace, args) => {
    const list = keyspace.find(at(args, 0), 'list') ?? [];
    const [from, to] = rangeOf(list.length, at(args, 1), at(args, 2));
    list.splice(0, list.length, ...list.slice(from, to));
    keyspace.deleteIfEmpty(at(args, 0));
    return OK;
  },
};

/** Members with their scores, lowest first. */
function sorted(keyspace: Keyspace, name: string): readonly (readonly [string, number])[] {
  const members = [...(keyspace.find(name, 'zset') ?? [])];
  return members.toSorted(([one, a], [other, b]) => a - b || (one < other ? -1 : 1));
}

function score(text: string): number {
  if (text === '-inf' || text === '+inf') return text === '-inf' ? -Infinity : Infinity;
  const value = Number(text);
  if (text === '' || Number.isNaN(value)) throw new Failure('ERR value is not a valid float');
  return value;
}

function between(keyspace: Keyspace, args: readonly string[]): readonly string[] {
  const [min, max] = [score(at(args, 1)), score(at(args, 2))];
  return sorted(keyspace, at(args, 0))
    .filter(([, value]) => value >= min && value <= max)
    .map(([member]) => member);
}

function removeMembers(keyspace: Keyspace, name: string, members: readonly string[]): number {
  const zset = keyspace.find(name, 'zset');
  const removed = members.filter((member) => zset?.delete(member)).length;
  keyspace.deleteIfEmpty(name);
  return removed;
}

const SORTED_SETS: Record<string, Run> = {
  ZADD: (keyspace, args) => {
    const zset = keyspace.findOrMake(at(args, 0), 'zset');
    const before = zset.size;
    for (const [value, member] of pairsOf(args.slice(1))) zset.set(member, score(value));
    return zset.size - before;
  },
  ZCARD: (keyspace, args) => keyspace.find(at(args, 0), 'zset')?.size ?? 0,
  ZREM: (keyspace, args) => removeMembers(keyspace, at(args, 0), args.slice(1)),
  ZRANGE: (keyspace, args) => {
    const all = sorted(keyspace, at(args, 0));
    const found = all.slice(...rangeOf(all.length, at(args, 1), at(args, 2)));
    return found.flatMap(([member, value]) => (args.length > 3 ? [member, String(value)] : [member]));
  },
  ZRANGEBYSCORE: (keyspace, args) => between(keyspace, args),
  ZREMRANGEBYSCORE: (keyspace, args) => removeMembers(keyspace, at(args, 0), between(keyspace, args)),
  ZREMRANGEBYRANK: (keyspace, args) => {
    const all = sorted(keyspace, at(args, 0));
    const range = all.slice(...rangeOf(all.length, at(args, 1), at(args, 2)));
    return removeMembers(
      keyspace,
      at(args, 0),
      range.map(([member]) => member),
    );
  },
};

/** Ids are compared as pairs of numbers; one without a second part begins, or ends, with its first. */
function idOf(text: string, missing: number): readonly [number, number] {
  if (text === '-') return [0, 0];
  if (text === '+') return [Infinity, Infinity];
  const [first, second = missing] = text.split('-').map(Number);
  return [first ?? 0, second];
}

function compareIds(one: readonly [number, number], other: readonly [number, number]): number {
  return one[0] - other[0] || one[1] - other[1];
}

function entriesBetween(
  keyspace: Keyspace,
  name: string,
  { from, to, count }: { readonly from: string; readonly to: string; readonly count: readonly string[] },
  isReversed = false,
): readonly Reply[] {
  const [low, high] = [idOf(from, 0), idOf(to, Infinity)];
  const all = keyspace.find(name, 'stream')?.entries ?? [];
  const found = all.filter(({ place }) => compareIds(place, low) >= 0 && compareIds(place, high) <= 0);
  const ordered = isReversed ? found.toReversed() : found;
  return ordered.slice(0, count.length === 0 ? undefined : integer(at(count, 1))).map(shown);
}

function shown({ id, fields }: StreamEntry): Reply {
  return [id, fields];
}

/** A node of a stream holds so many entries; `~` trims only whole nodes. */
const NODE_ENTRIES = 100;

/** The entries after an id; null if there are none. */
export function entriesAfter(keyspace: Keyspace, name: string, after: string, count: number): Reply[] | null {
  const all = keyspace.find(name, 'stream')?.entries ?? [];
  const last = idOf(after, 0);
  const found = all.filter(({ place }) => compareIds(place, last) > 0).slice(0, count);
  return found.length === 0 ? null : found.map(shown);
}

const STREAMS: Record<string, Run> = {
  XADD: (keyspace, args) => {
    const [id, ...fields] = [at(args, 1), ...args.slice(2)];
    pairsOf(fields);
    const place = idOf(id, 0);
    if (compareIds(place, [0, 0]) === 0) throw new Failure('ERR The ID specified in XADD must be greater than 0-0');
    const last = idOf(keyspace.find(at(args, 0), 'stream')?.lastId ?? '0-0', 0);
    if (compareIds(place, last) <= 0) {
      throw new Failure('ERR The ID specified in XADD is equal or smaller than the target stream top item');
    }
    const stream = keyspace.findOrMake(at(args, 0), 'stream');
    stream.entries.push({ id, place, fields });
    stream.lastId = id;
    return id;
  },
  XLEN: (keyspace, args) => keyspace.find(at(args, 0), 'stream')?.entries.length ?? 0,
  XDEL: (keyspace, args) => {
    const stream = keyspace.find(at(args, 0), 'stream');
    if (stream === undefined) return 0;
    const before = stream.entries.length;
    stream.entries = stream.entries.filter(({ id }) => !args.slice(1).includes(id));
    return before - stream.entries.length;
  },
  XTRIM: (keyspace, args) => {
    const isAbout = at(args, 2) === '~';
    const most = integer(at(args, isAbout ? 3 : 2));
    const stream = keyspace.find(at(args, 0), 'stream');
    const excess = Math.max(0, (stream?.entries.length ?? 0) - most);
    const trimmed = isAbout ? excess - (excess % NODE_ENTRIES) : excess;
    stream?.entries.splice(0, trimmed);
    return trimmed;
  },
  /** As scripts may: of one stream, without waiting. */
  XREAD: (keyspace, args) => {
    const place = args.indexOf('STREAMS');
    const [name, after] = [at(args, place + 1), at(args, place + 2)];
    const entries = entriesAfter(keyspace, name, after, Infinity);
    return entries === null ? null : [[name, entries]];
  },
  XRANGE: (keyspace, args) =>
    entriesBetween(keyspace, at(args, 0), { from: at(args, 1), to: at(args, 2), count: args.slice(3) }),
  XREVRANGE: (keyspace, args) =>
    entriesBetween(keyspace, at(args, 0), { from: at(args, 2), to: at(args, 1), count: args.slice(3) }, true),
};

const COMMANDS: ReadonlyMap<string, Run> = new Map(
  [STRINGS, KEYS, HASHES, LISTS, SORTED_SETS, STREAMS].flatMap((group) => Object.entries(group)),
);

/** Throws a Failure for an error reply. */
export function runCommand(keyspace: Keyspace, [name = '', ...args]: readonly string[]): Reply {
  const command = name.toUpperCase();
  const run = COMMANDS.get(command === 'UNLINK' ? 'DEL' : command);
  if (run === undefined) throw new Failure(`ERR unknown command '${name}'`);
  return run(keyspace, args);
}
