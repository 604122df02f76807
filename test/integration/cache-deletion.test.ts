/** Hard purges delete bytes at once and in the background, and their log stays short, with two gateways over one Redis. */
import { beforeEach, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { z } from 'zod';
import { LATE_MS } from '../../src/cache/purge-log.ts';
import { GET_CALL, GET_CALL_TRANSCRIPT, LIST_CALLS } from '../http/common/endpoints.ts';
import { World, containing, HIT, MISS, type Reader } from '../support/world.ts';
import { appendRaw, STATE } from '../support/journal.ts';
import type { TestClient } from '../support/redis/client.ts';
import { HurriedTimers } from '../support/hurried-timers.ts';

/** How far apart the rounds in the background are. */
const ROUND_MS = 5000;

const timers = new HurriedTimers();
const world = await forFile(World.start('redis', { timers }));
beforeEach(() => world.clock.advance(1000));

const purge = (tags: readonly string[], options = {}) =>
  world.change('POST', '/api/cache/purge', { tags, ...options }).then(({ json }) => json);
const namesOf = (id: string) => world.names(`*${id}*`);

async function readEverywhere(reader: Reader): Promise<void> {
  for (const gateway of world.gateways) await reader.ask(gateway);
}

const deletionSchema = z.object({ purges: z.number(), deletedUpTo: z.number() });

async function deletion() {
  return deletionSchema.parse((await world.here.admin('GET', '/api/cache/purge')).json);
}

/** Lets rounds in the background pass until that holds. */
async function afterRounds(check: () => Promise<void>): Promise<void> {
  await world.eventually(async () => {
    timers.elapse(ROUND_MS);
    await check();
  });
}

/** A late write of all that Redis holds now, by a process that knows no later purge. */
async function lateWrite(id: string) {
  const raw = await world.raw();
  const held = await Promise.all((await namesOf(id)).map(async (name) => [name, await raw.dumpBuffer(name)] as const));
  return async () => {
    for (const [name, content] of held) if (content !== null) await raw.restore(name, 0, content);
  };
}

test('C6: an evaluation is nowhere after its purge: its parts, its not-found entries, nor in any memory', async () => {
  const [call, absent] = [await world.reader(GET_CALL), await world.reader(GET_CALL, { isStored: false })];
  const transcript = await world.readerOf(GET_CALL_TRANSCRIPT, call.subject);
  for (const reader of [call, transcript, absent]) await readEverywhere(reader);
  const ids = [call.subject.id, absent.subject.id];
  for (const id of ids) expect(await namesOf(id)).not.toEqual([]);
  expect(await purge(ids.map((id) => `evaluation:${id}`))).toMatchObject({ deleted: true });
  for (const id of ids) expect(await namesOf(id)).toEqual([]);
  await world.everywhere(async (gateway) => {
    for (const reader of [call, transcript]) expect((await reader.explain(gateway)).memory).toBeNull();
  });
  expect((await call.explain(world.there)).next.miss).toBe('purged');
  const { purges, deletedUpTo } = await deletion();
  expect(deletedUpTo).toBe(purges);
});

/** The evaluations whose last hard purge is still remembered. */
async function evaluationsIn(raw: TestClient): Promise<readonly string[]> {
  const fields: Record<string, string> = await raw.hgetall(STATE);
  const purges = Object.entries(fields).filter(([field]) => field.startsWith('purge:evaluation:'));
  return purges.filter(([, value]) => value.split(' ')[1] !== '0').map(([field]) => field.slice('purge:'.length));
}

test('C6: a second purge still knows whose lists to take along', async () => {
  const [call, other] = [await world.reader(GET_CALL), await world.reader(LIST_CALLS)];
  for (const reader of [call, other]) await readEverywhere(reader);
  const tag = `evaluation:${call.subject.id}`;
  for (let i = 0; i < 2; i += 1) {
    expect(await purge([tag])).toMatchObject({ tags: [tag, `lists-of:${call.subject.workspaceId}`] });
  }
  expect((await other.ask(world.there)).cache).toEqual(HIT);
});

test.each([
  ['soft', 'changed'],
  ['hard', null],
] as const)('C11: a %s change is forgotten once the copies from before it bear its mark', async (mode, state) => {
  const transcript = await world.reader(GET_CALL_TRANSCRIPT);
  const { id, workspaceId } = transcript.subject;
  await readEverywhere(transcript);
  const changes = [{ evaluation: id, workspace: workspaceId }];
  await world.change('POST', '/api/changes', { mode, changes });
  const raw = await world.raw();
  const remembered = async () => Object.keys(await raw.hgetall(STATE)).filter((field) => field.startsWith('changes:'));
  expect(await remembered()).toHaveLength(1);
  timers.elapse(ROUND_MS);
  world.clock.advance(LATE_MS + 1000);
  await afterRounds(async () => expect(await remembered()).toEqual([]));
  await world.everywhere(async (gateway) => {
    const { memory, redis } = await transcript.explain(gateway);
    expect([memory?.state ?? null, redis.entry?.state ?? null]).toEqual([state, state]);
  });
  expect((await transcript.ask()).cache).toMatch(/fwd=/);
  expect((await transcript.ask(world.there)).cache).toEqual(HIT);
  expect(transcript.calls()).toBe(2);
});

test('C11: a gateway that joins later knows the changes before it', async () => {
  const [transcript, list] = [await world.reader(GET_CALL_TRANSCRIPT), await world.reader(LIST_CALLS)];
  for (const reader of [transcript, list]) await readEverywhere(reader);
  world.clock.advance(1000);
  const changes = [transcript, list].map(({ subject: { id, workspaceId } }) => ({
    evaluation: id,
    workspace: workspaceId,
  }));
  await world.change('POST', '/api/changes', { changes });
  const joined = await world.join();
  for (const reader of [transcript, list]) {
    expect((await reader.ask(joined)).cache).toBe('evalgate; fwd=stale; stored');
    expect(reader.calls()).toBe(2);
  }
  await world.leave(joined);
});

test('a soft purge and a dry run delete nothing', async () => {
  const call = await world.reader(GET_CALL);
  await readEverywhere(call);
  const tags = [`evaluation:${call.subject.id}`];
  for (const options of [{ mode: 'soft' }, { dryRun: true }]) {
    expect(await purge(tags, options)).toMatchObject({ deleted: null });
  }
  expect(await namesOf(call.subject.id)).not.toEqual([]);
});

test.each(['class:evaluation', 'the evaluation'])(
  'C6: the bytes of a purge of %s whose process is gone are deleted in the background',
  async (purged) => {
    const call = await world.reader(GET_CALL);
    await readEverywhere(call);
    const tag = purged === 'the evaluation' ? `evaluation:${call.subject.id}` : purged;
    await appendRaw(await world.raw(), { kind: 'purge', mode: 'hard', tags: [tag] });
    // The note of what was last seen of the call stays (C11): its parts do too.
    await afterRounds(async () => {
      expect((await namesOf(call.subject.id)).filter((name) => !name.endsWith(':seen'))).toEqual([]);
    });
    await world.eventually(async () => {
      const { purges, deletedUpTo } = await deletion();
      expect(deletedUpTo).toBe(purges);
    });
  },
);

test('C6: purges of evaluations leave the log, and bring nothing back: no late copy, and nobody else loses one', async () => {
  const [call, absent, kept, renewed] = [
    await world.reader(GET_CALL),
    await world.reader(GET_CALL, { isStored: false }),
    await world.reader(GET_CALL),
    await world.reader(GET_CALL),
  ];
  await world.setTimes('evaluation', { fresh: '1h' });
  await world.setTimes('notFound', { fresh: '1h' });
  for (const reader of [call, absent, kept, renewed]) await readEverywhere(reader);
  const writers = [await lateWrite(call.subject.id), await lateWrite(absent.subject.id)];
  const raw = await world.raw();
  const tags = [call, absent, renewed].map(({ subject }) => `evaluation:${subject.id}`);
  await purge(tags, { exact: true });
  for (const write of writers) await write();
  // A copy that was fetched since is nobody's old copy.
  await renewed.ask();
  timers.elapse(ROUND_MS);
  world.clock.advance(LATE_MS + 1000);
  await afterRounds(async () => expect((await evaluationsIn(raw)).filter((tag) => tags.includes(tag))).toEqual([]));
  const late = await world.join();
  for (const gateway of world.gateways) expect((await kept.ask(gateway)).cache).toEqual(HIT);
  expect((await renewed.ask(late)).cache).toEqual(HIT);
  expect((await call.ask(late)).cache).toBe(MISS);
  const before = absent.calls();
  expect((await absent.ask(late)).status).toBe(404);
  expect(absent.calls()).toBe(before + 1);
  await world.resetTimes('evaluation');
  await world.resetTimes('notFound');
});

test('C6: what else was purged stays purged after that', async () => {
  const [call, list] = [await world.reader(GET_CALL), await world.reader(LIST_CALLS)];
  for (const reader of [call, list]) await readEverywhere(reader);
  const write = await lateWrite(list.subject.workspaceId);
  await purge([`workspace:${list.subject.workspaceId}`]);
  await write();
  await purge([`evaluation:${call.subject.id}`], { mode: 'soft' });
  timers.elapse(ROUND_MS);
  world.clock.advance(LATE_MS + 1000);
  await purge(['evaluation:any'], { exact: true });
  timers.elapse(ROUND_MS);
  world.clock.advance(LATE_MS + 1000);
  const raw = await world.raw();
  await afterRounds(async () => expect(await evaluationsIn(raw)).not.toContain('evaluation:any'));
  const late = await world.join();
  expect((await list.ask(late)).cache).toEqual(containing('fwd=uri-miss'));
});
