/** The memory tier as API keys share it: what one reads, of its own or not, costs another nothing that it uses. */
import { describe, expect, test } from 'vitest';
import { workspaceSetOf } from '../../../src/cache/address.ts';
import { Entry, negativeEntry, type StoredEntry } from '../../../src/cache/entry.ts';
import { defaultMemoryBytes, MemoryTier } from '../../../src/cache/memory-tier.ts';
import { purgesAlone } from '../../support/purges.ts';
import type { Reader } from '../../../src/cache/reader.ts';
import { recordRequest } from '../../../src/cache/request.ts';
import type { RecordKind } from '../../../src/upstream/resources.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const CLOCK = new ManualClock();
const STAMP = { position: purgesAlone(CLOCK).position, requestedAtMs: 1, receivedAtMs: 1 };
const OWNER: Reader = { requestId: 'r', keyId: 'owner', workspaceIds: [WORKSPACE_A] };
const OTHER: Reader = { requestId: 'r', keyId: 'other', workspaceIds: [WORKSPACE_B] };

const keptFor = (reader: Reader) => ({ set: workspaceSetOf(reader), keyId: reader.keyId });
/** A record of that reader's workspace. */
const addressOf = (id: string, reader: Reader = OWNER) => ({
  key: recordRequest('evaluation', id).key,
  owner: workspaceSetOf(reader).name,
});

class World {
  readonly memory: MemoryTier;

  constructor(maxBytes: number) {
    this.memory = new MemoryTier({ maxBytes, clock: CLOCK });
  }

  /** The reader reads a record of its own; one that is not there is brought. Returns whether it was there. */
  read(reader: Reader, id: string, { kind = 'evaluation', bytes = 500 }: { kind?: RecordKind; bytes?: number } = {}) {
    const request = recordRequest(kind, id);
    if (this.memory.find(request, keptFor(reader)) !== null) return true;
    const { name: owner } = workspaceSetOf(reader);
    const entry = new Entry<unknown>({ kind: 'found', record: { workspaceId: owner }, etag: null, bytes }, 1);
    const stored: StoredEntry = { ...STAMP, kind, owner, entry, tags: ['all'] };
    this.memory.set(request.key, stored, keptFor(reader));
    return false;
  }

  /** The reader asks for what it does not get, whoever has a copy. */
  probe(reader: Reader, id: string): void {
    const request = recordRequest('evaluation', id);
    if (this.memory.find(request, keptFor(reader)) !== null) return;
    const negative = negativeEntry(request, STAMP, workspaceSetOf(reader));
    this.memory.set(request.key, negative, keptFor(reader));
  }

  negatives(reader: Reader, ids: readonly string[]): readonly boolean[] {
    return ids.map((id) => {
      const { key } = recordRequest('evaluation', id);
      return this.memory.inspect(key, workspaceSetOf(reader)).negative !== null;
    });
  }
}

function numbered(prefix: string, length: number): readonly string[] {
  return Array.from({ length }, (_, index) => `${prefix}_${index}`);
}

test('40 transcripts of 6 MB that one key reads push out nothing that another uses', () => {
  const world = new World(64_000_000);
  const own = numbered('own', 1000);
  for (const id of own) world.read(OTHER, id);
  for (const id of numbered('large', 40)) world.read(OWNER, id, { kind: 'transcript', bytes: 6_000_000 });
  expect(own.filter((id) => !world.read(OTHER, id))).toEqual([]);
  expect(world.memory.usage().bytes).toBeLessThanOrEqual(64_000_000);
});

test('data derived from a copy counts as that of its holder', () => {
  const world = new World(100_000);
  const own = numbered('own', 10);
  for (const id of own) world.read(OTHER, id);
  for (const id of numbered('rendered', 4)) {
    world.read(OWNER, id);
    world.memory.peek(addressOf(id))?.entry.addDerivedBytes(40_000);
  }
  expect(own.filter((id) => !world.read(OTHER, id))).toEqual([]);
  expect(world.memory.usage().bytes).toBeLessThanOrEqual(85_000);
});

test('probes of one key push out no negative entry that another uses', () => {
  const world = new World(100_000);
  world.probe(OTHER, 'mine');
  for (const id of numbered('made-up', 100)) world.probe(OWNER, id);
  expect(world.negatives(OTHER, ['mine'])).toEqual([true]);
});

test('K7a: to ask for records of others costs a reader the same as to ask for what does not exist', () => {
  const seen = (['foreign', 'made-up'] as const).map((probed) => {
    const world = new World(200_000);
    const own = numbered('own', 30);
    for (const id of numbered('foreign', 80)) world.read(OWNER, id);
    for (const id of own) world.read(OTHER, id);
    const probes = numbered(probed, 80);
    for (const id of probes) world.probe(OTHER, id);
    for (const id of numbered('later', 40)) world.read(OWNER, id);
    for (const id of numbered('new', 20)) world.read(OTHER, id);
    const held = [...own, ...numbered('new', 20)].map((id) => world.memory.peek(addressOf(id, OTHER)) !== undefined);
    return { held, negatives: world.negatives(OTHER, probes) };
  });
  expect(seen[0]).toEqual(seen[1]);
  expect(new Set(seen[0]?.held)).toEqual(new Set([true, false]));
});

const [A, B] = [WORKSPACE_A, WORKSPACE_B];
const BOTH: Reader = { requestId: 'r', keyId: 'both', workspaceIds: [A, B] };
const { key: KEY } = recordRequest('evaluation', 'ev');

/** An answer to readers of these workspaces: the record of the first, or none. */
function answerAt(requestedAtMs: number, reader: Reader, isFound = true): StoredEntry {
  const stamp = { ...STAMP, requestedAtMs, receivedAtMs: requestedAtMs };
  if (!isFound) return negativeEntry(recordRequest('evaluation', 'ev'), stamp, workspaceSetOf(reader));
  const entry = new Entry<unknown>({ kind: 'found', record: {}, etag: null, bytes: 1 }, requestedAtMs);
  return { ...stamp, kind: 'evaluation', owner: reader.workspaceIds[0] ?? '', entry, tags: ['all'] };
}

function createMemory(...answers: readonly (readonly [Reader, StoredEntry])[]) {
  const { memory } = new World(100_000);
  for (const [reader, stored] of answers) memory.set(KEY, stored, keptFor(reader));
  const find = (reader: Reader) => memory.find({ kind: 'evaluation', key: KEY }, keptFor(reader));
  return { memory, find };
}

describe('C4: a reader looks only under its own owners', () => {
  test('and gets the last answer that there is for it', () => {
    const [ofA, ofB, none] = [answerAt(2, OWNER), answerAt(3, OTHER), answerAt(4, BOTH, false)];
    const { memory, find } = createMemory([OWNER, ofA], [OTHER, ofB]);
    expect([find(OWNER), find(OTHER), find(BOTH)]).toEqual([ofA, ofB, ofB]);
    memory.set(KEY, none, keptFor(BOTH));
    expect([find(OWNER), find(OTHER), find(BOTH)]).toEqual([ofA, ofB, none]);
  });

  test('what has ended does not come back with an older answer, and with a newer one it does', () => {
    const { memory, find } = createMemory([OWNER, answerAt(5, OWNER)]);
    expect(memory.end(KEY, [A, B], 7)).toEqual([A]);
    expect(memory.set(KEY, answerAt(6, OWNER), keptFor(OWNER))).toBe(false);
    expect(find(OWNER)).toBeNull();
    const newer = answerAt(8, OWNER);
    expect(memory.set(KEY, newer, keptFor(OWNER))).toBe(true);
    expect([memory.end(KEY, [A], 7), find(OWNER)]).toEqual([[], newer]);
  });

  test('C9: an end from the future ends nothing that comes', () => {
    const { memory, find } = createMemory();
    memory.end(KEY, [A], CLOCK.nowMs() + 3_600_000);
    expect(memory.set(KEY, answerAt(CLOCK.nowMs(), OWNER), keptFor(OWNER))).toBe(true);
    expect(find(OWNER)).not.toBeNull();
  });

  test('a copy that another process files drops the older one, and what its readers knew of there being none', () => {
    const { memory, find } = createMemory(
      [OWNER, answerAt(5, OWNER)],
      [OTHER, answerAt(5, OTHER, false)],
      [BOTH, answerAt(5, BOTH, false)],
    );
    memory.deleteOlder({ key: KEY, owner: A }, 6);
    expect([find(OWNER), find(BOTH), find(OTHER)?.owner]).toEqual([null, null, B]);
  });

  test('a record of a list that has moved ends the copy of its old workspace', () => {
    const { memory, find } = createMemory([OWNER, answerAt(5, OWNER)]);
    const moved = answerAt(7, OTHER);
    memory.backfill([{ key: KEY, stored: moved }], keptFor(BOTH));
    expect([find(OWNER), find(OTHER), find(BOTH)]).toEqual([null, moved, moved]);
  });
});

function fetched(requestedAtMs: number, receivedAtMs: number): StoredEntry {
  return { ...answerAt(requestedAtMs, OWNER), receivedAtMs };
}

/** How many records Redis is sent of such a list beside that copy in memory, and whether memory keeps the listed one. */
function handedOn(present: StoredEntry, listed: StoredEntry, reader = OWNER): readonly [number, boolean] {
  const { memory, find } = createMemory([OWNER, present]);
  const { length } = memory.backfill([{ key: KEY, stored: listed }], keptFor(reader));
  return [length, find(OWNER) === listed];
}

test('a record of a list is sent to Redis unless a copy whose fetch was not over keeps it out', () => {
  expect(handedOn(fetched(5, 6), fetched(7, 8))).toEqual([1, true]);
  expect(handedOn(fetched(5, 7), fetched(7, 8))).toEqual([0, false]);
  // Under the other workspace of these readers there may be a copy in Redis that has to end.
  expect(handedOn(fetched(5, 7), fetched(7, 8), BOTH)).toEqual([1, false]);
});

test('C9: a copy from the future keeps no record of a list out', () => {
  const inAnHourMs = CLOCK.nowMs() + 3_600_000;
  expect(handedOn(fetched(inAnHourMs, inAnHourMs), fetched(CLOCK.nowMs(), CLOCK.nowMs()))).toEqual([1, true]);
});

test('C6: a purge by key drops all that is filed under it, and nothing else', () => {
  const { memory, find } = createMemory(
    [OWNER, answerAt(5, OWNER)],
    [OTHER, answerAt(5, OTHER)],
    [BOTH, answerAt(5, BOTH, false)],
  );
  const other = recordRequest('evaluation', 'another').key;
  memory.set(other, answerAt(5, OWNER), keptFor(OWNER));
  expect(memory.purge(() => true, [KEY])).toBe(3);
  expect([find(OWNER), find(OTHER), find(BOTH), memory.usage().entries]).toEqual([null, null, null, 1]);
  expect(memory.purge(() => true)).toBe(1);
});

test.each([
  ['no limit', 0, 64_000_000],
  ['what the system calls no limit', 2 ** 64, 64_000_000],
  ['a container of 256 MB', 256_000_000, 32_000_000],
  ['a container of 2 GB', 2_000_000_000, 64_000_000],
])('cache.memory is by default an eighth of a small container: %s', (_, constrainedBytes, expected) => {
  expect(defaultMemoryBytes(constrainedBytes)).toBe(expected);
});
