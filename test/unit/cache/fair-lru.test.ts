/** Which copies make room: as in a plain LRU among equals, and never what others use for one who floods. */
import * as fc from 'fast-check';
import { LRUCache } from 'lru-cache';
import { describe, expect, test } from 'vitest';
import { FairLru } from '../../../src/cache/fair-lru.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MAX_BYTES = 100;
const IDLE_MS = 5 * 60_000;

interface Copy {
  readonly bytes: number;
}

/** A cache, its clock, and what was evicted since it was last asked. */
class World {
  readonly clock = new ManualClock();
  readonly copies: FairLru<Copy>;
  #evicted: string[] = [];

  constructor(maxBytes = MAX_BYTES) {
    const onEvicted = (key: string): void => void this.#evicted.push(key);
    this.copies = new FairLru({ maxBytes, clock: this.clock, onEvicted });
  }

  /** Reads the copy; one that is not there is brought. */
  read(holder: string, key: string, bytes = 10): void {
    this.clock.advance(1);
    if (this.copies.peek(key) === undefined) this.copies.set(key, { bytes }, holder);
    else this.copies.use(key, holder);
  }

  evicted(): readonly string[] {
    const evicted = this.#evicted;
    this.#evicted = [];
    return evicted;
  }

  held(...keys: readonly string[]): readonly boolean[] {
    return keys.map((key) => this.copies.peek(key) !== undefined);
  }
}

function numbered(prefix: string, length: number): readonly string[] {
  return Array.from({ length }, (_, index) => `${prefix}${index}`);
}

test('a flood takes its own room, and leaves what others have read lately', () => {
  const world = new World();
  for (const key of ['q0', 'q1', 'q2']) world.read('quiet', key);
  for (const key of numbered('f', 40)) world.read('flood', key, 20);
  expect(world.held('q0', 'q1', 'q2')).toEqual([true, true, true]);
  expect(world.held('f36', 'f37', 'f38', 'f39')).toEqual([false, true, true, true]);
});

test('a copy that nobody has read for five minutes goes first, whoever has most', () => {
  const world = new World();
  world.read('quiet', 'idle');
  world.read('quiet', 'used');
  for (const key of numbered('b', 8)) world.read('busy', key);
  world.clock.advance(IDLE_MS - 30);
  world.read('quiet', 'used');
  for (const key of numbered('b', 8)) world.read('busy', key);
  world.read('busy', 'early');
  expect(world.evicted()).toEqual(['b0']);
  world.clock.advance(30);
  world.read('busy', 'late');
  expect(world.evicted()).toEqual(['idle']);
});

test('among holders that have about as much, the least recently used copy goes', () => {
  const world = new World();
  for (let index = 0; index < 10; index += 1) world.read(`h${index}`, `k${index}`);
  world.read('h0', 'k0');
  world.read('h10', 'k10');
  expect(world.evicted()).toEqual(['k1']);
});

test('a holder of less than half of what the largest has loses nothing, also beyond an equal share', () => {
  const world = new World();
  for (const key of ['m0', 'm1']) world.read('middle', key);
  for (const key of numbered('s', 10)) world.read(key, key, 2);
  for (const key of numbered('l', 20)) world.read('large', key);
  expect(world.held('m0', 'm1', ...numbered('s', 10))).not.toContain(false);
});

test('a copy that others would have to give up too much for is not kept, and they give nothing', () => {
  const world = new World();
  for (const key of numbered('a', 5)) world.read('a', key);
  for (const key of numbered('b', 5)) world.read('b', key);
  world.read('large', 'large', 60);
  expect([world.held('large'), world.evicted(), world.copies.bytes]).toEqual([[false], ['large'], 100]);
  world.clock.advance(IDLE_MS);
  world.read('large', 'large', 60);
  expect(world.held('large')).toEqual([true]);
});

test('one that is larger than everything takes nothing else along', () => {
  const world = new World();
  world.read('a', 'small');
  world.read('a', 'large', 101);
  expect(world.held('small', 'large')).toEqual([true, false]);
  world.copies.set('small', { bytes: 101 }, null);
  expect([world.held('small'), world.copies.bytes, world.copies.size]).toEqual([[false], 0, 0]);
});

describe('a copy that several holders read', () => {
  test('is charged to one that has less, and outlives a flood of the one that brought it', () => {
    const world = new World();
    world.read('flood', 'shared');
    world.read('flood', 'own');
    world.read('quiet', 'shared');
    for (const key of numbered('f', 40)) world.read('flood', key);
    expect(world.held('shared', 'own')).toEqual([true, false]);
  });

  test('does not cost the one that brought it a copy of its own', () => {
    const world = new World();
    const shared = numbered('s', 8);
    for (const key of ['own', ...shared]) world.read('first', key);
    for (const [index, key] of shared.entries()) world.read(`h${index}`, key);
    for (const key of numbered('n', 4)) world.read('new', key);
    expect(world.held('own')).toEqual([true]);
  });

  test('also if the other had as much when it read it', () => {
    const world = new World();
    world.read('flood', 'shared');
    for (const key of ['q0', 'q1']) world.read('quiet', key);
    world.read('quiet', 'shared');
    for (const key of numbered('f', 40)) world.read('flood', key);
    expect(world.held('shared', 'q0', 'q1')).toEqual([true, true, true]);
  });

  test('also if the flood has replaced it', () => {
    const world = new World();
    world.read('flood', 'own');
    world.read('flood', 'shared');
    world.read('quiet', 'shared');
    world.copies.set('shared', { bytes: 12 }, 'flood');
    for (const key of numbered('f', 40)) world.read('flood', key);
    expect(world.held('shared')).toEqual([true]);
  });
});

type Command = readonly [holder: number, key: number, bytes: number, afterMs: number];

const commands = (holders: number) =>
  fc.array(
    fc.tuple(
      fc.nat(holders - 1),
      fc.nat(12),
      fc.integer({ min: 1, max: 110 }),
      fc.oneof(fc.nat(1000), fc.constantFrom(60_000, IDLE_MS)),
    ),
    { maxLength: 120 },
  );

function weightOf(copies: FairLru<Copy>): number {
  return [...copies.values()].reduce((sum, { bytes }) => sum + bytes, 0);
}

/** `isIdle`: of many holders, and so slowly that each copy is idle by the next read. */
function expectPlain(history: readonly Command[], isIdle: boolean): void {
  const world = new World();
  const plainEvicted: string[] = [];
  const plain = new LRUCache<string, number>({
    maxSize: MAX_BYTES,
    sizeCalculation: (bytes) => bytes,
    dispose: (_bytes, key, reason) => void (reason === 'evict' && plainEvicted.push(key)),
  });
  for (const [holder, name, bytes, afterMs] of history) {
    if (bytes > MAX_BYTES) continue;
    world.clock.advance(isIdle ? IDLE_MS : afterMs);
    const key = `k${name}`;
    if (plain.get(key) === undefined) plain.set(key, bytes);
    world.read(isIdle ? `h${holder}` : 'h', key, bytes);
  }
  expect(world.evicted()).toEqual(plainEvicted);
  expect([...world.copies.keys()]).toEqual([...plain.keys()]);
}

test('of one holder, or of idle copies, it is a plain LRU', () => {
  fc.assert(fc.property(commands(4), fc.boolean(), expectPlain));
});

test('a holder whose copies in use fit into an equal share loses none of them to another', () => {
  fc.assert(
    fc.property(commands(5), (history) => {
      const world = new World();
      /** When each copy was used, by its holder, which has keys of its own. */
      const used = new Map<string, { readonly holder: string; readonly bytes: number; readonly atMs: number }>();
      for (const [number, name, bytes, afterMs] of history) {
        const [holder, key] = [`h${number}`, `${number}/${name}`];
        world.clock.advance(afterMs);
        world.read(holder, key, bytes);
        const nowMs = world.clock.nowMs();
        used.set(key, { holder, bytes: used.get(key)?.bytes ?? bytes, atMs: nowMs });
        const holders = new Set([...used.values()].map((copy) => copy.holder)).size;
        const inUseBy = (one: string): number =>
          [...used.values()]
            .filter((copy) => copy.holder === one && nowMs - copy.atMs < IDLE_MS)
            .reduce((sum, copy) => sum + copy.bytes, 0);
        const evicted = world.evicted();
        for (const lost of evicted) {
          const copy = used.get(lost);
          if (copy === undefined || copy.holder === holder || nowMs - copy.atMs >= IDLE_MS) continue;
          expect(inUseBy(copy.holder)).toBeGreaterThan(MAX_BYTES / holders);
        }
        for (const lost of evicted) used.delete(lost);
        expect(world.copies.bytes).toBeLessThanOrEqual(MAX_BYTES);
        expect([world.copies.bytes, world.copies.size]).toEqual([weightOf(world.copies), used.size]);
      }
    }),
  );
});

test('whoever reads, replaces and deletes what: the bytes are those of the copies, and never too many', () => {
  const steps = fc.array(
    fc.tuple(
      fc.constantFrom('read', 'set', 'change', 'delete'),
      fc.nat(4),
      fc.nat(12),
      fc.integer({ min: 1, max: 60 }),
    ),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(steps, (history) => {
      const world = new World();
      for (const [step, number, name, bytes] of history) {
        const [holder, key] = [`h${number}`, `k${name}`];
        const before = new Set(world.copies.keys());
        if (step === 'read') world.read(holder, key, bytes);
        else if (step === 'delete') world.copies.delete(key);
        else world.copies.set(key, { bytes }, step === 'set' ? holder : null);
        const gone = [...before].filter((each) => each !== key && world.copies.peek(each) === undefined);
        expect(world.evicted().filter((each) => each !== key)).toEqual(expect.arrayContaining(gone));
        expect(world.copies.bytes).toBe(weightOf(world.copies));
        expect(world.copies.bytes).toBeLessThanOrEqual(MAX_BYTES);
      }
      for (const key of world.copies.keys()) world.copies.delete(key);
      expect([world.copies.bytes, world.copies.size]).toEqual([0, 0]);
    }),
  );
});
