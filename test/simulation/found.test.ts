/** Faults that simulated fleets have found, each as the shortest life that shows it. */
import { expect, it } from 'vitest';
import type { Action, Plan } from './plan.ts';
import { run } from './simulate.ts';

const PLAN: Plan = {
  seed: 1,
  gateways: 2,
  hasTwoRedis: true,
  aheadMs: [0, 0],
  messageFaults: 0,
  actions: [],
};

function plan(...actions: readonly (readonly [atMs: number, action: Action])[]): Plan {
  return { ...PLAN, actions: actions.map(([atMs, action]) => ({ atMs, action })) };
}

const EVALUATION = { kind: 'evaluation', id: 'ev_1' } as const;
const TRANSCRIPT = { kind: 'transcript', id: 'ev_1' } as const;

it('ends a lease that was granted while the state Redis could not be asked', async () => {
  const outcome = await run(
    plan(
      [100, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }],
      [500, { do: 'redis-down', host: 0, forMs: 2500, lostMs: 0 }],
      [500, { do: 'redis-down', host: 1, forMs: 300, lostMs: 0 }],
      [2000, { do: 'read', slot: 0, key: 0, target: EVALUATION }],
      [4900, { do: 'read', slot: 1, key: 0, target: EVALUATION }],
    ),
  );
  expect(outcome.trace).toMatch(/g2 +request-3 gets ev_1#1/);
  expect(outcome.violations).toEqual([]);
});

it('notices a change after a purge of the class of evaluations, which leaves the transcripts', async () => {
  const outcome = await run(
    plan(
      [100, { do: 'read', slot: 0, key: 0, target: EVALUATION }],
      [400, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }],
      [900, { do: 'purge', slot: 0, tag: 'class:evaluation' }],
      [1200, { do: 'edit', id: 'ev_1' }],
      [1300, { do: 'read', slot: 0, key: 0, target: EVALUATION }],
      [2000, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }],
    ),
  );
  expect(outcome.trace).toMatch(/request-4 gets ev_1#4/);
  expect(outcome.violations).toEqual([]);
});
