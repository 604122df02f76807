/** A record read from an encrypted copy in Redis costs hardly more than from a plain one. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { fileOf } from '../support/files.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation, aTranscript } from '../support/records.ts';
import { percentile } from '../support/percentile.ts';
import { startRedis } from '../support/redis.ts';
import { createStoreServer } from '../support/store-server.ts';
import { prove } from './bar.ts';

const MOST = 1.15;
const ROUNDS = 30;
const READS = 60;
const PATHS = ['/v2/calls/ev_1', '/v2/calls', '/v2/calls/ev_1/transcript'];

test('a read from Redis takes at most 1.15 times as long if copies are encrypted', async (context) => {
  await using stack = new AsyncDisposableStack();
  const config = fileOf('cache: {memory: 0B}\nlog: {requests: off}\n');
  const redis = await startRedis();
  stack.defer(() => redis.close());
  const store = await createStoreServer();
  stack.defer(() => store.close());
  const body = Array.from({ length: 1500 }, (_, line) => `Riley: line ${line} is said\n`).join('');
  store.put({
    evaluations: Array.from({ length: 50 }, (_, index) => anEvaluation({ _id: `ev_${index + 1}` })),
    transcripts: [aTranscript({ body })],
  });
  const start = async (database: number, keys: string) => {
    const env = {
      REDIS_URL: `${redis.url}/${database}`,
      CACHE_ENCRYPTION_KEYS: keys,
      CONFIG_FILE: config,
      CACHE_LIST_FRESH: '1h',
    };
    const gateway = await GatewayProcess.start({
      env: { ...env, UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, DRAIN_DELAY: '0s' },
    });
    stack.defer(() => gateway.kill());
    return { gateway, key: await gateway.issueKey() };
  };
  const plain = await start(1, '');
  const sealed = await start(2, randomBytes(32).toString('base64'));
  const meanMs = async ({ gateway, key }: typeof plain, path: string): Promise<number> => {
    const startMs = performance.now();
    for (let read = 0; read < READS; read += 1) expect(await gateway.status(path, key)).toBe(200);
    return (performance.now() - startMs) / READS;
  };
  for (const path of PATHS) {
    for (const side of [plain, sealed]) await meanMs(side, path);
  }
  const calls = store.requests.length;
  for (const path of PATHS) {
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      // In turn, so that both see the same machine.
      const [first, second] = round % 2 === 0 ? [plain, sealed] : [sealed, plain];
      const [one, other] = [await meanMs(first, path), await meanMs(second, path)];
      ratios.push(first === sealed ? one / other : other / one);
    }
    const ratio = percentile(ratios, 0.5);
    prove(context, {
      name: `encrypted copies: ${path}`,
      bar: `a read from Redis at most ${MOST} × one without`,
      measured: `${ratio.toFixed(3)} × (median of ${ROUNDS} rounds)`,
      ok: ratio <= MOST,
    });
  }
  // All of them came from Redis.
  expect(store.requests).toHaveLength(calls);
});
