/**
 * 200 calls, their transcripts and their scorecards change at once, and nobody announces it. Two gateways over one Redis, with the
 * default times: a consumer that has seen the changes in the list reads the parts, at either of them.
 */
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import { z } from 'zod';
import { keyFor } from '../http/common/subject.ts';
import { forTest } from '../support/opened.ts';
import { anEvaluation, aScoredCard, aTranscript } from '../support/records.ts';
import { World } from '../support/world.ts';
import { count, prove } from './bar.ts';

const CALLS = 200;
const PAGES = [1, 2] as const;
const LIST_FRESH_MS = 30_000;

const pageSchema = z.object({ calls: z.array(z.object({ id: z.string(), name: z.string() })) });

/** The store holds that version of all calls of the workspace, and of their parts. */
function put(world: World, workspaceId: string, version: string): void {
  const ids = Array.from({ length: CALLS }, (_, n) => `ev_${n}`);
  world.store.put({
    evaluations: ids.map((id, n) => anEvaluation({ _id: id, workspaceId, title: version, createdAtMs: 1e12 + n })),
    transcripts: ids.map((evaluationId) => aTranscript({ evaluationId, workspaceId, body: `Ann: ${version}` })),
    scoredCards: ids.map((evaluationId) =>
      aScoredCard({ evaluationId, workspaceId, scorecard: { name: version, sections: [] } }),
    ),
  });
}

/** Gateways, and a consumer that reads at both of them in turn. */
async function createConsumer() {
  const world = await forTest(World.start('redis'));
  const workspaceId = randomUUID();
  const key = await keyFor(world.here, { workspaceId });
  let reads = 0;
  const read = async (path: string): Promise<string> => {
    reads += 1;
    return (await world.gateway(reads).get(path, { key })).text;
  };
  /** The calls that the list shows with that version. */
  const listed = async (version: string): Promise<readonly string[]> => {
    const pages = await Promise.all(PAGES.map((page) => read(`/v2/calls?pageSize=100&page=${page}`)));
    const calls = pages.flatMap((page) => pageSchema.parse(JSON.parse(page)).calls);
    return calls.filter(({ name }) => name === version).map(({ id }) => id);
  };
  /** How many of both parts of these calls are of that version. */
  const readParts = async (ids: readonly string[], version: string): Promise<number> => {
    let fresh = 0;
    for (const id of ids) {
      for (const part of ['transcript', 'scorecard']) {
        if ((await read(`/v2/calls/${id}/${part}`)).includes(version)) fresh += 1;
      }
    }
    return fresh;
  };
  const partCalls = (): number => world.store.calls('transcript') + world.store.calls('scorecard');
  return { world, workspaceId, listed, readParts, partCalls };
}

test('200 edits that nobody announces', async (context) => {
  const { world, workspaceId, listed, readParts, partCalls } = await createConsumer();
  put(world, workspaceId, 'first');
  const all = await listed('first');
  // Each gateway has them all in memory.
  for (let gateway = 0; gateway < world.gateways.length; gateway += 1) {
    await readParts(all, 'first');
    await listed('first');
  }
  const cold = partCalls();
  // The lists are refreshed several times, and nothing has changed.
  for (let round = 0; round < 3; round += 1) {
    world.clock.advance(LIST_FRESH_MS);
    for (let turn = 0; turn < 4; turn += 1) await listed('first');
    await readParts(all, 'first');
  }
  const unchanged = partCalls() - cold;
  put(world, workspaceId, 'second');
  world.clock.advance(LIST_FRESH_MS);
  const seen = new Set<string>();
  let fresh = 0;
  while (seen.size < CALLS) {
    const news = (await listed('second')).filter((id) => !seen.has(id));
    for (const id of news) seen.add(id);
    fresh += await readParts(news, 'second');
  }
  const renewals = partCalls() - cold - unchanged;
  prove(
    context,
    {
      name: 'changes that nobody announces',
      bar: `${count(CALLS)} calls with both parts edited: who has seen it in the list reads only new parts, at either of ${world.gateways.length} gateways`,
      measured: `${count(fresh)} of ${count(2 * CALLS)} parts new`,
      ok: fresh === 2 * CALLS,
    },
    {
      name: 'changes that nobody announces: cost',
      bar: 'one call to the store per part that is read again; none without a change',
      measured: `${count(renewals)} calls for ${count(2 * CALLS)} parts; ${count(unchanged)} without a change`,
      ok: renewals === 2 * CALLS && unchanged === 0,
    },
  );
});
