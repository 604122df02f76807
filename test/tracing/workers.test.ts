/** Several processes: each has its own tracing, and says which one it is. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { Collector } from '../support/collector.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const PROGRAM = join(import.meta.dirname, '../../src/cli/evalgate.js');
const announcedSchema = z.object({ publicUrl: z.string() });

let redis: TestRedis;
let collector: Collector;

beforeAll(async () => {
  redis = await startRedis();
  await redis.flush();
  collector = await Collector.start();
});
afterAll(async () => {
  await collector.close();
  await redis.close();
});

test('each worker is an instance of the service, and sends what it has when it is told to stop', async () => {
  const env = { ...process.env, ...collector.env, OTEL_BSP_SCHEDULE_DELAY: '600000' };
  const program = spawn(process.execPath, [PROGRAM, 'serve', '--json'], {
    env: { ...env, PORT: '0', ADMIN_PORT: '0', WORKERS: '2', REDIS_URL: redis.url, LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(program, 'exit');
  try {
    const { publicUrl } = announcedSchema.parse(JSON.parse(await firstDocument(program.stdout)));
    // Each on a connection of its own, and the workers take them in turn.
    for (let asked = 0; asked < 8; asked += 1) {
      const reply = await fetch(`${publicUrl}/v1/key`, { headers: { connection: 'close' } });
      await reply.text();
    }
    expect(collector.spans).toEqual([]);
  } finally {
    program.kill('SIGINT');
  }

  expect(await exit).toEqual([0, null]);
  const requests = collector.spans.filter(({ name }) => name === 'GET /v1/key');
  expect(requests).toHaveLength(8);
  for (const attribute of ['service.instance.id', 'process.pid']) {
    expect(new Set(requests.map(({ resource }) => resource[attribute])).size).toBe(2);
  }
}, 60_000);

/** A whole JSON document from a stream that goes on. */
async function firstDocument(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.trimEnd().endsWith('}') && text.split('{').length === text.split('}').length) break;
  }
  return text;
}
