/**
 * One table of what is left while something that a gateway depends on is away: by dependency and state, what a consumer and an
 * operator get, and the rule that wants it so. Details are tested where they belong; this says it whole.
 */
import assert from 'node:assert/strict';
import { afterEach, expect, test, vi } from 'vitest';
import { newToken } from '../../src/keys/token.ts';
import { readinessOf } from '../support/admin.ts';
import { type Reply, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { RunningClock } from '../support/manual-clock.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { withClient } from '../support/redis/client.ts';
import { isOneServer, startRedis, type TestRedis } from '../support/redis.ts';
import type { StoreServer } from '../support/store-server.ts';
import { quotasAreExact, WITHIN } from '../support/world.ts';

const MINUTE_MS = 60_000;
const FULL_BYTES = '1mb';
const NEW_KEY = { name: 'n', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };

interface World {
  readonly gateway: TestGateway;
  readonly store: StoreServer;
  /** Both are one if the cache has none of its own. */
  readonly state: TestRedis;
  readonly cache: TestRedis;
}

/** Breaks it. Returns the dependency that reports that, if one has to before anything is looked at. */
type Break = (world: World) => Promise<string | null>;

/** Each answer is named by its `Cache-Status` if it is a 200, else by its status and error code. */
interface Left {
  /** A key in use reads a record that is fresh in memory. */
  readonly fresh: string;
  /** It reads one in memory that is past its stale time. */
  readonly old: string;
  /** It reads one that no tier has. */
  readonly cold: string;
  /** Somebody comes with a key that this gateway has never seen. */
  readonly stranger: string;
  /** An operator purges, and issues a key. */
  readonly purge: number;
  readonly issue: number;
  readonly readyz: number;
}

const WELL: Left = {
  fresh: 'hit',
  old: 'stale',
  cold: 'uri-miss',
  stranger: '401 key_invalid',
  purge: 200,
  issue: 201,
  readyz: 200,
};
/** Keys that Redis has confirmed go on, what is cached is served, each process asks the store for itself; nothing can be changed. */
const WITHOUT_STATE: Left = { ...WELL, stranger: '500 keys_unavailable', purge: 503, issue: 503 };
/** Copies are served, however old within their `error` time. */
const WITHOUT_STORE: Left = { ...WELL, old: 'hit stale-if-error', cold: '500 store_unavailable' };

const killed = (which: 'state' | 'cache', reportedBy: string): Break => {
  return async (world) => {
    await world[which].kill();
    return reportedBy;
  };
};
const frozen = (which: 'state' | 'cache', reportedBy: string): Break => {
  return async (world) => {
    await world[which].pause();
    return reportedBy;
  };
};
const storeThat = (fails: (store: StoreServer) => void): Break => {
  return async ({ store }) => {
    fails(store);
    return null;
  };
};

const ROWS: readonly {
  readonly dependency: 'none' | 'Redis' | 'state Redis' | 'cache Redis' | 'store';
  readonly state: string;
  readonly rule: string;
  readonly break: Break;
  readonly left: Left;
}[] = [
  { dependency: 'none', state: 'is away', rule: 'C2', break: async () => null, left: WELL },
  {
    dependency: 'Redis',
    state: 'is killed',
    rule: 'C8',
    break: killed('state', 'redis-state'),
    left: WITHOUT_STATE,
  },
  {
    dependency: 'Redis',
    state: 'is frozen',
    rule: 'C8, R6',
    break: frozen('state', 'redis-state'),
    left: WITHOUT_STATE,
  },
  {
    dependency: 'Redis',
    state: 'has no memory left',
    rule: 'C8, R5',
    break: async ({ state }) => {
      await withClient(state.url, (client) => client.config('SET', 'maxmemory', FULL_BYTES));
      return null;
    },
    // A purge needs no room.
    left: { ...WELL, issue: 503 },
  },
  {
    dependency: 'state Redis',
    state: 'is killed',
    rule: 'C8',
    break: killed('state', 'redis-state'),
    left: WITHOUT_STATE,
  },
  {
    dependency: 'state Redis',
    state: 'is frozen',
    rule: 'C8, R6',
    break: frozen('state', 'redis-state'),
    left: WITHOUT_STATE,
  },
  {
    dependency: 'cache Redis',
    state: 'is killed',
    rule: 'C8',
    break: killed('cache', 'redis-cache'),
    left: WELL,
  },
  {
    dependency: 'cache Redis',
    state: 'is frozen',
    rule: 'C8, R6',
    break: frozen('cache', 'redis-cache'),
    left: WELL,
  },
  {
    dependency: 'store',
    state: 'answers 503',
    rule: 'S2',
    break: storeThat((store) => store.fail(503)),
    left: WITHOUT_STORE,
  },
  {
    dependency: 'store',
    state: 'resets connections',
    rule: 'S2',
    break: storeThat((store) => store.resetConnections()),
    left: WITHOUT_STORE,
  },
  {
    dependency: 'store',
    state: 'is silent',
    rule: 'S2, C3',
    break: storeThat((store) => store.hold()),
    left: WITHOUT_STORE,
  },
];

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function open(hasTwo: boolean): Promise<World & { readonly clock: RunningClock }> {
  const state = await startRedis();
  closers.push(() => state.close());
  const cache = hasTwo ? await startRedis() : state;
  if (hasTwo) closers.push(() => cache.close());
  const clock = new RunningClock();
  const env = {
    REDIS_URL: state.url,
    UPSTREAM_TIMEOUT: '500ms',
    CACHE_EVALUATION_FRESH: '1m',
    CACHE_EVALUATION_STALE: '1m',
    ...(hasTwo && { REDIS_CACHE_URL: cache.url }),
  };
  const gateway = await startTestGateway({ clock, env });
  closers.push(() => gateway.close());
  await quotasAreExact(gateway);
  return { gateway, store: gateway.store, state, cache, clock };
}

function reportsTroubleOf(gateway: TestGateway, dependency: string): Promise<void> {
  return vi.waitFor(
    async () => assert.match((await readinessOf(gateway)).statuses[dependency] ?? '', /^(?:degraded|down)$/),
    WITHIN,
  );
}

/** As `Left` has it. */
function outcomeOf({ status, headers }: Reply): string {
  if (status !== 200) return [status, headers['x-error-code']].filter((part) => part !== undefined).join(' ');
  const said = String(headers['cache-status']);
  const [, outcome = said] = /(?:fwd=)?(hit|stale|uri-miss)/.exec(said) ?? [];
  const [, detail = null] = /detail=([a-z-]+)/.exec(said) ?? [];
  return detail === null ? outcome : `${outcome} ${detail}`;
}

test.skipIf(!isOneServer).each(ROWS)('$dependency $state ($rule)', async ({ dependency, break: breakIt, left }) => {
  const world = await open(!['none', 'Redis'].includes(dependency));
  const { gateway, store, clock } = world;
  store.put({ evaluations: ['fresh', 'old', 'cold'].map((id) => anEvaluation({ _id: id })) });
  const key = await gateway.issueKey();
  const read = async (id: string, by = key): Promise<string> =>
    outcomeOf(await gateway.get(`/v2/calls/${id}`, { key: by }));
  expect(await read('old')).toBe('uri-miss');
  clock.advance(3 * MINUTE_MS);
  expect(await read('fresh')).toBe('uri-miss');
  const reportedBy = await breakIt(world);
  if (reportedBy !== null) await reportsTroubleOf(gateway, reportedBy);
  const seen: Left = {
    fresh: await read('fresh'),
    old: await read('old'),
    cold: await read('cold'),
    stranger: await read('fresh', newToken()),
    purge: (await gateway.admin('POST', '/api/cache/purge', { tags: ['class:list'] })).status,
    issue: (await gateway.admin('POST', '/api/keys', NEW_KEY)).status,
    readyz: (await readinessOf(gateway)).code,
  };
  expect(seen).toEqual(left);
});
