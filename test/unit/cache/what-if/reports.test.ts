import { beforeEach, describe, expect, test } from 'vitest';
import type { WhatIfReport } from '../../../../src/cache/what-if/feed.ts';
import { WhatIfModel } from '../../../../src/cache/what-if/model.ts';
import { Reports } from '../../../../src/cache/what-if/reports.ts';
import { AdjustableTimes } from '../../../../src/cache/times.ts';
import { ManualTimers } from '../../../support/manual-timers.ts';
import { WhatIfWire } from '../../../support/what-if-wire.ts';

let timers: ManualTimers;
let wire: WhatIfWire;
let broken: string[];
const said = new Map<string, number>();
beforeEach(() => {
  timers = new ManualTimers();
  wire = new WhatIfWire();
  broken = [];
  said.clear();
});

/** What the process of that name has to say: it differs by how much it has read. */
function reportOf(id: string): WhatIfReport {
  const snapshot = new WhatIfModel({ clock: timers.clock, times: new AdjustableTimes() }).snapshot();
  return { snapshot, measured: [{ class: 'list', reads: said.get(id) ?? 0, storeCalls: 0, sinceMs: 1 }] };
}

function open(self: string, peers: readonly string[] = ['a', 'b', 'c']): Reports {
  const options = { board: wire.boardOf(self), self, peers: () => peers, report: () => reportOf(self), timers };
  return new Reports({ ...options, onBroken: (what) => broken.push(what) });
}

async function readsKnownTo(reports: Reports): Promise<readonly (number | undefined)[]> {
  return (await reports.all()).map(({ measured }) => measured[0]?.reads);
}

describe('what the processes of a fleet say', () => {
  test('is known to each of them after a second, its own at once', async () => {
    const [a] = ['a', 'b', 'c'].map((id, index) => {
      said.set(id, index + 1);
      return open(id);
    });
    if (a === undefined) throw new Error('There is no process.');
    expect(await readsKnownTo(a)).toEqual([1]);
    await timers.advance(1000);
    expect(await readsKnownTo(a)).toEqual([1, 2, 3]);
    said.set('b', 20);
    await timers.advance(1000);
    expect(await readsKnownTo(a)).toEqual([1, 20, 3]);
  });

  test('is not said again while it is the same, but kept from being forgotten', async () => {
    open('a');
    await timers.advance(1000);
    expect(wire.posts).toHaveLength(1);
    await timers.advance(4000);
    expect(wire.posts).toHaveLength(1);
    await timers.advance(1000);
    expect(wire.posts).toHaveLength(2);
  });

  test('is said again where it could not be', async () => {
    open('a');
    wire.isFailing = true;
    await timers.advance(1000);
    wire.isFailing = false;
    await timers.advance(1000);
    expect(wire.posts).toHaveLength(1);
  });

  test.each(['{', '"hello"', '{"snapshot":{"version":99},"measured":[]}'])(
    'is left out where it cannot be read, which is told once: %s',
    async (text) => {
      said.set('c', 3);
      open('c');
      const a = open('a');
      await timers.advance(1000);
      wire.board.set('b', text);
      expect(await readsKnownTo(a)).toEqual([0, 3]);
      await a.all();
      expect(broken).toEqual(['what-if curves of another process']);
    },
  );

  test('is that of this process alone where the others cannot be heard', async () => {
    const [a] = ['a', 'b'].map((id) => open(id));
    await timers.advance(1000);
    if (a === undefined) throw new Error('There is no process.');
    wire.isFailing = true;
    expect(await readsKnownTo(a)).toEqual([0]);
    wire.isFailing = false;
    wire.isDown = true;
    expect(await readsKnownTo(a)).toEqual([0]);
  });

  test('ends with the process', async () => {
    const [a, b] = ['a', 'b'].map((id) => open(id));
    await timers.advance(1000);
    b?.close();
    await timers.advance(10_000);
    expect([...wire.board.keys()]).toEqual(['a']);
    expect(a === undefined ? [] : await readsKnownTo(a)).toEqual([0]);
  });
});
