import { beforeEach, expect, test } from 'vitest';
import type { WhatIf } from '../../../../src/cache/what-if/what-if.ts';
import { ManualTimers } from '../../../support/manual-timers.ts';
import { SeededRandom } from '../../../support/random.ts';
import { aRead, WhatIfProcesses, ZipfKeys } from '../../../support/what-if-fleet.ts';

const STEP_MS = 50;

let timers: ManualTimers;
let processes: WhatIfProcesses;
let alone: WhatIf;
let random: SeededRandom;
beforeEach(async () => {
  timers = new ManualTimers();
  processes = new WhatIfProcesses(timers);
  alone = processes.alone();
  random = new SeededRandom(7);
  for (const self of ['a', 'b', 'c', 'd']) {
    processes.join(self);
    // Processes never send in step.
    await timers.advance(60);
  }
});

/** Each read is made in one of the processes, and in the one that is alone. */
async function traffic(keys: ZipfKeys, seconds: number, readsPerStep: number): Promise<void> {
  const members = [...processes.members.values()];
  for (let step = 0; step < (seconds * 1000) / STEP_MS; step += 1) {
    for (let read = 0; read < readsPerStep; read += 1) {
      const report = aRead(keys.next());
      members[random.integer(0, members.length - 1)]?.hooks.onRead?.(report);
      alone.hooks.onRead?.(report);
    }
    await timers.advance(STEP_MS);
  }
}

/** By how much the hit ratios of the fleet differ from those of one process that sees all, at most. */
async function largestDifference(at: WhatIf | undefined): Promise<number> {
  if (at === undefined) throw new Error('There is no such process.');
  const [fleet, one] = [await processes.adviceAt(at), await processes.adviceAt(alone)];
  expect(fleet.curve.map(({ freshMs }) => freshMs)).toEqual(one.curve.map(({ freshMs }) => freshMs));
  expect(fleet.curve.length).toBeGreaterThanOrEqual(12);
  return Math.max(...fleet.curve.map(({ hitRatio }, index) => Math.abs(hitRatio - (one.curve[index]?.hitRatio ?? 1))));
}

test('the curves of four processes together are those of one that sees all reads, whichever is asked', async () => {
  await traffic(new ZipfKeys(3000, 1), 600, 4);
  expect(await largestDifference(processes.members.get('a'))).toBeLessThan(0.01);
  expect(await largestDifference(processes.members.get('d'))).toBeLessThan(0.01);
});

test('what was read two seconds ago is known to all processes', async () => {
  const keys = new ZipfKeys(50, 2);
  await traffic(keys, 2, 4);
  const seen = await processes.adviceAt(alone);
  await timers.advance(2000);
  for (const member of processes.members.values()) {
    expect((await processes.adviceAt(member)).reads).toBe(seen.reads);
  }
});

test('a process that goes takes its keys to others, and the curves go on', async () => {
  const keys = new ZipfKeys(500, 3);
  await traffic(keys, 60, 4);
  processes.members.get('b')?.close();
  processes.members.delete('b');
  await traffic(keys, 600, 4);
  expect(await largestDifference(processes.members.get('a'))).toBeLessThan(0.01);
});
