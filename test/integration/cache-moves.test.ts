/**
 * C4: nothing outlives what the store says. A record that has moved to another workspace is gone for its old readers as soon
 * as an answer says so, at every gateway, whoever of them asked; and there for its new ones.
 */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { GET_CALL, GET_CALL_TRANSCRIPT, GET_RUBRIC, type EndpointRow } from '../http/common/endpoints.ts';
import { keyFor, newSubject, putSubject, type Subject } from '../http/common/subject.ts';
import { BACKENDS, World } from '../support/world.ts';

const MINUTE = 60_000;
const NOT_FOUND_MS = 15_000;
/** Past the stale time of the class, and within its error time. */
const onlyOnErrorMs = ({ resource }: EndpointRow): number => (resource === 'transcript' ? 26 : 20) * 60 * MINUTE;

let world: World;

/** A record in the store, with a reader of the workspace that it is in, of the one that it moves to, and of the first and a third. */
async function createMover(endpoint: EndpointRow) {
  const inA = putSubject(world.store);
  const inB = { ...inA, workspaceId: randomUUID() };
  const keys = {
    a: await keyFor(world.here, inA),
    b: await keyFor(world.here, inB),
    ac: await keyFor(world.here, inA, { workspaceIds: [inA.workspaceId, randomUUID()] }),
  };
  const ask = async (who: keyof typeof keys, gateway = world.here) => {
    const { status } = await gateway.get(endpoint.path(inA), { key: keys[who] });
    return { status };
  };
  return { inA, inB, ask };
}

function move(to: Subject): void {
  world.clock.advance(1);
  putSubject(world.store, to);
}

describe.each(BACKENDS)('%s', (kind) => {
  beforeAll(async () => {
    world = await World.start(kind);
    return () => world.close();
  });

  describe.each([GET_CALL, GET_CALL_TRANSCRIPT, GET_RUBRIC])('$name', (endpoint) => {
    const expiredMs = onlyOnErrorMs(endpoint);

    test.each([
      ['its old reader', 'a', 404],
      ['a reader of its old workspace and a third', 'ac', 404],
    ] as const)('an answer to %s ends it for all of them', async (_who, who, status) => {
      const { inB, ask } = await createMover(endpoint);
      for (const gateway of world.gateways) expect(await ask('a', gateway)).toMatchObject({ status: 200 });
      world.clock.advance(expiredMs);
      move(inB);
      expect(await ask(who)).toMatchObject({ status });
      const recover = world.store.fail(503);
      // A reader who has not asked yet has no copy left to be served.
      await world.everywhere(async (gateway) => {
        for (const old of ['a', 'ac'] as const) expect((await ask(old, gateway)).status).not.toBe(200);
      });
      recover();
      await world.everywhere(async (gateway) => {
        // A failure is remembered for a second, in Redis by its own clock.
        world.clock.advance(NOT_FOUND_MS);
        for (const old of ['a', 'ac'] as const) expect(await ask(old, gateway)).toMatchObject({ status: 404 });
        expect(await ask('b', gateway)).toMatchObject({ status: 200 });
      });
    });

    test('moved back, it is gone for the others, and there again', async () => {
      const { inA, inB, ask } = await createMover(endpoint);
      expect(await ask('a')).toMatchObject({ status: 200 });
      for (const [to, newOne, oldOne] of [
        [inB, 'b', 'a'],
        [inA, 'a', 'b'],
      ] as const) {
        world.clock.advance(expiredMs);
        move(to);
        for (const gateway of world.gateways) expect(await ask(oldOne, gateway)).toMatchObject({ status: 404 });
        world.clock.advance(1);
        const [first, ...others] = world.gateways;
        expect(await ask(newOne, first)).toMatchObject({ status: 200 });
        for (const gateway of others) expect(await ask(newOne, gateway)).toMatchObject({ status: 200 });
        await world.everywhere(async (gateway) => expect(await ask(oldOne, gateway)).toMatchObject({ status: 404 }));
      }
    });

    test('a refresh behind a stale copy ends it too', async () => {
      const { inB, ask } = await createMover(endpoint);
      for (const gateway of world.gateways) expect(await ask('a', gateway)).toMatchObject({ status: 200 });
      world.clock.advance(endpoint === GET_CALL_TRANSCRIPT ? 2 * 60 * MINUTE : 20 * MINUTE);
      move(inB);
      expect(await ask('a')).toMatchObject({ status: 200 });
      await world.everywhere(async (gateway) => expect(await ask('a', gateway)).toMatchObject({ status: 404 }));
    });
  });

  test.runIf(kind === 'redis')('a copy that Redis has evicted ends in the memory of all', async () => {
    const { inA, inB, ask } = await createMover(GET_CALL);
    expect(await ask('a', world.there)).toMatchObject({ status: 200 });
    const raw = await world.raw();
    for (const name of await world.names(`*${inA.id}*`)) await raw.del(name);
    move(inB);
    expect(await ask('ac')).toMatchObject({ status: 404 });
    await world.eventually(async () => expect(await ask('a', world.there)).toMatchObject({ status: 404 }));
  });

  test('what an owner holds is not touched by who the store says it is not of', async () => {
    const subject = putSubject(world.store);
    const owner = await world.readerOf(GET_CALL, subject);
    for (const gateway of world.gateways) expect(await owner.ask(gateway)).toMatchObject({ status: 200 });
    world.clock.advance(MINUTE);
    const stranger = await keyFor(world.here, newSubject());
    expect(await world.here.get(owner.path, { key: stranger })).toMatchObject({ status: 404 });
    const recover = world.store.fail(503);
    for (const gateway of world.gateways) expect(await owner.ask(gateway)).toMatchObject({ status: 200 });
    recover();
    expect(owner.calls()).toBe(2);
  });
});
