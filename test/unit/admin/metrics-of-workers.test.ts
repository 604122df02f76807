import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { ZodError } from 'zod';
import { MetricsOfWorkers } from '../../../src/admin/metrics/of-workers.ts';

function worker({ requests = 0, bytes = 0, lag = 0 }) {
  const registers = [new Registry()];
  new Counter({ name: 'requests_total', help: 'h', labelNames: ['status'], registers }).inc(
    { status: '200' },
    requests,
  );
  new Gauge({ name: 'bytes', help: 'h', registers }).set(bytes);
  new Gauge({ name: 'lag', help: 'h', aggregator: 'average', registers }).set(lag);
  new Gauge({ name: 'info', help: 'h', aggregator: 'first', registers }).set(1);
  const seconds = new Histogram({ name: 'seconds', help: 'h', buckets: [1], registers });
  for (let i = 0; i < requests; i += 1) seconds.observe(0.5);
  return registers[0]?.getMetricsAsJSON();
}

async function rendered(metrics: MetricsOfWorkers, answers: readonly [number, unknown][], silent: number[] = []) {
  const text = await metrics.render({ answers: answers.map(([id, value]) => ({ worker: id, value })), silent });
  return Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

test('counters, histograms and sizes are summed, lags averaged, and what is the same everywhere told once', async () => {
  const metrics = new MetricsOfWorkers(2);
  const one = await worker({ requests: 3, bytes: 10, lag: 0.1 });
  const two = await worker({ requests: 4, bytes: 20, lag: 0.3 });
  expect(
    await rendered(metrics, [
      [1, one],
      [2, two],
    ]),
  ).toEqual({
    'requests_total{status="200"}': 7,
    bytes: 30,
    lag: 0.2,
    info: 1,
    'seconds_bucket{le="1"}': 7,
    'seconds_bucket{le="+Inf"}': 7,
    seconds_sum: 3.5,
    seconds_count: 7,
    'evalgate_workers{state="wanted"}': 2,
    'evalgate_workers{state="answered"}': 2,
  });
});

test('what a worker that is gone had counted stays, and what was true only of a moment goes', async () => {
  const metrics = new MetricsOfWorkers(2);
  const two = await worker({ requests: 4, bytes: 20 });
  await rendered(metrics, [
    [1, await worker({ requests: 3, bytes: 10 })],
    [2, two],
  ]);
  const after = { 'requests_total{status="200"}': 7, bytes: 20, seconds_count: 7 };
  expect(await rendered(metrics, [[2, two]])).toMatchObject(after);
  expect(
    await rendered(metrics, [
      [2, two],
      [3, await worker({ requests: 5, bytes: 1 })],
    ]),
  ).toMatchObject({
    'requests_total{status="200"}': 12,
    bytes: 21,
    seconds_count: 12,
  });
  expect(await rendered(metrics, [[4, await worker({ requests: 1 })]])).toMatchObject({
    'requests_total{status="200"}': 13,
    seconds_count: 13,
  });
});

test('a worker that does not answer is seen to be missing, and no sum falls', async () => {
  const metrics = new MetricsOfWorkers(2);
  const one = await worker({ requests: 3, bytes: 10 });
  await rendered(metrics, [
    [1, one],
    [2, await worker({ requests: 4, bytes: 20 })],
  ]);
  expect(await rendered(metrics, [[1, one]], [2])).toMatchObject({
    'requests_total{status="200"}': 7,
    bytes: 10,
    'evalgate_workers{state="wanted"}': 2,
    'evalgate_workers{state="answered"}': 1,
  });
  expect(
    await rendered(metrics, [
      [1, one],
      [2, await worker({ requests: 6, bytes: 20 })],
    ]),
  ).toMatchObject({
    'requests_total{status="200"}': 9,
  });
});

test('what is no metrics is refused', async () => {
  const rendering = new MetricsOfWorkers(1).render({ answers: [{ worker: 1, value: [{}] }], silent: [] });
  await expect(rendering).rejects.toBeInstanceOf(ZodError);
});
