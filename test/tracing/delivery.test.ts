/** How spans get to a collector, and that one that doesn't take them is no request's trouble. */
import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Collector } from '../support/collector.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';

let collector: Collector;
let gateway: TestGateway;

beforeEach(async () => {
  collector = await Collector.start();
});
afterEach(async () => {
  await gateway.close();
  await collector.close();
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startTestGateway({ env: { ...collector.env, ...env } });
}

async function ask(count = 1): Promise<void> {
  for (let asked = 0; asked < count; asked += 1) {
    expect((await gateway.get('/v1/key')).status).toBe(401);
  }
}

function told(text: string): readonly string[] {
  return gateway.logLines.filter((line) => line.includes(text));
}

const LOST = 'spans are lost';

describe('delivery', () => {
  test('pending spans are sent when the gateway stops', async () => {
    await start({ OTEL_BSP_SCHEDULE_DELAY: '600000' });
    await ask(3);
    expect(collector.posts).toEqual([]);

    await gateway.close();

    expect(collector.spans.filter(({ name }) => name === 'GET /v1/key')).toHaveLength(3);
  });

  test('headers, compression and the name of the service are as they are set', async () => {
    await start({
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc,x-team=one',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-team=two',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_SERVICE_NAME: 'coaching-edge',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod,service.instance.id=mine',
    });
    await ask();
    await collector.until(() => collector.spans.length > 0);

    expect(collector.posts[0]).toMatchObject({
      path: '/v1/traces',
      headers: { authorization: 'Basic abc', 'x-team': 'two', 'content-encoding': 'gzip' },
    });
    expect(collector.spans[0]?.resource).toMatchObject({
      'service.name': 'coaching-edge',
      'service.instance.id': 'mine',
      'deployment.environment.name': 'prod',
    });
  });

  test('by default it is protobuf', async () => {
    await start({ OTEL_EXPORTER_OTLP_PROTOCOL: '' });
    await ask();
    await collector.until(() => collector.posts.some(({ body }) => body.includes('GET /v1/key')));

    expect(collector.posts[0]?.headers['content-type']).toBe('application/x-protobuf');
  });

  test('the address for traces is taken as it is', async () => {
    await start({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path` });
    await ask();
    await collector.until(() => collector.posts.length > 0);

    expect(collector.posts[0]?.path).toBe('/own/path');
  });
});

test('a variable that cannot be used is a warning, and its default counts', async () => {
  await start({
    OTEL_TRACES_EXPORTER: 'otlp, zipkin',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_SAMPLER: 'often',
    OTEL_BSP_MAX_QUEUE_SIZE: 'many',
  });
  await ask();
  await collector.until(() => collector.posts.some(({ body }) => body.includes('GET /v1/key')));

  expect(told('tracing: ').map((line) => /OTEL_\w+/.exec(line)?.[0])).toEqual([
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'OTEL_TRACES_EXPORTER',
    'OTEL_TRACES_SAMPLER',
    'OTEL_BSP_MAX_QUEUE_SIZE',
  ]);
});

describe('a collector in trouble', () => {
  test('one that refuses is logged once, and again when it accepts them', async () => {
    collector.manner = 'refuses';
    await start();
    while (collector.posts.length < 4) await ask();
    expect(told(LOST)).toHaveLength(1);
    expect(told('delivered again')).toHaveLength(0);

    collector.manner = 'takes';
    while (told('delivered again').length === 0) await ask();

    expect(told(LOST)).toHaveLength(1);
    expect(told('delivered again')).toHaveLength(1);
    expect(told('delivered again')[0]).toMatch(/"lost":\d+/);
  });

  test('one that cannot be reached costs requests nothing and is logged once', async () => {
    await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_EXPORTER_OTLP_TIMEOUT: '50',
      OTEL_BSP_MAX_QUEUE_SIZE: '10',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10',
    });

    await ask(100);
    while (told(LOST).length === 0) await ask();

    expect(told(LOST)).toHaveLength(1);
    expect(told(LOST)[0]).not.toContain('127.0.0.1:9');
  });

  test('one that takes and never answers holds nobody up, not even the end of the gateway', async () => {
    collector.manner = 'hangs';
    await start({
      OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
      OTEL_BSP_MAX_QUEUE_SIZE: '10',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '5',
    });
    await ask(100);
    await collector.until(() => collector.posts.length > 0);
    // The others wait in a queue that is bounded, or were dropped.
    expect(collector.posts).toHaveLength(1);

    const beganMs = performance.now();
    await gateway.close();

    expect(performance.now() - beganMs).toBeLessThan(6000);
    expect(told(LOST)).toHaveLength(1);
    expect(told(LOST)[0]).toContain('not taken within 3000 ms');
  });
});
