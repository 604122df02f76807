/** The cache commands as processes of their own, on a real gateway in front of a scripted store. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';
import { evalgate } from './support.ts';

const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  gateway = await startTestGateway();
  gateway.store.put({ evaluations: [anEvaluation()] });
  key = await gateway.issueKey();
});
afterEach(() => gateway.close());

const cache = (...args: readonly string[]) => evalgate(['cache', ...args, '--admin', gateway.adminUrl]);
const read = async () => String((await gateway.get(LIST, { key })).headers['cache-status']);

test('purge empties a class only with --yes, as the calls to the store tell', async () => {
  await read();
  const shown = await cache('purge', '--tag', 'class:list');
  expect([shown.code, shown.stdout]).toEqual([2, '']);
  expect(shown.stderr).toMatch(/^Would be purged, hard: 1 entry, \d+\.\d kB\.\n {2}class:list\nNothing was purged\./);
  await read();
  expect(gateway.store.calls('list')).toBe(1);
  const purged = await cache('purge', '--tag', 'class:list', '--yes', '--json');
  expect([purged.code, JSON.parse(purged.stdout)]).toMatchObject([0, { entries: 1, mode: 'hard', dryRun: false }]);
  expect(await read()).toBe('evalgate; fwd=uri-miss; stored');
  expect(gateway.store.calls('list')).toBe(2);
});

test('purge of an evaluation needs no yes, and a soft one makes no reader wait', async () => {
  await read();
  const { code, stdout } = await cache('purge', '--tag', 'evaluation:ev_1', '--mode', 'soft');
  expect([code, stdout.split('\n').slice(1)]).toEqual([0, ['  evaluation:ev_1', `  lists-of:${WORKSPACE_A}`, '']]);
  expect(await read()).toBe('evalgate; hit; ttl=0; detail=stale-while-revalidate');
  await gateway.store.waitForCalls(2, 'list');
});

test('a time that is set rules stored answers at once, and reset goes back', async () => {
  await read();
  gateway.clock.advance(40_000);
  const set = await cache('ttl', 'set', 'list', '--fresh', '10m');
  expect([set.code, set.stdout.split('\n')[1]?.split(/ {2,}/)]).toEqual([
    0,
    ['list', '10m (set)', '5m', '1h', 'anonymous', '2026-01-15T12:00:40.000Z'],
  ]);
  expect(await read()).toMatch(/^evalgate; hit; ttl=\d{3}$/);
  expect(gateway.store.calls('list')).toBe(1);
  const reset = await cache('ttl', 'reset', 'list', '--json');
  expect([reset.code, JSON.parse(reset.stdout)]).toMatchObject([0, { fresh: '30s', source: { fresh: 'default' } }]);
  expect(await read()).toMatch(/^evalgate; hit; ttl=-1\d; detail=stale-while-revalidate$/);
  await gateway.store.waitForCalls(2, 'list');
});

test('ttl and stats understand what the gateway says', async () => {
  await read();
  await read();
  const ttl = await cache('ttl');
  expect([ttl.code, ttl.stdout.trimEnd().split('\n')]).toMatchObject([0, { length: 8 }]);
  const stats = await cache('stats', '--json');
  const { classes } = z.object({ classes: z.array(z.unknown()) }).parse(JSON.parse(stats.stdout));
  expect(classes[0]).toMatchObject({ class: 'list', reads: 2, outcomes: { hit: 1, miss: 1 }, storeCalls: 1 });
  expect((await cache('stats')).stdout).toMatch(/^list +2 +1 +0 +0 +0 +1 +0 +1 +50\.0 % +1 +\d+\.\d kB$/m);
});
