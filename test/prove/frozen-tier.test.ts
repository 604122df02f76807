/** One API key cannot freeze what gateways share in Redis: a key with less than an equal share always finds room. */
import { onTestFinished, test } from 'vitest';
import { fileOf } from '../support/files.ts';
import { Load, type Target } from '../support/load.ts';
import { GatewayProcess } from '../support/process.ts';
import { connectToAny, namesIn } from '../support/redis/client.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { createStoreServer } from '../support/store-server.ts';
import { count, percent, prove } from './bar.ts';

const MEGABYTE = 1_000_000;

test('the frozen tier', async (context) => {
  const [pages, reads, limit] = [118, 55, 8 * MEGABYTE];
  const store = await createStoreServer();
  onTestFinished(() => store.close());
  const evaluations = Array.from({ length: pages * 100 }, (_, n) =>
    anEvaluation({ _id: `listed-${n}`, workspaceId: WORKSPACE_A, createdAtMs: 1_700_000_000_000 - n }),
  );
  store.put({ evaluations });
  store.evaluations.make = (id) => anEvaluation({ _id: id, workspaceId: WORKSPACE_B });
  const redis = await startRedis();
  onTestFinished(() => redis.close());
  const env = {
    UPSTREAM_URL: store.url,
    UPSTREAM_TOKEN: store.token,
    LOG_LEVEL: 'fatal',
    REDIS_URL: redis.url,
    CONFIG_FILE: fileOf(`cache: { redis: ${limit / MEGABYTE}MB }`),
  };
  const gateways = await Promise.all([1, 2].map(() => GatewayProcess.start({ env })));
  onTestFinished(() => gateways.forEach((gateway) => void gateway.kill()));
  const [here, there] = gateways;
  if (here === undefined || there === undefined) throw new Error('There are no two gateways.');
  const load = await Load.start();
  onTestFinished(() => load.close());
  const raw = await connectToAny(redis.url, 5000);
  onTestFinished(() => raw.disconnect());
  const cacheBytes = async (): Promise<number> => {
    const names = await namesIn(raw, 'evalgate:{cache-*');
    const sizes = await Promise.all(names.map((name) => raw.memory('USAGE', name)));
    return sizes.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
  };
  const greedy = await here.issueKey({ workspaceIds: [WORKSPACE_A] });
  const other = await here.issueKey({ workspaceIds: [WORKSPACE_B] });
  let most = 0;
  for (let page = 1; page <= pages; page += 1) {
    await (await here.get(`/v2/calls?pageSize=100&page=${page}`, greedy)).arrayBuffer();
    if (page % 10 === 0) most = Math.max(most, await cacheBytes());
  }
  const targets = ({ publicUrl }: GatewayProcess): readonly Target[] =>
    Array.from({ length: reads }, (_, n) => ({ url: `${publicUrl}/v2/calls/single-${n}`, key: other }));
  await load.burst(targets(here), 1);
  most = Math.max(most, await cacheBytes());
  const shared = (await load.burst(targets(there), 1)).filter(({ cacheStatus }) => cacheStatus.includes('hit')).length;
  prove(context, {
    name: 'frozen tier',
    bar: `${pages} pages of 100 calls by one key, ${limit / MEGABYTE} MB for the cache in Redis: of ${reads} calls that another key reads then at one gateway, the other gateway has all from Redis; at most 10 % above the limit`,
    measured: `${count(shared)} of ${reads}; at most ${(most / MEGABYTE).toFixed(1)} MB (${percent(most / limit)})`,
    ok: shared === reads && most <= 1.1 * limit,
  });
});
