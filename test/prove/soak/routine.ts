/** An ordinary day of a fleet, at equal distances: edits, key changes, purges, failovers and rollouts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { withClient } from '../../support/redis/client.ts';
import { type Fault, isServerError, KEY_CHANGE, REDIS_TAIL_MS, ROLLOUT } from './faults.ts';
import type { SoakRecord } from './records.ts';
import type { SoakWorld } from './world.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
/** How far a replica may be behind when the primary is killed: what was acknowledged before has reached it. */
const REPLICATED_WITHIN_MS = 1000;

interface Repeated {
  readonly fault: Fault;
  readonly firstMs: number;
  readonly everyMs: number;
}

/** The longest between two failovers, and between two rollouts. */
const PERIOD_MS = 10 * MINUTE_MS;

/**
 * @param lengthMs - A soak that is shorter than a period has one failover and one rollout too.
 * @param pickRecord - The record of the next edit.
 */
export function routineOf(lengthMs: number, pickRecord: () => SoakRecord): readonly Repeated[] {
  const harmless = { explains: () => false, tailMs: 0 };
  const edit = { name: 'edit', ...harmless, run: (world: SoakWorld) => world.edit(pickRecord()) };
  const purge = { name: 'purge of a workspace', ...harmless, run: purgeWorkspace() };
  const periodMs = Math.min(PERIOD_MS, lengthMs);
  return [
    { fault: edit, firstMs: 5 * SECOND_MS, everyMs: 5 * SECOND_MS },
    { fault: KEY_CHANGE, firstMs: 12 * SECOND_MS, everyMs: 15 * SECOND_MS },
    { fault: purge, firstMs: 20 * SECOND_MS, everyMs: 30 * SECOND_MS },
    { fault: FAILOVER, firstMs: 0.3 * periodMs, everyMs: periodMs },
    { fault: ROLLOUT, firstMs: 0.65 * periodMs, everyMs: periodMs },
  ];
}

/** Runs what is due, one after the other and the longest overdue first, until that time. */
export async function follow(
  routine: readonly Repeated[],
  untilMs: number,
  run: (fault: Fault) => Promise<void>,
): Promise<void> {
  const beganMs = Date.now();
  const times = new Map(routine.map(({ fault, firstMs }) => [fault, beganMs + firstMs]));
  for (;;) {
    const [next] = [...routine].toSorted((a, b) => (times.get(a.fault) ?? 0) - (times.get(b.fault) ?? 0));
    const dueMs = next === undefined ? untilMs : (times.get(next.fault) ?? 0);
    await sleep(Math.max(0, Math.min(dueMs, untilMs) - Date.now()));
    if (next === undefined || dueMs >= untilMs || Date.now() >= untilMs) return;
    await run(next.fault);
    times.set(next.fault, dueMs + next.everyMs);
  }
}

/** The primary is killed, its replica takes over, and it comes back as the replica of that one. */
const FAILOVER: Fault = {
  name: 'failover',
  explains: isServerError,
  tailMs: REDIS_TAIL_MS,
  run: async ({ sentinels }) => {
    await sleep(REPLICATED_WITHIN_MS);
    const old = await sentinels.primary();
    await old.kill();
    await sentinels.replaced(old);
    await old.restart();
    // The old one may have become the primary once more by then.
    const isFollowed = async (): Promise<boolean> =>
      withClient((await sentinels.primary()).url, async (client) =>
        (await client.info('replication')).includes('state=online'),
      );
    while (!(await isFollowed())) await sleep(100);
  },
};

/** Each workspace in turn, hard and softly by turns. */
function purgeWorkspace(): Fault['run'] {
  let turn = 0;
  return async ({ records, several }) => {
    const workspaces = [...new Set(records.map(({ workspaceId }) => workspaceId))];
    const tags = [`workspace:${workspaces[turn % workspaces.length]}`];
    turn += 1;
    await several.administer('POST', '/api/cache/purge', { tags, mode: turn % 2 === 0 ? 'hard' : 'soft' });
  };
}
