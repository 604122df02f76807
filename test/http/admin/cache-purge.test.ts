import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../../support/opened.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { aTranscript, anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';
import { auditOf, faults, messageOf, START, TOKENS } from '../../support/admin.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: TOKENS }));
});

const purge = (body: unknown) => gateway.admin('POST', '/api/cache/purge', body);

const TAG_FORM =
  'all, class:NAME (one of list, evaluation, transcript, scorecard, rubric, dealInsights, notFound), workspace:UUID, evaluation:ID or scorecard:ID (an ID is 1 to 64 characters of A-Z, a-z, 0-9, _ and -)';

const listOf = (workspaceId: string): string => `/v1/workspaces/${workspaceId}/reports`;
const LIST = listOf(WORKSPACE_A);
const REPORT = `${LIST}/ev_1`;

/** A gateway with an evaluation in each of two workspaces, and a way to read any path of both. */
async function start() {
  gateway.store.put({
    evaluations: [anEvaluation(), anEvaluation({ _id: 'ev_2', workspaceId: WORKSPACE_B })],
    transcripts: [aTranscript()],
  });
  const key = await gateway.issueKey({ workspaceIds: [WORKSPACE_A, WORKSPACE_B] });
  const read = async (path: string): Promise<string> => {
    const reply = await gateway.get(path, { key });
    return `${reply.status} ${String(reply.headers['cache-status'])}`;
  };
  return { store: gateway.store, read };
}

const SOME_BYTES: unknown = expect.any(Number);
const MISS = '200 evalgate; fwd=uri-miss; stored';
const HIT: unknown = expect.stringMatching(/^200 evalgate; hit; ttl=\d+$/);

describe('a purge', () => {
  test('hard, the default: the next reader waits for the store, and what has another tag stays', async () => {
    const { store, read } = await start();
    expect([await read(LIST), await read(listOf(WORKSPACE_B))]).toEqual([MISS, MISS]);
    expect([await read(LIST), store.calls('list')]).toEqual([HIT, 2]);

    const reply = await purge({ tags: [`workspace:${WORKSPACE_A.toUpperCase()}`] });
    expect([reply.status, reply.json]).toEqual([
      200,
      {
        // The list, and the evaluation that it seeded.
        entries: 2,
        bytes: SOME_BYTES,
        complete: true,
        lists: null,
        tags: [`workspace:${WORKSPACE_A}`, 'class:notFound'],
        mode: 'hard',
        exact: false,
        dryRun: false,
        deleted: true,
        problem: null,
        purge: 1,
      },
    ]);
    expect([await read(LIST), store.calls('list')]).toEqual([MISS, 3]);
    expect([await read(listOf(WORKSPACE_B)), store.calls('list')]).toEqual([HIT, 3]);
  });

  test('C6: of an evaluation takes along its parts and the lists that may hold it', async () => {
    const { store, read } = await start();
    for (const path of [LIST, listOf(WORKSPACE_B), REPORT, `${REPORT}/transcript`]) await read(path);
    const before = store.calls();
    expect((await purge({ tags: ['evaluation:ev_1'] })).json).toMatchObject({
      entries: 3,
      lists: { entries: 1, workspaces: 1, ownerKnown: true },
      tags: ['evaluation:ev_1', `lists-of:${WORKSPACE_A}`],
    });
    expect(await read(listOf(WORKSPACE_B))).toEqual(HIT);
    expect([await read(REPORT), await read(`${REPORT}/transcript`), await read(LIST)]).toEqual([MISS, MISS, MISS]);
    expect(store.calls() - before).toBe(3);
  });

  test('C6: of an evaluation that no copy knows takes along all lists, and says so', async () => {
    const { read } = await start();
    for (const path of [LIST, listOf(WORKSPACE_B)]) await read(path);
    expect((await purge({ tags: ['evaluation:unknown'], dryRun: true })).json).toMatchObject({
      entries: 2,
      lists: { entries: 2, workspaces: 2, ownerKnown: false },
      tags: ['evaluation:unknown', 'class:list'],
    });
  });

  test('C6: exact takes nothing along', async () => {
    const { store, read } = await start();
    for (const path of [LIST, REPORT, `${LIST}/none`]) await read(path);
    const before = store.calls();
    const tags = ['evaluation:ev_1', `workspace:${WORKSPACE_B}`];
    const json = { entries: 1, lists: null, tags, exact: true };
    for (const dryRun of [true, false]) {
      expect((await purge({ tags, exact: true, dryRun })).json).toMatchObject({ ...json, dryRun });
    }
    expect([await read(LIST), store.calls() - before]).toEqual([HIT, 0]);
    expect([await read(REPORT), store.calls() - before]).toEqual([MISS, 1]);
    expect([(await read(`${LIST}/none`)).slice(0, 3), store.calls() - before]).toEqual(['404', 1]);
    expect((await auditOf(gateway))[0]).toMatchObject({ to: { mode: 'hard', exact: true, entries: 1, tags } });
  });

  test('all: nothing is left, and a second one finds nothing', async () => {
    const { store, read } = await start();
    await read(LIST);
    await read(`${LIST}/none`);
    const first = await purge({ tags: ['all', 'all'] });
    expect(first.json).toMatchObject({ entries: 3, tags: ['all'] });
    expect((await purge({ tags: ['all'] })).json).toMatchObject({ entries: 0, bytes: 0 });
    expect(await read(LIST)).toBe(MISS);
    expect(store.calls('list')).toBe(2);
  });

  test('dry: tells what the same purge then does, changes nothing, and is not audited', async () => {
    const { store, read } = await start();
    await read(LIST);
    const before = await auditOf(gateway);
    const { memory } = z
      .object({ memory: z.object({ bytes: z.number().positive() }) })
      .parse((await gateway.admin('GET', '/api/cache')).json);
    const dry = await purge({ tags: ['all'], dryRun: true });
    expect(dry.json).toMatchObject({ entries: 2, bytes: memory.bytes, tags: ['all'], mode: 'hard', dryRun: true });
    expect([await read(LIST), store.calls('list')]).toEqual([HIT, 1]);
    expect(await auditOf(gateway)).toEqual(before);
    const wet = await purge({ tags: ['all'] });
    expect(wet.json).toMatchObject({ entries: 2, bytes: memory.bytes, dryRun: false });
    expect(await auditOf(gateway)).toHaveLength(before.length + 1);
  });
});

describe('the audit', () => {
  test('has who purged which tags, how, and how much that was', async () => {
    const tags = ['class:list', `workspace:${WORKSPACE_A}`];
    const purged = ['class:list', `workspace:${WORKSPACE_A}`, 'class:notFound'];
    const reply = await purge({ tags, mode: 'soft' });
    expect([reply.status, reply.json]).toMatchObject([200, { mode: 'soft', tags: purged }]);
    expect(await auditOf(gateway)).toEqual([
      {
        at: START,
        who: 'alice',
        action: 'cache.purge',
        target: 'cache',
        from: null,
        to: { mode: 'soft', entries: 0, bytes: 0, tagCount: 3, tags: purged },
      },
    ]);
  });

  test('keeps a hundred tags of a purge and how many there were', async () => {
    const tags = Array.from({ length: 1000 }, (_, index) => `scorecard:sc_${index}`);
    expect((await purge({ tags })).json).toMatchObject({ tags });
    expect(await auditOf(gateway)).toMatchObject([{ to: { tagCount: 1000, tags: tags.slice(0, 100) } }]);
  });
});

describe('refusals', () => {
  test.each([
    [{ tags: [] }, ['tags: given an array of 0; allowed: an array of 1 to 1000 tags']],
    [{}, ['tags: missing; allowed: an array of 1 to 1000 tags']],
    [{ tags: 'all' }, ['tags: given "all"; allowed: an array of 1 to 1000 tags']],
    [
      { tags: Array.from({ length: 1001 }, () => 'all') },
      ['tags: given an array of 1001; allowed: an array of 1 to 1000 tags'],
    ],
    [
      {
        tags: ['class:lists', 'all', 'workspace:ev_1', `lists-of:${WORKSPACE_A}`, 7],
        mode: 'medium',
        exact: 1,
        dryRun: 'yes',
        tag: 'all',
      },
      [
        `tags[0]: given "class:lists"; allowed: ${TAG_FORM}`,
        `tags[2]: given "workspace:ev_1"; allowed: ${TAG_FORM}`,
        `tags[3]: given "lists-of:${WORKSPACE_A}"; allowed: ${TAG_FORM}`,
        `tags[4]: given 7; allowed: ${TAG_FORM}`,
        'mode: given "medium"; allowed: hard (the default: it is removed) or soft (it is stale, and served while it is refreshed)',
        'exact: given 1; allowed: true (only these tags) or false (the default: also the lists that may hold a purged evaluation)',
        'dryRun: given "yes"; allowed: true or false (the default)',
        'tag: unknown; allowed members: tags, mode, exact, dryRun',
      ],
    ],
  ])('%j: each fault is listed, and nothing is purged', async (body, lines) => {
    const answer = await purge(body);
    expect([answer.status, messageOf(answer)]).toEqual([400, faults(...lines)]);
    expect(await auditOf(gateway)).toEqual([]);
  });
});
