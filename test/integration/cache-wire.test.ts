/**
 * C4, K7a: a reader looks only under its own owners. Read off the wire to Redis, scripts included: no command that is made for
 * a reader names a workspace that the reader may not see, whatever others have filed, moved or lost.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { GET_CALL, GET_CALL_TRANSCRIPT, LIST_CALLS } from '../http/common/endpoints.ts';
import { newSubject, putSubject } from '../http/common/subject.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/opened.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';
import { World } from '../support/world.ts';

const UNLIMITED = { perMinute: 1_000_000_000, perHour: 1_000_000_000 };
const ENDPOINTS = [GET_CALL, GET_CALL_TRANSCRIPT, LIST_CALLS] as const;
/** The sets of workspaces that read, by their places. */
const SETS = [[0], [1], [0, 1], [2], [1, 2]] as const;

const redis = await forFile(startRedis());
const world = await forFile(World.start('redis', { redisUrl: redis.url }));
const raw = await connectWhenUp(redis.url);
const wire = await raw.duplicate().monitor();
const commands: string[] = [];
/** Commands for the statistics of all readers together, sent now and then. */
const STATISTICS = /evalgate:\{(?:steps|what-if)-/;
/** How the test itself looks, which may name anything; readers look by scripts. */
const LOOKS: ReadonlySet<string> = new Set(['hgetall', 'hmget', 'pttl']);
wire.on('monitor', (_time: string, args: readonly string[], source: string) => {
  const command = args.join(' ');
  const isLook = source !== 'lua' && LOOKS.has(args[0]?.toLowerCase() ?? '');
  if (!isLook && !STATISTICS.test(command)) commands.push(command);
});

/** All commands since the last time, in their order. */
async function commandsSince(): Promise<readonly string[]> {
  const mark = randomUUID();
  await raw.echo(mark);
  for (;;) {
    const end = commands.findIndex((command) => command.includes(mark));
    if (end >= 0) return commands.splice(0, end + 1);
    await sleep(1);
  }
}

type Step =
  | { readonly do: 'read'; readonly set: number; readonly endpoint: number; readonly gateway: number }
  | { readonly do: 'move'; readonly to: number }
  | { readonly do: 'lose' }
  | { readonly do: 'pass'; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      set: fc.nat({ max: SETS.length - 1 }),
      endpoint: fc.nat({ max: ENDPOINTS.length - 1 }),
      gateway: fc.nat({ max: 1 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), to: fc.nat({ max: 2 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'lose' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 20_000, 1_200_000, 12_000_000) }),
  },
);

test('C4, K7a: no command that is made for a reader names another workspace', async () => {
  let named = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20 }), async (steps) => {
      const workspaces = [randomUUID(), randomUUID(), randomUUID()] as const;
      const of = (set: number): readonly string[] => (SETS[set] ?? []).map((place) => workspaces[place] ?? '');
      const keys = await Promise.all(
        SETS.map((_set, place) => world.here.issueKey({ workspaceIds: of(place), ...UNLIMITED })),
      );
      const subject = putSubject(world.store, newSubject(workspaces[0]));
      const faults: string[] = [];
      for (const each of steps) {
        if (each.do === 'move') putSubject(world.store, { ...subject, workspaceId: workspaces[each.to] ?? '' });
        else if (each.do === 'lose') world.store.evaluations.delete(subject.id);
        else if (each.do === 'pass') world.clock.advance(each.ms);
        else {
          const path = (ENDPOINTS[each.endpoint] ?? GET_CALL).path(subject);
          const gateway = world.gateway(each.gateway);
          await commandsSince();
          const reply = await gateway.get(path, { key: keys[each.set] ?? '' });
          if (reply.status !== 200 && reply.status !== 404) faults.push(`${path}: ${reply.status}`);
          // A call that goes on behind the reader belongs to it.
          await world.eventually(async () => {
            const { flight } = await world.explain(path, gateway, of(each.set));
            if (flight.since !== null || flight.leaseLeftMs !== null) throw new Error('a call is under way');
          });
          const mine = of(each.set);
          const foreign = workspaces.filter((id) => !mine.includes(id));
          const seen = await commandsSince();
          // The look of the test itself may name anything.
          const made = seen.slice(
            0,
            seen.findIndex((command) => command.startsWith('hgetall')),
          );
          named += made.filter((command) => mine.some((id) => command.includes(`:copy-${id}`))).length;
          faults.push(...made.filter((command) => foreign.some((id) => command.includes(id))));
        }
      }
      expect(faults).toEqual([]);
    }),
    { numRuns: cases(12), endOnFailure: true },
  );
  // Own copies were asked for, so the names are on the wire.
  expect(named).toBeGreaterThan(20);
  wire.disconnect();
  raw.disconnect();
}, 300_000);
