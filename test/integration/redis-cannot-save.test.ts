/** A Redis that cannot save (MISCONF, its default when its disk is full): it refuses writes and PING, and answers reads. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newToken } from '../../src/keys/token.ts';
import { messageOf, readinessOf } from '../support/admin.ts';
import { runCli } from '../support/cli.ts';
import type { TestGateway } from '../support/gateway.ts';
import { forFile, forTest } from '../support/opened.ts';
import { dependency, type World, quotasAreExact, startFleet, WITHIN } from '../support/world.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { atEach, untilAll, withClient } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';
import { findRedis } from './redis-findings.ts';

const CALL = `/v2/calls/${EVALUATION_ID}`;
const FINDING =
  "cannot save to its disk (MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.): make room there, or see why in its log";
const WANTED = { name: 'n', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };

let fleet: World;
let gateway: TestGateway;
const redis = await forFile(startRedis({ config: ['enable-protected-configs yes'] }));
beforeEach(async () => {
  fleet = await forTest(startFleet(redis.url));
  fleet.store.put({ evaluations: [anEvaluation()] });
  gateway = fleet.here;
});
afterEach(async () => {
  await saveInto('dump.rdb', 'ok');
  await redis.flush();
});

/** Lets each server save into that file. `.` is a directory, which takes no file's name. */
async function saveInto(file: string, status: 'ok' | 'err'): Promise<void> {
  await atEach(redis, async (client) => {
    await client.config('SET', 'save', '3600 1000000');
    await client.config('SET', 'dbfilename', file);
    await client.bgsave();
  });
  await untilAll(redis.servers, `saving is ${status}`, (url) =>
    withClient(url, async (client) => {
      const info = await client.info('persistence');
      return info.includes('rdb_bgsave_in_progress:0') && info.includes(`rdb_last_bgsave_status:${status}`);
    }),
  );
}

async function refuse(): Promise<void> {
  await saveInto('.', 'err');
  await withClient(redis.url, async (client) => {
    await expect(client.set('more', 'x')).rejects.toThrow('MISCONF');
  });
}

test('keys are looked up, limits fall back, and /readyz says what it is and what to do', async () => {
  const known = await gateway.issueKey();
  const other = await gateway.issueKey();
  expect((await gateway.get(CALL, { key: known })).status).toBe(200);
  await refuse();
  const keys = [known, other, newToken()];
  const replies = await Promise.all(keys.map((key) => gateway.get(CALL, { key })));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 401]);
  const said = `degraded: Redis ${FINDING}; limits are per process; changes fail`;
  await vi.waitFor(async () => expect(await dependency(gateway, 'redis-state')).toBe(said), WITHIN);
  expect(await dependency(gateway, 'quota')).toMatch(/^degraded: Redis does not decide/);
  expect(await dependency(gateway, 'keys')).toContain('keys that are known stay good');
  expect((await readinessOf(gateway)).status).toBe('ready');
});

test("the doctor has Redis's own words", async () => {
  await refuse();
  const { lines, found } = await findRedis({ REDIS_URL: redis.url });
  expect(lines.join('\n')).toMatch(
    /^fail redis REDIS_URL: refuses a command that a gateway needs \(MISCONF Redis is /m,
  );
  expect(found.map(({ advice }) => advice)).toContain('It cannot save to its disk; its log says why.');
});

test('a gateway that is started then becomes ready, and lets keys in', async () => {
  const key = await gateway.issueKey();
  await refuse();
  const late = await fleet.join();
  await vi.waitFor(async () => expect((await readinessOf(late)).status).toBe('ready'), WITHIN);
  expect((await late.get(CALL, { key })).status).toBe(200);
});

test('changes are refused with the reason, and work again once it can save', async () => {
  const key = await gateway.issueKey();
  await refuse();
  const refused = await gateway.admin('POST', '/api/keys', WANTED);
  expect([refused.status, messageOf(refused)]).toEqual([
    503,
    `Redis ${FINDING}, so the change was not made. GET /readyz tells which dependency is down; repeat the change when it is back.`,
  ]);
  const cli = await runCli(['keys', 'list', '--admin', gateway.adminUrl]);
  expect([cli.status, cli.stderr]).toEqual([0, '']);
  await saveInto('dump.rdb', 'ok');
  expect((await gateway.get(CALL, { key })).status).toBe(200);
  await quotasAreExact(gateway);
  expect((await gateway.admin('POST', '/api/keys', WANTED)).status).toBe(201);
});
