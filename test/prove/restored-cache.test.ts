/**
 * A cache Redis of its own that goes back to an older state, again and again: what has left its workspace since is served to
 * none of its old readers, by no process, old or new. PROVE_ROUNDS makes it fewer.
 */
import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { Fleet } from '../support/fleet.ts';
import { forTest } from '../support/opened.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { withClient } from '../support/redis/client.ts';
import { launchRedis, onHost } from '../support/redis/server.ts';
import { redisSource } from '../support/redis/source.ts';
import { sendJson } from '../support/store-server.ts';
import { WITHIN } from '../support/world.ts';
import { count, prove } from './bar.ts';

const ROUNDS = Number(process.env['PROVE_ROUNDS'] ?? 4);
const RECORDS = 40;
const PER_SECOND = 200;
/** A copy is stale at once, and would be served while it is renewed. */
const TIMES = { CACHE_EVALUATION_FRESH: '100ms', CACHE_EVALUATION_STALE: '1h', CACHE_NOT_FOUND_FRESH: '100ms' };

test('records that have moved, before their old copies come back', async (context) => {
  const cache = await forTest(onHost(await redisSource(), 1, (host, [port = 0]) => launchRedis(host, port)));
  const fleet = await forTest(
    Fleet.start({ gateways: 2, redis: {}, env: { ...TIMES, REDIS_CACHE_URL: cache.url, LOG_LEVEL: 'error' } }),
  );
  const elsewhere = randomUUID();
  const moved = new Set<string>();
  fleet.store.server.override(/\/evaluations\/mover_/, (request, response) => {
    const id = request.url?.split('/').at(-1) ?? '';
    sendJson(request, response, anEvaluation({ _id: id, workspaceId: moved.has(id) ? elsewhere : WORKSPACE_A }));
  });
  const key = await fleet.first.issueKey();
  const load = await fleet.load();
  let [back, asked] = [0, 0];
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = Array.from({ length: RECORDS }, (_, index) => `mover_${round}_${index}`);
    const paths = ids.map((id) => `/v2/calls/${id}`);
    const targets = fleet.targets(paths, key);
    await load.run(targets, { perSecond: PER_SECOND, forMs: 1500 });
    await withClient(cache.url, (client) => client.call('SAVE'));
    for (const id of ids) moved.add(id);
    // The others know of it only by the journal: they have no newer answer in memory.
    const atFirst = targets.filter(({ url }) => url.startsWith(fleet.first.publicUrl));
    await load.run(atFirst, { perSecond: PER_SECOND, forMs: 2000 });
    // No reads happen meanwhile, and one process has heard of nothing: else each would know better from the store, or the journal.
    await cache.restart();
    await fleet.add({});
    for (const gateway of fleet.gateways) {
      await vi.waitFor(async () => {
        const { dependencies } = await gateway.readiness();
        expect(dependencies.find(({ name }) => name === 'redis-cache')).toMatchObject({ status: 'ok' });
      }, WITHIN);
    }
    // While the store fails, a copy is all that anybody could get.
    const recover = fleet.store.server.fail(503);
    const samples = await load.run(fleet.targets(paths, key), { perSecond: PER_SECOND, forMs: 2000 });
    recover();
    asked += samples.length;
    back += samples.filter(({ status }) => status === 200).length;
  }
  const lines = fleet.gateways.flatMap(({ log }) => log);
  const noticed = lines.filter((line) => line.includes('has gone back to an older state')).length;
  prove(context, {
    name: `restored cache: ${ROUNDS} restarts from an older snapshot`,
    bar: 'no record that has moved is served to its old readers; each return is noticed, by at least one process',
    measured: `${count(back)} of ${count(asked)} reads got a record that had moved; noticed ${noticed} times`,
    ok: back === 0 && noticed >= ROUNDS,
  });
}, 600_000);
