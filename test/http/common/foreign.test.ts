/** A key learns nothing about records of workspaces that it may not see, whatever is cached, failing or broken. */
import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import type { StoreServer } from '../../support/store-server.ts';
import { type EndpointRow, GET_RUBRIC, SINGLE_READS, TABLES } from './endpoints.ts';
import { uncountedHeaders } from './headers.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway());

const MINUTE = 60_000;
/** Past the stale time of all but a transcript, and within every error time. */
const ONLY_ON_ERROR = 20 * 60 * MINUTE;
const NOT_FOUND_MS = 15_000;
/** The same for a transcript too. */
const onlyOnErrorMs = ({ resource }: EndpointRow): number =>
  resource === 'transcript' ? 26 * 60 * MINUTE : ONLY_ON_ERROR;

/** Members that make the record of any endpoint malformed. */
function broken({ resource }: EndpointRow): Readonly<Record<string, unknown>> {
  return resource === 'scorecard' ? { coachingPlan: 7 } : { title: 7, body: 7, insights: 7, rubric: 7 };
}

/** A key's own workspace, and a subject of another one. */
interface Prober {
  readonly mine: Subject;
  readonly theirs: Subject;
  /** Asks for what is at the endpoint under the subject's ids, with the prober's key, by the prober's own path. */
  readonly probe: (subject: Subject) => Promise<Reply>;
  /** The same for their key and path. */
  readonly own: () => Promise<Reply>;
  /** The answer to the probe, and the number of store calls that it took. */
  readonly look: (subject: Subject) => Promise<unknown>;
}

async function createProber(endpoint: EndpointRow): Promise<Prober> {
  const [mine, theirs] = [putSubject(gateway.store), putSubject(gateway.store)];
  const [key, theirKey] = [await keyFor(gateway, mine), await keyFor(gateway, theirs)];
  const probe = ({ id, scorecardId }: Subject): Promise<Reply> =>
    gateway.get(endpoint.path({ workspaceId: mine.workspaceId, id, scorecardId }), { key });
  const own = (): Promise<Reply> => gateway.get(endpoint.path(theirs), { key: theirKey });
  const look = async (subject: Subject): Promise<unknown> => {
    const before = gateway.store.calls();
    const reply = await probe(subject);
    const { status, text } = reply;
    return { status, text, headers: uncountedHeaders(reply), calls: gateway.store.calls() - before };
  };
  return { mine, theirs, probe, own, look };
}

function tableOf(endpoint: EndpointRow): StoreServer['evaluations'] {
  if (endpoint.resource === 'list') throw new Error('a list is no single read');
  return gateway.store[TABLES[endpoint.resource]];
}

const idOf = ({ resource }: EndpointRow, { id, scorecardId }: Subject): string =>
  resource === GET_RUBRIC.resource ? scorecardId : id;

/** The subject's record at the endpoint with something else about it. */
function alter(endpoint: EndpointRow, subject: Subject, difference: Readonly<Record<string, unknown>>): () => void {
  const table = tableOf(endpoint);
  const id = idOf(endpoint, subject);
  const whole = table.get(id);
  table.set(id, { ...Object(whole), ...difference });
  return () => void table.set(id, whole);
}

describe.each(SINGLE_READS)('$name', (endpoint) => {
  test('K7: a foreign id that is cached costs the store what a made-up one costs, first and after', async () => {
    const { theirs, own, look } = await createProber(endpoint);
    expect((await own()).status).toBe(200);
    const madeUp = newSubject();
    const first = await look(madeUp);
    expect(first).toMatchObject({ status: 404, text: endpoint.notFound, calls: 1 });
    expect(await look(theirs)).toEqual(first);
    const second = await look(madeUp);
    expect(second).toMatchObject({ status: 404, calls: 0 });
    expect(await look(theirs)).toEqual(second);
    gateway.clock.advance(NOT_FOUND_MS);
    expect(await look(madeUp)).toEqual(first);
    expect(await look(theirs)).toEqual(first);
    const before = gateway.store.calls();
    expect((await own()).headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
    expect(gateway.store.calls()).toBe(before);
  });

  test.each([
    ['expired', ONLY_ON_ERROR],
    ['stale', 61 * MINUTE],
  ])('K7: while the store fails, a foreign id with an %s copy answers as a made-up one', async (_what, ageMs) => {
    const { theirs, own, look } = await createProber(endpoint);
    expect((await own()).status).toBe(200);
    gateway.clock.advance(ageMs);
    const recover = gateway.store.fail(503);
    const madeUp = await look(newSubject());
    const foreign = await look(theirs);
    const copy = await own();
    recover();
    expect(madeUp).toMatchObject({ status: 500, calls: 1 });
    expect(foreign).toEqual(madeUp);
    // Its owner is served it all the same.
    expect(copy.status).toBe(200);
    gateway.clock.advance(1000);
  });

  test('K7: a foreign record that is malformed answers as a made-up one; to its owner it is a 500', async () => {
    const { theirs, own, look } = await createProber(endpoint);
    const mend = alter(endpoint, theirs, broken(endpoint));
    const madeUp = newSubject();
    for (const calls of [1, 0]) {
      const none = await look(madeUp);
      expect(none).toMatchObject({ status: 404, text: endpoint.notFound, calls });
      expect(await look(theirs)).toEqual(none);
    }
    expect((await own()).status).toBe(500);
    mend();
    gateway.clock.advance(1000);
    expect((await own()).status).toBe(200);
  });

  test('K7: just after, or while, its owner is answered 500 a malformed foreign record answers as a made-up one', async () => {
    const { theirs, probe, own } = await createProber(endpoint);
    alter(endpoint, theirs, broken(endpoint));
    const absent = await probe(newSubject());
    expect((await own()).status).toBe(500);
    const after = await probe(theirs);
    const gate = gateway.store.hold();
    gateway.clock.advance(NOT_FOUND_MS + 1000);
    const calls = gateway.store.calls();
    const owners = own();
    await gateway.store.waitForCalls(calls + 1);
    const during = probe(theirs);
    gate.release();
    expect((await owners).status).toBe(500);
    for (const reply of [after, await during]) expect([reply.status, reply.text]).toEqual([absent.status, absent.text]);
  });

  test('C4: nothing outlives an answer that names another workspace, and the record is back when the store says so', async () => {
    const { mine, theirs, probe, own } = await createProber(endpoint);
    const first = await probe(mine);
    expect(first.status).toBe(200);
    gateway.clock.advance(onlyOnErrorMs(endpoint));
    const mend = alter(endpoint, mine, { workspaceId: theirs.workspaceId });
    const gone = await probe(mine);
    expect([gone.status, gone.text]).toEqual([404, endpoint.notFound]);
    const recover = gateway.store.fail(503);
    gateway.clock.advance(NOT_FOUND_MS);
    expect((await probe(mine)).status).toBe(500);
    recover();
    mend();
    gateway.clock.advance(NOT_FOUND_MS);
    const again = await probe(mine);
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect((await own()).status).toBe(200);
  });

  test('C4: what the store says to readers of one workspace takes nothing from another, which learns it by its own next answer', async () => {
    const { mine, theirs, probe } = await createProber(endpoint);
    const first = await probe(mine);
    // The other tenant asks for it just when the store says that it is theirs.
    const mend = alter(endpoint, mine, { workspaceId: theirs.workspaceId });
    const theirKey = await keyFor(gateway, theirs);
    const askTheirs = () => gateway.get(endpoint.path({ ...mine, workspaceId: theirs.workspaceId }), { key: theirKey });
    expect((await askTheirs()).status).toBe(200);
    const calls = gateway.store.calls();
    const again = await probe(mine);
    expect([again.status, again.text, gateway.store.calls()]).toEqual([200, first.text, calls]);
    mend();
    gateway.clock.advance(onlyOnErrorMs(endpoint));
    expect((await askTheirs()).status).toBe(404);
    expect((await probe(mine)).status).toBe(200);
  });

  test("K5, K6: a record that has moved is its new workspace's at once, and absent to the old one with its next answer", async () => {
    const { mine, theirs, probe } = await createProber(endpoint);
    expect((await probe(mine)).status).toBe(200);
    alter(endpoint, mine, { workspaceId: theirs.workspaceId });
    const path = endpoint.path({ ...mine, workspaceId: theirs.workspaceId });
    expect((await gateway.get(path, { key: await keyFor(gateway, theirs) })).status).toBe(200);
    gateway.clock.advance(onlyOnErrorMs(endpoint));
    const reply = await probe(mine);
    expect([reply.status, reply.text]).toEqual([404, endpoint.notFound]);
  });
});

const PARTS: Readonly<Record<string, string>> = {
  transcript: '/transcript',
  scorecard: '/scorecard',
  dealInsights: '/deal-insights',
};

const UNREADABLE: unknown = expect.objectContaining({ 'x-error-code': 'record_malformed' });

/** The store sends what no process can read as the record, until the returned function is called. */
function makeUnreadable(endpoint: EndpointRow, subject: Subject): () => void {
  const match = new RegExp(`/${idOf(endpoint, subject)}${PARTS[endpoint.resource] ?? ''}$`);
  const tooDeep = `{"a":${'['.repeat(100)}${']'.repeat(100)}}`;
  return gateway.store.answer(match, tooDeep);
}

describe.each(SINGLE_READS)('$name, if the record cannot be read', (endpoint) => {
  const isPart = PARTS[endpoint.resource] !== undefined;

  test('K7a, S2: to its owner it is a failure, never none; a foreign part is none, anything else fails for all', async () => {
    const { theirs, own, look } = await createProber(endpoint);
    const mend = makeUnreadable(endpoint, theirs);
    const madeUp = newSubject();
    for (const calls of [1, 0]) {
      const none = await look(madeUp);
      expect(none).toMatchObject({ status: 404, text: endpoint.notFound, calls });
      // Whose a part is, its evaluation says.
      const failed = { status: 500, headers: UNREADABLE, calls };
      expect(await look(theirs)).toMatchObject(isPart ? { ...Object(none), calls: 2 * calls } : failed);
    }
    const failed = await own();
    expect([failed.status, failed.headers['x-error-code'], failed.headers['retry-after']]).toEqual([
      500,
      'record_malformed',
      undefined,
    ]);
    mend();
    gateway.clock.advance(NOT_FOUND_MS);
    expect((await own()).status).toBe(200);
  });

  test('S2: it is remembered as a failure, for a second and the set that asked', async () => {
    const { theirs, own } = await createProber(endpoint);
    makeUnreadable(endpoint, theirs);
    const before = gateway.store.calls();
    expect((await own()).status).toBe(500);
    const calls = gateway.store.calls() - before;
    gateway.clock.advance(999);
    expect((await own()).status).toBe(500);
    expect(gateway.store.calls() - before).toBe(calls);
    gateway.clock.advance(1);
    expect((await own()).status).toBe(500);
    // The evaluation of a part is known by then.
    expect(gateway.store.calls() - before).toBe(calls + 1);
  });

  test('C4: a copy that has shown it among the reader’s is served on', async () => {
    const { theirs, own } = await createProber(endpoint);
    expect((await own()).status).toBe(200);
    gateway.clock.advance(ONLY_ON_ERROR);
    const mend = makeUnreadable(endpoint, theirs);
    expect((await own()).headers['cache-status']).toMatch(/stale/);
    mend();
  });
});

test('K7a: a part is a failure for whoever asks if its evaluation cannot be read either', async () => {
  for (const endpoint of SINGLE_READS.filter(({ resource }) => PARTS[resource] !== undefined)) {
    const { theirs, own, look } = await createProber(endpoint);
    const evaluation = SINGLE_READS.find(({ resource }) => resource === 'evaluation') ?? endpoint;
    const mend = [makeUnreadable(endpoint, theirs), makeUnreadable(evaluation, theirs)];
    expect(await look(theirs)).toMatchObject({ status: 500, headers: UNREADABLE, calls: 2 });
    expect((await own()).status).toBe(500);
    for (const each of mend) each();
  }
});

test('K7a: of an evaluation only the id and the workspace are needed to say whose a part is', async () => {
  const endpoint = SINGLE_READS.find(({ resource, name }) => resource === 'transcript' && name.includes('call'));
  if (endpoint === undefined) throw new Error('there is no such endpoint');
  const { theirs, own, look } = await createProber(endpoint);
  const mend = makeUnreadable(endpoint, theirs);
  gateway.store.evaluations.set(theirs.id, { _id: theirs.id, workspaceId: theirs.workspaceId });
  expect(await look(theirs)).toMatchObject({ status: 404, calls: 2 });
  expect((await own()).status).toBe(500);
  gateway.store.evaluations.delete(theirs.id);
  gateway.clock.advance(NOT_FOUND_MS);
  expect(await look(theirs)).toMatchObject({ status: 404, calls: 2 });
  expect((await own()).status).toBe(404);
  mend();
});

test("K5, K7a: one key's two workspaces, asked for one after the other, tell no foreign report from a made-up one", async () => {
  const [one, two, theirs] = [putSubject(gateway.store), putSubject(gateway.store), putSubject(gateway.store)];
  const key = await keyFor(gateway, one, { workspaceIds: [one.workspaceId, two.workspaceId] });
  const callsFor = async ({ id }: Subject): Promise<readonly number[]> => {
    const counts: number[] = [];
    for (const { workspaceId } of [one, two, one]) {
      const before = gateway.store.calls();
      const reply = await gateway.get(`/v1/workspaces/${workspaceId}/reports/${id}`, { key });
      expect(reply.status).toBe(404);
      counts.push(gateway.store.calls() - before);
    }
    return counts;
  };
  const madeUp = await callsFor(newSubject());
  // Absence is remembered for the requested workspace.
  expect(madeUp).toEqual([1, 1, 0]);
  expect(await callsFor(theirs)).toEqual(madeUp);
});
