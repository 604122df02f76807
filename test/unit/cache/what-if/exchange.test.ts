import { beforeEach, describe, expect, test } from 'vitest';
import { hash32 } from '../../../../src/cache/hash.ts';
import { ReadExchange } from '../../../../src/cache/what-if/exchange.ts';
import { ManualTimers } from '../../../support/manual-timers.ts';
import { WhatIfWire } from '../../../support/what-if-wire.ts';

interface Seen {
  readonly by: string;
  readonly keyHash: number;
  readonly atMs: number;
}

const KEYS = Array.from({ length: 300 }, (_, index) => hash32(`key ${index}`));

let timers: ManualTimers;
let wire: WhatIfWire;
let seen: Seen[];
let peers: readonly string[];
let broken: string[];
beforeEach(() => {
  timers = new ManualTimers();
  wire = new WhatIfWire();
  seen = [];
  peers = ['a', 'b', 'c', 'd'];
  broken = [];
});

function open(self: string): ReadExchange {
  return new ReadExchange({
    messages: wire.messages(self),
    self,
    peers: () => peers,
    model: { read: (_, keyHash, atMs) => seen.push({ by: self, keyHash, atMs }) },
    clock: timers.clock,
    timers,
    hooks: { onBroken: (what) => broken.push(what) },
  });
}

function readAll(exchange: ReadExchange): void {
  for (const keyHash of KEYS) exchange.add('list', keyHash, timers.clock.nowMs());
}

/** Who has seen each key. */
function followers(): ReadonlyMap<number, ReadonlySet<string>> {
  const byKey = new Map<number, Set<string>>();
  for (const { by, keyHash } of seen) byKey.set(keyHash, (byKey.get(keyHash) ?? new Set()).add(by));
  return byKey;
}

describe('reads of a fleet', () => {
  test('all of a key reach one process, within a quarter of a second, whoever made them', async () => {
    const exchanges = peers.map(open);
    exchanges.forEach(readAll);
    await timers.advance(250);
    expect(seen).toHaveLength(4 * KEYS.length);
    expect([...followers().values()].filter((by) => by.size !== 1)).toEqual([]);
    expect(new Set(seen.map(({ by }) => by))).toEqual(new Set(peers));
    expect(wire.sent).toHaveLength(4 * 3);
  });

  test('keep the time at which they were made', async () => {
    const exchanges = peers.map(open);
    await timers.advance(100);
    const atMs = timers.clock.nowMs();
    exchanges.forEach(readAll);
    await timers.advance(150);
    expect(new Set(seen.map((read) => read.atMs))).toEqual(new Set([atMs]));
  });

  test('of a process that has gone find another one, the others stay where they were', async () => {
    const [a] = peers.map(open);
    if (a === undefined) throw new Error('There is no process.');
    readAll(a);
    await timers.advance(250);
    const before = followers();
    seen = [];
    peers = ['a', 'b', 'd'];
    readAll(a);
    await timers.advance(250);
    const after = followers();
    const kept = KEYS.filter((key) => !before.get(key)?.has('c'));
    expect(kept.map((key) => after.get(key))).toEqual(kept.map((key) => before.get(key)));
    expect(after.size).toBe(KEYS.length);
    expect(seen.map(({ by }) => by)).not.toContain('c');
  });

  test('are followed where they are made while nobody can be told', async () => {
    const [a] = peers.map(open);
    wire.isDown = true;
    if (a !== undefined) readAll(a);
    await timers.advance(250);
    expect(followers()).toEqual(new Map(KEYS.map((key) => [key, new Set(['a'])])));
    expect(wire.sent).toEqual([]);
  });

  test('are lost where a message is, and go on with the next', async () => {
    const [a] = peers.map(open);
    wire.isFailing = true;
    if (a !== undefined) readAll(a);
    await timers.advance(250);
    expect(new Set(seen.map(({ by }) => by))).toEqual(new Set(['a']));
    wire.isFailing = false;
    if (a !== undefined) readAll(a);
    await timers.advance(250);
    expect(followers().size).toBe(KEYS.length);
  });

  test('cost nothing where there are none', async () => {
    peers.forEach(open);
    await timers.advance(10_000);
    expect([seen, wire.sent]).toEqual([[], []]);
  });

  test('are sent before it is time where there are many, and none is lost', async () => {
    const a = open('a');
    peers = ['a'];
    for (let index = 0; index < 8005; index += 1) a.add('list', index, timers.clock.nowMs());
    expect(seen.map(({ keyHash }) => keyHash)).toEqual(Array.from({ length: 15 * 512 }, (_, index) => index));
    await timers.advance(250);
    expect(seen.map(({ keyHash }) => keyHash)).toEqual(Array.from({ length: 8005 }, (_, index) => index));
  });

  test('what others say in another form is left out, and told', async () => {
    open('a');
    wire.deliver('a', 'hello');
    wire.deliver('a', '{"reads":[1]}');
    expect([seen, broken]).toEqual([[], ['reads of another process', 'reads of another process']]);
  });

  test('are neither sent nor heard once it is closed', async () => {
    const [a, b] = peers.map(open);
    if (a !== undefined) readAll(a);
    a?.close();
    b?.close();
    await timers.advance(1000);
    wire.deliver('b', 'hello');
    expect([seen, wire.sent, broken]).toEqual([[], [], []]);
  });
});
