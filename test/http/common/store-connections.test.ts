/** Connections to the store: how long they are used, and what happens to a call that meets one just being closed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { listenOnLoopback } from '../../support/loopback.ts';
import { anEvaluation } from '../../support/records.ts';
import { createStoreServer, type StoreServer } from '../../support/store-server.ts';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

type Fault = (request: IncomingMessage, response: ServerResponse) => void;

const FAULTS: Readonly<Record<string, Fault>> = {
  'a reset': ({ socket }) => void socket.resetAndDestroy(),
  'an end': ({ socket }) => void socket.end(),
  'a 408': (_request, response) => void response.writeHead(408, { connection: 'close' }).end(),
};

/** The next calls of that id meet the fault, that many of them. */
function failNext(gateway: UpstreamGateway, id: string, times: number, fault: Fault): void {
  let left = times;
  const takeBack = gateway.store.override(`/internal/v1/evaluations/${id}`, (request, response) => {
    left -= 1;
    if (left === 0) takeBack();
    fault(request, response);
  });
}

const callsOf = ({ store }: UpstreamGateway, id: string): number =>
  store.requests.filter((request) => request.id === id).length;

/** A gateway with one kept connection; without retries, so nothing is sent again by the budget. */
async function startKept() {
  const gateway = await startUpstreamGateway();
  const [first = '', second = ''] = putCalls(gateway, 2);
  expect((await gateway.read(first)).status).toBe(200);
  return { gateway, id: second };
}

describe('a kept connection that the store closes just when a call is sent on it', () => {
  test.each(Object.entries(FAULTS))(
    '%s: the call is sent again on a new one, and no reader notices',
    async (_, fault) => {
      const { gateway, id } = await startKept();
      failNext(gateway, id, 1, fault);
      expect((await gateway.read(id)).status).toBe(200);
      expect([callsOf(gateway, id), gateway.store.connections]).toEqual([2, 2]);
      expect(await gateway.metric('evalgate_store_retries_total')).toBe(0);
      expect(await gateway.metric('evalgate_store_calls_total{resource="evaluation",outcome="found"}')).toBe(2);
    },
  );

  test.each(Object.entries(FAULTS))('%s: the call is sent again only once', async (_, fault) => {
    const { gateway, id } = await startKept();
    failNext(gateway, id, 3, fault);
    expect((await gateway.read(id)).status).toBe(500);
    expect(callsOf(gateway, id)).toBe(2);
  });

  test('a refresh in the background is sent again too', async () => {
    const { gateway, id } = await startKept();
    await gateway.read(id);
    gateway.clock.advance(10 * 60_000);
    // By now there is another connection to be kept.
    await gateway.read('none');
    gateway.store.put({ evaluations: [anEvaluation({ _id: id, title: 'new' })] });
    failNext(gateway, id, 1, ({ socket }) => void socket.resetAndDestroy());
    await gateway.read(id);
    await vi.waitFor(async () => expect((await gateway.read(id)).text).toContain('"new"'));
    expect(callsOf(gateway, id)).toBe(3);
  });

  test('a call whose answer has begun is not sent again', async () => {
    const { gateway, id } = await startKept();
    failNext(gateway, id, 1, ({ socket }) => {
      socket.write('HTTP/1.1 2', () => setImmediate(() => socket.resetAndDestroy()));
    });
    expect([(await gateway.read(id)).status, callsOf(gateway, id)]).toEqual([500, 1]);
  });
});

test.each(Object.entries(FAULTS))('%s on a new connection is a failure, and is not sent again', async (_, fault) => {
  const gateway = await startUpstreamGateway();
  const [id = ''] = putCalls(gateway, 1);
  failNext(gateway, id, 1, fault);
  expect([(await gateway.read(id)).status, callsOf(gateway, id)]).toEqual([500, 1]);
});

/** An address that stands for one store, until it stands for another. Connections that exist stay where they lead. */
async function startAddress(first: StoreServer) {
  let target = first;
  const running = await listenOnLoopback(
    createServer((client) => {
      const server = connect(Number(new URL(target.url).port), '127.0.0.1');
      client.pipe(server).pipe(client);
      for (const socket of [client, server]) {
        socket.on('error', () => {}).on('close', () => [client, server].forEach((end) => end.destroy()));
      }
    }),
  );
  return { url: running.url, close: () => running.close(), moveTo: (next: StoreServer): void => void (target = next) };
}

/** A gateway whose store can move from one place to another. */
async function startMoving(upstream: Readonly<Record<string, unknown>> = {}) {
  const [before, after] = [await createStoreServer(), await createStoreServer()];
  for (const store of [before, after]) store.evaluations.make = (id) => anEvaluation({ _id: id });
  const address = await startAddress(before);
  const gateway = await startUpstreamGateway(upstream, { store: before, env: { UPSTREAM_URL: address.url } });
  onTestFinished(async () => {
    for (const each of [address, before, after]) await each.close();
  });
  return { gateway, before, after, address };
}

describe('a store that moves', () => {
  test('gets all calls at its new place once its connections are a minute old', async () => {
    const { gateway, before, after, address } = await startMoving();
    await gateway.read('a');
    address.moveTo(after);
    gateway.clock.advance(53_000);
    await gateway.read('b');
    expect([before.calls(), after.calls()]).toEqual([2, 0]);
    gateway.clock.advance(7000);
    for (const id of ['c', 'd', 'e']) expect((await gateway.read(id)).status).toBe(200);
    expect([before.calls(), after.calls()]).toEqual([2, 3]);
    await vi.waitFor(() => expect(before.openConnections).toBe(0));
  });

  test('loses no call that is under way at its old place, whose connection is closed after it', async () => {
    const { gateway, before, after, address } = await startMoving();
    const gate = before.hold();
    const slow = gateway.read('slow');
    await before.waitForCalls(1);
    address.moveTo(after);
    gateway.clock.advance(60_000);
    expect((await gateway.read('quick')).status).toBe(200);
    expect([before.calls(), after.calls()]).toEqual([1, 1]);
    gate.release();
    expect((await slow).status).toBe(200);
    await vi.waitFor(() => expect(before.openConnections).toBe(0));
    await gateway.read('next');
    expect([before.calls(), after.calls(), after.connections]).toEqual([1, 2, 1]);
  });

  test('is followed after upstream.connectionMaxAge', async () => {
    const { gateway, before, after, address } = await startMoving({ connectionMaxAge: '1s' });
    await gateway.read('a');
    address.moveTo(after);
    gateway.clock.advance(1000);
    await gateway.read('b');
    expect([before.calls(), after.calls()]).toEqual([1, 1]);
  });
});

test('a gateway that stops closes the connections of every age', async () => {
  const { gateway, before, after, address } = await startMoving();
  const gate = before.hold();
  const slow = gateway.read('slow').catch(() => null);
  await before.waitForCalls(1);
  address.moveTo(after);
  gateway.clock.advance(60_000);
  await gateway.read('quick');
  const closed = gateway.close();
  gate.release();
  await Promise.all([slow, closed]);
  await vi.waitFor(() => expect([before.openConnections, after.openConnections]).toEqual([0, 0]));
});
