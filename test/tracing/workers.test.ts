/** Real processes: each has its own tracing, says which one it is, and ends when it is told to. */
import { expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { Collector } from '../support/collector.ts';
import { GatewayProcess } from '../support/process.ts';
import { startRedis } from '../support/redis.ts';

const redis = await forFile(startRedis());
await redis.flush();
const collector = await forFile(Collector.start());

test('each worker is an instance of the service, and sends what it has when it is told to stop', async () => {
  const env = { ...collector.env, OTEL_BSP_SCHEDULE_DELAY: '600000', WORKERS: '2', REDIS_URL: redis.url };
  const gateway = await GatewayProcess.start({ env });
  try {
    // Each on a connection of its own, and the workers take them in turn.
    for (let asked = 0; asked < 8; asked += 1) {
      const reply = await fetch(`${gateway.publicUrl}/v1/key`, { headers: { connection: 'close' } });
      await reply.text();
    }
    expect(collector.spans).toEqual([]);
  } finally {
    gateway.signal('SIGINT');
  }

  expect(await gateway.exited).toEqual([0, null]);
  const requests = collector.spans.filter(({ name }) => name === 'GET /v1/key');
  expect(requests).toHaveLength(8);
  for (const attribute of ['service.instance.id', 'process.pid']) {
    expect(new Set(requests.map(({ resource }) => resource[attribute])).size).toBe(2);
  }
}, 60_000);

test('a collector that takes and never answers does not hold a process that stops', async () => {
  const hanging = await Collector.start();
  hanging.manner = 'hangs';
  const gateway = await GatewayProcess.start({ env: { ...hanging.env, OTEL_EXPORTER_OTLP_TIMEOUT: '600000' } });
  await (await fetch(`${gateway.publicUrl}/v1/key`)).text();
  await hanging.until(() => hanging.posts.length > 0);
  gateway.signal('SIGINT');

  expect(await gateway.exited).toEqual([0, null]);
  await hanging.close();
}, 60_000);
