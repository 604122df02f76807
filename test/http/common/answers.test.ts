/** The answers that consumers get decide whether all is well, as `/readyz`, the log and the metrics say. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readinessOf, linesOf } from '../../support/admin.ts';
import { anEvaluation } from '../../support/records.ts';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

const troublesSchema = z.object({ troubles: z.array(z.object({ name: z.string(), severity: z.string() })) });

async function answersOf(gateway: UpstreamGateway) {
  const { troubles } = troublesSchema.parse((await gateway.admin('GET', '/api/health')).json);
  const severity = troubles.find(({ name }) => name === 'answers')?.severity;
  return { ...(await readinessOf(gateway)).of('answers'), severity };
}

const WELL = { status: 'ok', detail: 'consumers are served as in the hour before' };

/** Thirty different calls are read, one per second, and answered after that time. */
async function readCalls(gateway: UpstreamGateway, prefix: string, tookMs = 20): Promise<void> {
  for (const id of putCalls(gateway, 30, prefix)) {
    gateway.clock.advance(1000);
    const end = gateway.store.override(`/internal/v1/evaluations/${id}`, (_request, response) => {
      gateway.clock.advance(tookMs);
      response.end(JSON.stringify(gateway.store.evaluations.get(id)));
    });
    await gateway.read(id);
    end();
  }
}

test('a store that became slow shows, below the objective too, and is over a minute after it is fast again', async () => {
  const gateway = await startUpstreamGateway();
  await readCalls(gateway, 'before');
  expect(await answersOf(gateway)).toMatchObject(WELL);
  gateway.clock.advance(60_000);
  await readCalls(gateway, 'slow', 340);
  expect(await answersOf(gateway)).toMatchObject({
    status: 'degraded',
    severity: 'warning',
    detail: 'misses in the last minute take 340 ms, 17 times as long as in the hour before',
  });
  expect(linesOf(gateway).filter(({ msg }) => msg === 'consumers are served worse')).toHaveLength(1);
  gateway.clock.advance(60_000);
  await readCalls(gateway, 'after');
  gateway.clock.advance(60_000);
  await readCalls(gateway, 'later');
  expect(await answersOf(gateway)).toMatchObject(WELL);
});

test('misses beyond the objective show without an hour before', async () => {
  const gateway = await startUpstreamGateway();
  await readCalls(gateway, 'slow', 1500);
  expect(await answersOf(gateway)).toMatchObject({
    severity: 'warning',
    detail: '100 % of misses in the last 5 minutes take over 1000 ms',
  });
  const samples = ['requests_total', 'missed_total', 'budget_ratio'].map((name) =>
    gateway.metric(`evalgate_objective_${name}{objective="missP99"}`),
  );
  expect(await Promise.all(samples)).toEqual([30, 30, 0.01]);
});

test('everything failing is critical; /readyz stays 200', async () => {
  const gateway = await startUpstreamGateway();
  await readCalls(gateway, 'before');
  gateway.clock.advance(60_000);
  gateway.store.setFaults({ status: 503 });
  for (let i = 0; i < 30; i += 1) await gateway.read(`gone_${i}`);
  const answers = await answersOf(gateway);
  expect(answers).toMatchObject({ status: 'degraded', severity: 'critical' });
  expect(answers.detail).toMatch(
    /^nearly all requests fail: 100 % of answers in the last minute are 5xx, 0 % in the hour before/,
  );
  expect((await gateway.admin('GET', '/readyz')).status).toBe(200);
});

test('a share of records that are left out of lists is a warning, as in the alert', async () => {
  const gateway = await startUpstreamGateway();
  const key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
  putCalls(gateway, 40);
  const readLists = async (): Promise<void> => {
    for (let page = 1; page <= 30; page += 1) await gateway.get(`/v2/calls?page=1&pageSize=${page + 40}`, { key });
  };
  await readLists();
  expect(await answersOf(gateway)).toMatchObject(WELL);
  gateway.clock.advance(600_000);
  for (const id of ['call_0', 'call_1', 'call_2', 'call_3']) {
    gateway.store.evaluations.set(id, { ...anEvaluation({ _id: id }), title: 7 });
  }
  await readLists();
  await expect
    .poll(() => answersOf(gateway))
    .toMatchObject({
      severity: 'warning',
      detail: '10 % of the records in lists in the last 5 minutes are left out, because they are malformed',
    });
});

test('a jump of refusals is a warning; what was so for an hour is none, nor is a stranger', async () => {
  const gateway = await startUpstreamGateway();
  const foreign = await gateway.issueKey({ scopes: ['coaching.read'], perMinute: 1_000_000, perHour: 1_000_000 });
  const [id = ''] = putCalls(gateway, 1);
  const mix = async (refused: number): Promise<void> => {
    for (let i = 0; i < 40; i += 1) await gateway.read(id);
    for (let i = 0; i < refused; i += 1) await gateway.get(`/v2/calls/${id}`, { key: foreign });
    // Keys that never existed.
    for (let i = 0; i < 50; i += 1) await gateway.get(`/v2/calls/${id}`, { key: `stranger${i}` });
  };
  await mix(0);
  expect(await answersOf(gateway)).toMatchObject(WELL);
  gateway.clock.advance(61_000);
  await mix(20);
  expect(await answersOf(gateway)).toMatchObject({
    severity: 'warning',
    detail: '33 % of answers in the last minute are 403, 0 % in the hour before',
  });
  gateway.clock.advance(200_000);
  await mix(20);
  expect(await answersOf(gateway)).toMatchObject(WELL);
});
