/**
 * K7a, C10: nothing that a consumer can see or count tells a record of others from none, whichever process is asked: not the
 * answer, not the calls to the store, not the tier that answers. Each test compares pairs of an id that the store does not have
 * and one of a workspace that the key may not see.
 */
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { GET_CALL, GET_REPORT } from '../http/common/endpoints.ts';
import { uncountedHeaders } from '../http/common/headers.ts';
import { newSubject, putSubject, type Subject } from '../http/common/subject.ts';
import { World } from '../support/world.ts';
import { cases } from '../support/cases.ts';
import { type Reply, send } from '../support/gateway.ts';
import { GatewayProcess } from '../support/process.ts';

const PAIRS = cases(6);
const UNLIMITED = { perMinute: 1_000_000_000, perHour: 1_000_000_000 };

const world = await forFile(World.start('redis'));

/** How a key of two workspaces asks: for a report of either on v1, for a call of any on v2. */
async function createProber() {
  const workspaceIds = [randomUUID(), randomUUID()] as const;
  const key = await world.here.issueKey({ workspaceIds, ...UNLIMITED });
  const paths = ({ id }: Subject) => {
    const [one, two] = workspaceIds.map((workspaceId) => GET_REPORT.path({ ...newSubject(), id, workspaceId }));
    return { one: one ?? '', two: two ?? '', both: GET_CALL.path({ ...newSubject(), id }) };
  };
  return { key, paths };
}

/** Reads by tier and outcome, of which nothing came. */
function absentReads(metrics: string): ReadonlyMap<string, number> {
  const lines = metrics.split('\n').filter((line) => line.startsWith('evalgate_cache_reads_total{class="notFound"'));
  return new Map(lines.map((line): [string, number] => [line.replace(/ \S+$/, ''), Number(line.split(' ').at(-1))]));
}

/** Runs a piece of work and counts what it adds to the counters, and to the calls that the store has got. */
async function counted(read: () => Promise<readonly string[]>, work: () => Promise<unknown>): Promise<unknown> {
  const before = (await read()).map(absentReads);
  const seen = await work();
  const after = (await read()).map(absentReads);
  const added = after.map((counts, i) =>
    [...counts].map(([name, count]) => [name, count - (before[i]?.get(name) ?? 0)]).filter(([, count]) => count !== 0),
  );
  return { seen, added };
}

const metricsOfBoth = async (): Promise<readonly string[]> =>
  Promise.all(world.gateways.map(async (gateway) => (await gateway.admin('GET', '/metrics')).text));

const visible = (reply: Reply): unknown => [reply.status, reply.text, uncountedHeaders(reply)];

test('one key of two workspaces and two processes: pairs answer, cost and are answered from the same', async () => {
  for (let pair = 0; pair < PAIRS; pair += 1) {
    const { key, paths } = await createProber();
    const owners = await world.readerOf(GET_CALL, putSubject(world.store));
    const look = (subject: Subject, between: () => Promise<unknown>): Promise<unknown> =>
      counted(metricsOfBoth, async () => {
        const { one, two, both } = paths(subject);
        const seen: unknown[] = [];
        const ask = async (gateway: typeof world.here, path: string): Promise<void> => {
          // An answer that is learned later is newer.
          world.clock.advance(1);
          const before = world.store.calls();
          const reply = await gateway.get(path, { key });
          seen.push([visible(reply), world.store.calls() - before]);
        };
        await ask(world.there, two);
        await ask(world.here, one);
        await between();
        await ask(world.there, two);
        await ask(world.there, both);
        await ask(world.here, both);
        await ask(world.here, two);
        await ask(world.there, one);
        await between();
        await ask(world.there, two);
        await ask(world.here, one);
        return seen;
      });
    const none = await look(newSubject(), () => world.here.get('/v1/key', { key }));
    expect(none).toMatchObject({ seen: { length: 9 } });
    expect(await look(putSubject(world.store), async () => {})).toEqual(none);
    // Its owner reads it, and a list with it, at either process.
    expect(await look(owners.subject, () => owners.ask(pair % 2 === 0 ? world.here : world.there))).toEqual(none);
    world.clock.advance(1000);
  }
}, 300_000);

test('WORKERS=2: what one worker learns for one set leaves the memory of the other as it is', async () => {
  const { store, redis } = world;
  const env = { REDIS_URL: redis?.url ?? '', UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, WORKERS: '2' };
  const gateway = await GatewayProcess.start({ env });
  // Opened at once, so that each worker has some; each stays with its worker.
  const connections = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const metrics = async (): Promise<readonly string[]> => [await (await fetch(`${gateway.adminUrl}/metrics`)).text()];
  try {
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const { key, paths } = await createProber();
      const seen: unknown[] = [];
      for (const subject of pair % 2 === 0 ? [newSubject(), putSubject(store)] : [putSubject(store), newSubject()]) {
        const { one, two } = paths(subject);
        const ask = (path: string, agent: Agent | undefined): Promise<Reply> =>
          send(gateway.publicUrl, { method: 'GET', path, headers: { authorization: `Bearer ${key}` }, agent });
        const askAll = (path: string): Promise<readonly Reply[]> =>
          Promise.all(connections.map((agent) => ask(path, agent)));
        // The workers that are asked below have the answer in memory.
        for (let i = 0; i < 2; i += 1) await askAll(two);
        const before = store.calls();
        seen.push(
          await counted(metrics, async () => {
            const replies = [await ask(one, connections[0]), ...(await askAll(two))];
            return [replies.map(visible), store.calls() - before];
          }),
        );
      }
      expect(seen[0]).toMatchObject({ seen: [expect.anything(), 1], added: [[expect.anything(), expect.anything()]] });
      expect(seen[1]).toEqual(seen[0]);
      expect(JSON.stringify(seen[0])).not.toContain('tier=\\"redis\\"');
    }
  } finally {
    for (const agent of connections) agent.destroy();
    await gateway.stop();
  }
}, 300_000);
