/** R6: when a Redis counts as up or down, why, and when it is probed. */
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RedisTimeoutError } from '../../../src/redis/errors.ts';
import { ConnectionHealth, droppedIfSilent, type FollowedConnection } from '../../../src/redis/health.ts';

const TIMEOUT_MS = 250;

/** A connection whose Redis answers probes as it is told to. */
class FakeConnection implements FollowedConnection {
  readonly client = Object.assign(new EventEmitter(), { status: 'connecting' });
  probes = 0;
  answer: () => Promise<void> = () => Promise.resolve();
  readonly ask = (): Promise<void> => {
    this.probes += 1;
    return this.answer();
  };

  ready(): void {
    this.client.status = 'ready';
    this.client.emit('ready');
  }

  close(): void {
    this.client.status = 'reconnecting';
    this.client.emit('close');
  }

  fail(error: Error): void {
    this.client.emit('error', error);
  }
}

class TestHealth extends ConnectionHealth {
  readonly changes: string[] = [];

  constructor() {
    super(TIMEOUT_MS);
    this.onUp(() => void this.changes.push('up'));
    this.onDown((reason) => void this.changes.push(`down: ${reason.message}`));
  }

  override readonly follow = (connection: FollowedConnection): void => super.follow(connection);
  override readonly answered = (): void => super.answered();
  override readonly setDown = (reason: Error): void => super.setDown(reason);
  override readonly stop = (): void => super.stop();
}

function replyError(text: string): Error {
  return Object.assign(new Error(text), { name: 'ReplyError' });
}

const REFUSED = 'connect ECONNREFUSED 127.0.0.1:6379';
const CLOSED = 'The connection to Redis is closed.';
const LATE = `Redis did not answer within ${TIMEOUT_MS} ms`;
const refused = (): Error => Object.assign(new Error(REFUSED), { code: 'ECONNREFUSED' });
const NOT_YET = 'Redis did not answer yet.';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Lets probes end that are answered at once. */
const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

interface World {
  readonly health: TestHealth;
  readonly first: FakeConnection;
  readonly next: FakeConnection;
}

type Step = (world: World) => unknown;

const answers =
  (ms = 0): Step =>
  ({ first }) => {
    first.answer = () => new Promise((resolve) => void setTimeout(resolve, ms));
  };
const refuses: Step = ({ first }) => {
  first.answer = () => Promise.reject(replyError('NOPERM no'));
};
/** As ioredis does with a command that it gives up. */
const givesUp =
  (ms: number): Step =>
  ({ first }) => {
    first.answer = () => new Promise((_, reject) => void setTimeout(reject, ms, new Error('Command timed out')));
  };
const ready: Step = ({ first }) => first.ready();
const close: Step = ({ first }) => first.close();
const error: Step = ({ first }) => first.fail(refused());
const timeout: Step = ({ health }) => health.setDown(new RedisTimeoutError(TIMEOUT_MS));
const wait =
  (ms: number): Step =>
  () =>
    vi.advanceTimersByTimeAsync(ms);
const goOver: Step = ({ health, next }) => {
  next.client.status = 'ready';
  health.follow(next);
};

describe('the state and its changes', () => {
  test.each<[string, readonly Step[], readonly string[], reason: string]>([
    ['unknown until it answers', [wait(5000)], [], NOT_YET],
    ['up once it answers', [ready], ['up'], CLOSED],
    ['up whenever it answers first', [answers(2000), ready, wait(2000)], ['up'], CLOSED],
    ['down when no connection can be made, once', [error, error], [`down: ${REFUSED}`], REFUSED],
    ['down when it refuses the first probe', [refuses, ready], ['down: NOPERM no'], 'NOPERM no'],
    ['down when the connection closes', [ready, close], ['up', `down: ${CLOSED}`], CLOSED],
    ['down with the error before the close', [ready, error, close], ['up', `down: ${REFUSED}`], REFUSED],
    ['up again after a new connection', [ready, close, ready], ['up', `down: ${CLOSED}`, 'up'], CLOSED],
    [
      'not up by an error of before',
      [ready, error, close, ready, close],
      ['up', `down: ${REFUSED}`, 'up', `down: ${CLOSED}`],
      CLOSED,
    ],
    ['down when the next probe is refused', [ready, refuses, wait(1000)], ['up', 'down: NOPERM no'], 'NOPERM no'],
    ['down when a probe is given up in time', [ready, givesUp(100), wait(1100)], ['up', `down: ${CLOSED}`], CLOSED],
    ['down when a probe is given up late', [ready, givesUp(500), wait(1500)], ['up', `down: ${LATE}`], LATE],
    ['up when a probe is late, and nothing else', [ready, answers(400), wait(1400)], ['up'], CLOSED],
    ['down when a command is late', [ready, timeout], ['up', `down: ${LATE}`], LATE],
    ['down once', [ready, timeout, close, error, timeout], ['up', `down: ${LATE}`], LATE],
    ['up again by a probe in time', [ready, timeout, wait(250)], ['up', `down: ${LATE}`, 'up'], CLOSED],
    ['down while probes are late', [ready, timeout, answers(400), wait(5000)], ['up', `down: ${LATE}`], LATE],
    [
      'up by the first that is not',
      [ready, timeout, answers(400), wait(1000), answers(), wait(1000)],
      ['up', `down: ${LATE}`, 'up'],
      CLOSED,
    ],
    [
      'not up by the answer of a connection that has closed',
      [answers(100), ready, close, wait(100)],
      [`down: ${NOT_YET}`],
      CLOSED,
    ],
    ['that of the connection gone over to', [ready, goOver, close, error], ['up'], CLOSED],
    [
      'not down by a probe of the connection before',
      [ready, givesUp(500), wait(1000), goOver, wait(500)],
      ['up'],
      CLOSED,
    ],
  ])('is %s', async (_, steps, changes, reason) => {
    const world: World = { health: new TestHealth(), first: new FakeConnection(), next: new FakeConnection() };
    world.health.follow(world.first);
    for (const step of steps) {
      await step(world);
      await settled();
    }
    expect(world.health.changes).toEqual(changes);
    expect(world.health.downReason.message).toBe(reason);
    expect(world.health.isUp()).toBe(changes.at(-1) === 'up');
  });
});

async function start() {
  const [health, connection] = [new TestHealth(), new FakeConnection()];
  health.follow(connection);
  connection.ready();
  await settled();
  return { health, connection };
}

describe('probes', () => {
  test('are a second apart while Redis answers them and nothing else', async () => {
    const { connection } = await start();
    expect(connection.probes).toBe(1);
    await vi.advanceTimersByTimeAsync(999);
    expect(connection.probes).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(connection.probes).toBe(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(connection.probes).toBe(12);
  });

  test('are not sent while other commands are answered, and begin a second after the last', async () => {
    const { health, connection } = await start();
    for (let command = 0; command < 50; command += 1) {
      await vi.advanceTimersByTimeAsync(900);
      health.answered();
    }
    expect(connection.probes).toBe(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(connection.probes).toBe(2);
  });

  test('are sent four times a second while Redis is down, whatever else is answered', async () => {
    const { health, connection } = await start();
    connection.answer = () => Promise.reject(replyError('LOADING'));
    health.setDown(new Error('no'));
    for (let quarter = 0; quarter < 40; quarter += 1) {
      await vi.advanceTimersByTimeAsync(125);
      health.answered();
      await vi.advanceTimersByTimeAsync(125);
    }
    expect(connection.probes).toBe(41);
  });

  test('are shared by all who ask at the same time, and put the next one off', async () => {
    const { health, connection } = await start();
    await vi.advanceTimersByTimeAsync(600);
    await Promise.all([health.ping(), health.ping(), health.ping()]);
    expect(connection.probes).toBe(2);
    await vi.advanceTimersByTimeAsync(900);
    expect(connection.probes).toBe(2);
    await vi.advanceTimersByTimeAsync(100);
    expect(connection.probes).toBe(3);
  });

  test('are not sent without a connection, and at once on a new one', async () => {
    const { health, connection } = await start();
    connection.close();
    await vi.advanceTimersByTimeAsync(5000);
    await expect(health.ping()).rejects.toThrow(CLOSED);
    expect(connection.probes).toBe(1);
    connection.ready();
    expect(connection.probes).toBe(2);
  });

  test('do not wait for one of the connection before', async () => {
    const { health, connection } = await start();
    connection.answer = () => new Promise(() => undefined);
    await vi.advanceTimersByTimeAsync(1000);
    connection.close();
    const next = new FakeConnection();
    health.follow(next);
    next.ready();
    expect([connection.probes, next.probes]).toEqual([2, 1]);
    await settled();
    expect(health.changes).toEqual(['up', `down: ${CLOSED}`, 'up']);
    await vi.advanceTimersByTimeAsync(1000);
    expect(next.probes).toBe(2);
  });

  test('go on with the connection that is gone over to during one', async () => {
    const { health, connection } = await start();
    connection.answer = () => new Promise(() => undefined);
    await vi.advanceTimersByTimeAsync(1000);
    const next = new FakeConnection();
    next.client.status = 'ready';
    health.follow(next);
    await vi.advanceTimersByTimeAsync(1000);
    expect([connection.probes, next.probes]).toEqual([2, 1]);
  });

  test('end with the health, also one that is under way', async () => {
    const { health, connection } = await start();
    connection.answer = () => new Promise((resolve) => void setTimeout(resolve, 100));
    const probe = Promise.allSettled([health.ping()]);
    health.stop();
    connection.close();
    connection.ready();
    await vi.advanceTimersByTimeAsync(10_000);
    await probe;
    expect(connection.probes).toBe(2);
    expect([health.changes, health.isUp()]).toEqual([['up'], false]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

const silence = (): Promise<void> => Promise.reject(new RedisTimeoutError(TIMEOUT_MS));
const refusal = (): Promise<void> => Promise.reject(replyError('NOPERM no'));
const answer = (): Promise<void> => Promise.resolve();

describe('a connection is', () => {
  test.each<[string, replies: readonly (() => Promise<void>)[], dropped: number]>([
    ['dropped if nothing has been answered for over three seconds', [silence, silence, silence], 1],
    ['not dropped if there was a refusal in between', [silence, refusal, silence], 0],
    ['not dropped if there was an answer in between', [silence, answer, silence], 0],
    ['not dropped if nothing was asked for longer', [answer, answer, silence], 0],
  ])('%s', async (_, replies, dropped) => {
    const left = [...replies];
    let drops = 0;
    const client = Object.assign(new EventEmitter(), { status: 'ready', disconnect: () => void (drops += 1) });
    const ask = droppedIfSilent(client, async () => left.shift()?.());
    for (const waitMs of [1600, 1600, 0]) {
      expect(drops).toBe(0);
      await ask().catch(() => undefined);
      await vi.advanceTimersByTimeAsync(waitMs);
    }
    expect(drops).toBe(dropped);
  });

  test('not dropped for the silence of the one before', async () => {
    let drops = 0;
    const client = Object.assign(new EventEmitter(), { status: 'ready', disconnect: () => void (drops += 1) });
    const ask = droppedIfSilent(client, silence);
    await ask().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(3200);
    client.emit('ready');
    await ask().catch(() => undefined);
    expect(drops).toBe(0);
  });
});
