import { afterEach, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';
import { createCacheRig } from './cache-rig.ts';
import { messageOf, type RunningAdmin, startAdmin, START } from './harness.ts';

let gateway: TestGateway | undefined;
let admin: RunningAdmin | undefined;
afterEach(async () => {
  await gateway?.close();
  await admin?.close();
  gateway = undefined;
  admin = undefined;
});

test('keys and routes by the time that they cost the store, whole milliseconds, the costliest first', async () => {
  const rig = createCacheRig(new ManualClock(Date.parse(START)));
  const note = (key: string, route: string | null, durationMs: number): void =>
    rig.top.note({ class: 'list', key, route, durationMs });
  note('v1:{list:a}', '/v2/calls', 10.4);
  note('v1:{list:b}', null, 30);
  note('v1:{list:a}', '/v2/calls', 10.4);
  admin = await startAdmin({ cache: rig.controls });
  const { status, json } = await admin.get('/api/cache/top');
  expect([status, json]).toEqual([
    200,
    {
      since: START,
      scope: 'process',
      keys: [
        { key: 'v1:{list:b}', class: 'list', storeCalls: 1, storeMs: 30 },
        { key: 'v1:{list:a}', class: 'list', storeCalls: 2, storeMs: 21 },
      ],
      routes: [
        { route: null, storeCalls: 1, storeMs: 30 },
        { route: '/v2/calls', storeCalls: 2, storeMs: 21 },
      ],
    },
  ]);
  expect((await admin.get('/api/cache/top?limit=1')).json).toMatchObject({
    keys: { length: 1 },
    routes: { length: 1 },
  });
});

test.each([
  ['limit=0', 'The query parameter limit: given "0"; allowed: an integer from 1 to 100; 20 if it is left out.'],
  ['limit=101', 'The query parameter limit: given "101"; allowed: an integer from 1 to 100; 20 if it is left out.'],
  ['limit=ten', 'The query parameter limit: given "ten"; allowed: an integer from 1 to 100; 20 if it is left out.'],
  ['limit=1&limit=2', 'The query parameter limit may be given only once.'],
  ['top=3', 'Unknown query parameter "top". Known here: limit.'],
])('%s is refused', async (query, message) => {
  admin = await startAdmin();
  const answer = await admin.get(`/api/cache/top?${query}`);
  expect([answer.status, messageOf(answer)]).toEqual([400, message]);
});

test('what readers cause, refreshes behind them and failures included, is counted for their route; hits are not', async () => {
  gateway = await startTestGateway();
  const { store, clock } = gateway;
  store.put({ evaluations: [anEvaluation()] });
  const key = await gateway.issueKey();
  const list = `/v1/workspaces/${WORKSPACE_A}/reports`;
  await gateway.get(list, { key });
  await gateway.get(list, { key });
  clock.advance(40_000);
  await gateway.get(list, { key });
  await store.waitForCalls(2, 'list');
  const heal = store.fail(404);
  expect((await gateway.get('/v2/calls/ev_9', { key })).status).toBe(500);
  heal();
  expect((await gateway.admin('GET', '/api/cache/top')).json).toMatchObject({
    keys: [
      { key: `v1:{list:${WORKSPACE_A}//0/50}`, class: 'list', storeCalls: 2 },
      { key: 'v1:{evaluation:ev_9}', class: 'evaluation', storeCalls: 1 },
    ],
    routes: [
      { route: '/v1/workspaces/{workspaceId}/reports', storeCalls: 2 },
      { route: '/v2/calls/{callId}', storeCalls: 1 },
    ],
  });
});
