/** The memory tier as API keys share it: what one reads, of its own or not, costs another nothing that it uses. */
import { expect, test } from 'vitest';
import { Entry, negativeEntry, type StoredEntry } from '../../../src/cache/entry.ts';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { purgesAlone } from '../../support/purges.ts';
import type { Reader } from '../../../src/cache/reader.ts';
import { recordRequest } from '../../../src/cache/request.ts';
import type { RecordKind } from '../../../src/upstream/resources.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const CLOCK = new ManualClock();
const STAMP = { epoch: purgesAlone(CLOCK).epoch(), requestedAtMs: 1, receivedAtMs: 1 };
const OWNER: Reader = { requestId: 'r', keyId: 'owner', workspaceIds: [WORKSPACE_A] };
const OTHER: Reader = { requestId: 'r', keyId: 'other', workspaceIds: [WORKSPACE_B] };

class World {
  readonly memory: MemoryTier;

  constructor(maxBytes: number) {
    this.memory = new MemoryTier({ maxBytes, clock: CLOCK });
  }

  /** The reader reads a record of its own; one that is not there is brought. Returns whether it was there. */
  read(reader: Reader, id: string, { kind = 'evaluation', bytes = 500 }: { kind?: RecordKind; bytes?: number } = {}) {
    const request = recordRequest(kind, id);
    if (this.memory.get(request, reader) !== null) return true;
    const record = { workspaceId: reader.workspaceIds[0] };
    const entry = new Entry<unknown>({ kind: 'found', record, etag: null, bytes }, 1);
    const stored: StoredEntry = { ...STAMP, kind, entry, tags: ['all'] };
    this.memory.set(request.key, stored, reader);
    return false;
  }

  /** The reader asks for what it does not get: a record of another, or one that the store does not have. */
  probe(reader: Reader, id: string, isInStore = false): void {
    const request = recordRequest('evaluation', id);
    this.memory.get(request, reader);
    if (this.memory.negative(request.key, reader) !== null) return;
    const negative = negativeEntry(request, STAMP);
    if (!isInStore) this.memory.set(request.key, negative, reader);
    this.memory.setNegative(request.key, reader, negative);
  }

  negatives(reader: Reader, ids: readonly string[]): readonly boolean[] {
    return ids.map((id) => this.memory.negative(recordRequest('evaluation', id).key, reader) !== null);
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
    world.memory.peek(recordRequest('evaluation', id).key)?.entry.addDerivedBytes(40_000);
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
    for (const id of probes) world.probe(OTHER, id, probed === 'foreign');
    for (const id of numbered('later', 40)) world.read(OWNER, id);
    for (const id of numbered('new', 20)) world.read(OTHER, id);
    const held = [...own, ...numbered('new', 20)].map((id) => {
      return world.memory.peek(recordRequest('evaluation', id).key) !== undefined;
    });
    return { held, negatives: world.negatives(OTHER, probes) };
  });
  expect(seen[0]).toEqual(seen[1]);
  expect(new Set(seen[0]?.held)).toEqual(new Set([true, false]));
});
