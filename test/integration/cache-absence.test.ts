/**
 * K7a: an id that the store does not have and a record of a workspace that the reader may not see are absent in the same
 * way, at every gateway, for as long, and to every set of workspaces by itself.
 */
import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { GET_CALL, GET_CALL_TRANSCRIPT, GET_RUBRIC, LIST_CALLS, type EndpointRow } from '../http/common/endpoints.ts';
import { uncountedHeaders } from '../http/common/headers.ts';
import { keyFor, newSubject, putSubject, type Subject } from '../http/common/subject.ts';
import { BACKENDS, World, containing, HIT, MISS } from '../support/world.ts';
import type { TestGateway } from '../support/gateway.ts';
import { anEvaluation } from '../support/records.ts';

const SECOND = 1000;
const NOT_FOUND_MS = 15 * SECOND;

let world: World;

/** Somebody who may see workspaces of their own only. */
async function createProber(workspaceIds: readonly string[] = [randomUUID()]) {
  const key = await keyFor(world.here, { workspaceId: '' }, { workspaceIds });
  /** All that can be told of one read: the answer, and how many calls to the store it took. */
  const probe = async (endpoint: EndpointRow, subject: Subject, gateway: TestGateway): Promise<unknown> => {
    const before = world.store.calls();
    const reply = await gateway.get(endpoint.path(subject), { key });
    return {
      status: reply.status,
      text: reply.text,
      headers: uncountedHeaders(reply),
      calls: world.store.calls() - before,
    };
  };
  return { probe, key };
}

/** An id that the store doesn't have, a record of others that nobody has read, and one that its owner has at each gateway. */
async function createKinds(endpoint: EndpointRow): Promise<readonly (readonly [string, Subject])[]> {
  const owner = await world.reader(endpoint);
  for (const gateway of world.gateways) expect((await owner.ask(gateway)).status).toBe(200);
  return [
    ['made up', newSubject()],
    ['foreign', putSubject(world.store)],
    ['foreign, and cached for its owner', owner.subject],
  ];
}

describe.each(BACKENDS)('%s', (kind) => {
  beforeAll(async () => {
    world = await World.start(kind);
    return () => world.close();
  });
  beforeEach(() => world.clock.advance(SECOND));

  test.each([GET_CALL, GET_CALL_TRANSCRIPT, GET_RUBRIC])(
    'one call for all gateways within the times of notFound, and one after them: $name',
    async (endpoint) => {
      for (const [, subject] of await createKinds(endpoint)) {
        const { probe } = await createProber();
        const first = await probe(endpoint, subject, world.here);
        expect(first).toMatchObject({ status: 404, text: endpoint.notFound, calls: 1 });
        for (const gateway of [world.there, world.here, world.there]) {
          expect(await probe(endpoint, subject, gateway)).toEqual({ ...Object(first), calls: 0 });
        }
        world.clock.advance(NOT_FOUND_MS);
        expect(await probe(endpoint, subject, world.there)).toEqual(first);
        expect(await probe(endpoint, subject, world.here)).toEqual({ ...Object(first), calls: 0 });
      }
    },
  );

  test('each set of workspaces asks for itself, at every gateway', async () => {
    const shared = randomUUID();
    for (const [, subject] of await createKinds(GET_CALL)) {
      const probers = [await createProber([shared]), await createProber([randomUUID()]), await createProber([shared])];
      const calls: unknown[] = [];
      for (const gateway of [world.here, world.there]) {
        for (const { probe } of probers) calls.push(await probe(GET_CALL, subject, gateway));
      }
      expect(calls).toMatchObject([1, 1, 0, 0, 0, 0].map((count) => ({ status: 404, calls: count })));
    }
  });

  test('C10: readers of several sets at once pay a call each, whatever they ask for, and remember it alike', async () => {
    for (const [, subject] of await createKinds(GET_CALL)) {
      const probers = [await createProber(), await createProber(), await createProber([randomUUID(), randomUUID()])];
      const hold = world.store.hold(new RegExp(subject.id));
      const asked = probers.map(({ probe }, i) =>
        probe(GET_CALL, subject, world.gateways[i % world.gateways.length] ?? world.here),
      );
      await world.eventually(() => expect(hold.answers).toHaveLength(3));
      hold.release();
      expect(await Promise.all(asked)).toMatchObject(probers.map(() => ({ status: 404 })));
      for (const gateway of world.gateways) {
        for (const { probe } of probers) {
          await world.eventually(async () =>
            expect(await probe(GET_CALL, subject, gateway)).toMatchObject({ status: 404, calls: 0 }),
          );
        }
      }
    }
  });

  test('K7a: sets whose answers come in another order than they asked each remember it, at every gateway', async () => {
    for (const [, subject] of await createKinds(GET_CALL)) {
      const probers = [await createProber(), await createProber()];
      const hold = world.store.hold(new RegExp(subject.id));
      const asked: Promise<unknown>[] = [];
      for (const { probe } of probers) {
        asked.push(probe(GET_CALL, subject, world.here));
        await world.eventually(() => expect(hold.answers).toHaveLength(asked.length));
        world.clock.advance(1);
      }
      hold.answers[1]?.send();
      await asked[1];
      hold.release();
      await asked[0];
      for (const gateway of [world.there, world.here]) {
        for (const { probe } of probers) {
          expect(await probe(GET_CALL, subject, gateway)).toMatchObject({ status: 404, calls: 0 });
        }
      }
    }
  });

  test.each([
    ['the evaluation', (subject: Subject, _own: string) => `evaluation:${subject.id}`],
    ['its workspace', (subject: Subject, _own: string) => `workspace:${subject.workspaceId}`],
    ["the prober's workspace", (_subject: Subject, own: string) => `workspace:${own}`],
    ['the class', () => 'class:notFound'],
  ])('C6: a purge of %s ends it for both', async (_what, tagOf) => {
    for (const [, subject] of await createKinds(GET_CALL)) {
      const own = randomUUID();
      const { probe } = await createProber([own]);
      for (const gateway of world.gateways) await probe(GET_CALL, subject, gateway);
      await world.purge([tagOf(subject, own)]);
      world.clock.advance(1);
      expect(await probe(GET_CALL, subject, world.there)).toMatchObject({ status: 404, calls: 1 });
      expect(await probe(GET_CALL, subject, world.here)).toMatchObject({ status: 404, calls: 0 });
    }
  });

  test('a purge of a scorecard that only a foreign record refers to is none of what the reader waits for', async () => {
    for (const [, subject] of await createKinds(GET_CALL)) {
      const own = [randomUUID()];
      const [first, second] = [await createProber(own), await createProber(own)];
      const hold = world.store.hold();
      const before = world.store.calls();
      const leading = first.probe(GET_CALL, subject, world.here);
      await world.eventually(() => expect(hold.answers).toHaveLength(1));
      const tags = [`scorecard:${subject.scorecardId}`];
      await world.change('POST', '/api/cache/purge', { tags });
      const joining = second.probe(GET_CALL, subject, world.here);
      await world.here.get('/v2/calls?page=0', { key: second.key });
      hold.release();
      expect(await Promise.all([leading, joining])).toMatchObject([{ status: 404 }, { status: 404 }]);
      expect(world.store.calls() - before).toBe(1);
    }
  });

  test('C10, K7a: who may not see a record is answered by a call of its own, while its owner still waits', async () => {
    for (const gateway of world.gateways) {
      const subject = putSubject(world.store);
      const owner = await world.readerOf(GET_CALL, subject);
      const { probe } = await createProber();
      const hold = world.store.hold(new RegExp(subject.id));
      const reading = owner.ask(gateway);
      await world.eventually(() => expect(hold.answers).toHaveLength(1));
      const probing = probe(GET_CALL, subject, world.here);
      await world.eventually(() => expect(hold.answers).toHaveLength(2));
      hold.answers[1]?.send();
      expect(await probing).toMatchObject({ status: 404, text: GET_CALL.notFound, calls: 1 });
      hold.release();
      expect(await reading).toMatchObject({ status: 200, cache: MISS });
      expect(await probe(GET_CALL, subject, world.here)).toMatchObject({ status: 404, calls: 0 });
    }
  });

  test('C10: a copy is renewed once for all sets of workspaces that may see it', async () => {
    const owner = await world.reader(GET_CALL);
    const { workspaceId } = owner.subject;
    const sets = [[workspaceId], [workspaceId, randomUUID()], [workspaceId, randomUUID()]];
    const keys = await Promise.all(sets.map((workspaceIds) => world.here.issueKey({ workspaceIds })));
    for (const gateway of world.gateways) await owner.ask(gateway);
    world.clock.advance(20 * 60 * SECOND);
    const hold = world.store.hold(new RegExp(owner.subject.id));
    for (const gateway of world.gateways) {
      for (const key of keys) expect((await gateway.get(owner.path, { key })).status).toBe(200);
    }
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    hold.release();
    await world.everywhere(async (gateway) => expect((await owner.ask(gateway)).cache).toEqual(HIT));
    expect(owner.calls()).toBe(2);
  });

  test.each([
    ['of a malformed record', 404],
    ['of the store', 500],
  ])('K7a: the failure %s, while others wait for it, is answered as by a call of their own', async (_what, status) => {
    for (const gateway of world.gateways) {
      const subject = putSubject(world.store);
      if (status === 404) {
        world.store.evaluations.set(subject.id, { ...anEvaluation({ _id: subject.id }), ...subject, title: null });
      }
      const owner = await world.readerOf(GET_CALL, subject);
      const { probe } = await createProber();
      const recover = status === 500 ? world.store.fail(500) : () => {};
      const hold = world.store.hold(new RegExp(subject.id));
      const reading = owner.ask(gateway);
      await world.eventually(() => expect(hold.answers).toHaveLength(1));
      const probing = probe(GET_CALL, subject, world.here);
      await world.eventually(() => expect(hold.answers).toHaveLength(2));
      hold.release();
      expect(await reading).toMatchObject({ status: 500 });
      expect(await probing).toMatchObject({ status, calls: 1 });
      for (const again of world.gateways) {
        await world.eventually(async () =>
          expect(await probe(GET_CALL, subject, again)).toMatchObject({ status, calls: 0 }),
        );
      }
      recover();
      world.clock.advance(SECOND);
    }
  });

  test('K7a: the failure of a call for others spares nobody the call for a record that is not theirs', async () => {
    const malformed = putSubject(world.store);
    world.store.evaluations.set(malformed.id, { ...anEvaluation({ _id: malformed.id }), ...malformed, title: null });
    const owner = await world.readerOf(GET_CALL, malformed);
    for (const gateway of world.gateways) expect((await owner.ask(gateway)).status).toBe(500);
    expect(owner.calls()).toBe(1);
    for (const subject of [newSubject(), malformed]) {
      const { probe } = await createProber();
      expect(await probe(GET_CALL, subject, world.there)).toMatchObject({ status: 404, calls: 1 });
      expect(await probe(GET_CALL, subject, world.here)).toMatchObject({ status: 404, calls: 0 });
    }
  });

  test('a record that comes to be is there at once for who has read its list, and after 15 s for the rest', async () => {
    const subject = newSubject();
    const single = await world.readerOf(GET_CALL, subject);
    for (const gateway of world.gateways) expect((await single.ask(gateway)).status).toBe(404);
    world.clock.advance(SECOND);
    putSubject(world.store, subject);
    const list = await world.readerOf(LIST_CALLS, subject);
    expect((await list.ask(world.here)).text).toContain(subject.id);
    expect(await single.ask(world.here)).toMatchObject({ status: 200, cache: HIT });
    world.clock.advance(NOT_FOUND_MS);
    expect(await single.ask(world.there)).toMatchObject({ status: 200, text: containing(subject.id) });
    expect(single.calls()).toBe(1);
  });

  test('a record that has moved to the reader is there after 15 s, and at once if its new owner has read it', async () => {
    const theirs = putSubject(world.store);
    const mine = { ...theirs, workspaceId: randomUUID() };
    const [reader, colleague] = [await world.readerOf(GET_CALL, mine), await world.readerOf(GET_CALL, mine)];
    expect((await reader.ask(world.here)).status).toBe(404);
    world.clock.advance(SECOND);
    putSubject(world.store, mine);
    const both = await keyFor(world.here, mine, { workspaceIds: [mine.workspaceId, randomUUID()] });
    expect((await world.there.get(reader.path, { key: both })).status).toBe(200);
    await world.everywhere(async (gateway) =>
      expect(await colleague.ask(gateway)).toMatchObject({ status: 200, cache: HIT }),
    );
  });
});
