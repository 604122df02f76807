/** Faults that simulated fleets have found: in the product, each as the shortest life that shows it, and those put in by hand. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { MUTATIONS } from './mutations.ts';
import type { Action, Plan } from './plan.ts';
import { run } from './simulate.ts';

const PLAN: Plan = {
  seed: 1,
  gateways: 2,
  hasTwoRedis: true,
  aheadMs: [0, 0],
  messageFaults: 0,
  refreshRate: 0,
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

it('takes no delay of its own for an outage of Redis, and uses nothing without proof after it', async () => {
  const again = [0.1, 5, 10, 20, 40].map((afterMs) => {
    return [4495 + afterMs, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }] as const;
  });
  const outcome = await run(
    plan(
      [100, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }],
      [300, { do: 'pause', slot: 0, forMs: 1150 }],
      [1400, { do: 'redis-late', host: 0, lateMs: 30, forMs: 3590 }],
      [1455, { do: 'pause', slot: 0, forMs: 3040 }],
      [2500, { do: 'edit', id: 'ev_1' }],
      [2700, { do: 'purge', slot: 1, tag: 'all' }],
      ...again,
    ),
  );
  expect(outcome.trace).toMatch(/g1 +request-2 gets ev_1#4/);
  expect(outcome.violations).toEqual([]);
});

it('takes a connection that was lost while it stood still for no outage of Redis', async () => {
  const again = [0.1, 5, 10, 20, 40].map((afterMs) => {
    return [3500 + afterMs, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }] as const;
  });
  const outcome = await run(
    plan(
      [100, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }],
      [1000, { do: 'pause', slot: 0, forMs: 2500 }],
      [1300, { do: 'redis-down', host: 0, forMs: 300, lostMs: 0 }],
      [2500, { do: 'edit', id: 'ev_1' }],
      [2700, { do: 'purge', slot: 1, tag: 'all' }],
      [2900, { do: 'end-key', slot: 1, key: 2 }],
      ...again,
    ),
  );
  expect(outcome.trace).toMatch(/g1 +request-2 gets ev_1#4/);
  expect(outcome.violations).toEqual([]);
});

it('makes one call after a leader has stopped, however often the others have looked at a Redis that is a little late', async () => {
  const outcome = await run({
    ...plan(
      [100, { do: 'redis-late', host: 0, lateMs: 28, forMs: 4500 }],
      [300, { do: 'read', slot: 0, key: 0, target: TRANSCRIPT }],
      [400, { do: 'pause', slot: 0, forMs: 4000 }],
      [500, { do: 'read', slot: 1, key: 0, target: TRANSCRIPT }],
      [510, { do: 'read', slot: 2, key: 0, target: TRANSCRIPT }],
    ),
    gateways: 3,
    hasTwoRedis: false,
    aheadMs: [0, 0, 0],
  });
  expect(outcome.trace).toMatch(/request-[23] gets ev_1#1 \(collapsed\)/);
  expect(outcome.violations).toEqual([]);
});

/** The first seed that finds each fault, and a rule that it is against. */
const FOUND: Readonly<Record<keyof typeof MUTATIONS, readonly [seed: number, rule: string]>> = {
  'lease-unchecked': [13, 'C10'],
  'purges-read-late': [3, 'C6'],
  'position-stays': [1, 'S2'],
  'foreign-filed': [1, 'R6'],
  'wrong-clock': [334, 'R1'],
  'follower-sleeps': [1, 'C10'],
  'old-history-kept': [52, 'C6'],
  'revocation-missed': [78, 'K10'],
  'announced-again': [3, 'feed'],
  'change-unheard': [3, 'C11'],
};

it.each(Object.keys(MUTATIONS))('finds the fault %s, put in by hand', { timeout: 60_000 }, (name) => {
  const [seed, rule] = FOUND[name] ?? [0, ''];
  const args = ['test/simulation/run.ts', '--seed', String(seed), '--fault', name];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(stdout).toMatch(new RegExp(`is against the rules:\n(?:.*\n)*  ${rule}, at `));
  expect(status).toBe(1);
});
