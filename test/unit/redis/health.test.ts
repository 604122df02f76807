/** R6: when a Redis counts as up or down, why, and when it is probed. */
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RedisTimeoutError } from '../../../src/redis/errors.ts';
import { ConnectionHealth, droppedIfSilent, type FollowedConnection } from '../../../src/redis/health.ts';

const TIMEOUT_MS = 250;

/** A connection whose Redis answers probes as it is told to. */
class FakeConnection implements FollowedConnection {
  readonly client = Object.assign(new EventEmitter(), { status: 'connecting', disconnect: () => this.close() });
  probes = 0;
  answer: () => Promise<void>;
  readonly findFault: () => Promise<Error | null>;
  readonly ask = (): Promise<void> => {
    this.probes += 1;
    return this.answer();
  };

  constructor(answer: () => Promise<void>, findFault: () => Promise<Error | null>) {
    this.answer = answer;
    this.findFault = findFault;
  }

  ready(): void {
    this.client.status = 'ready';
    this.client.emit('ready');
  }

  close(): void {
    this.client.status = 'end';
    this.client.emit('close');
    this.client.emit('end');
  }

  fail(error: Error): void {
    this.client.emit('error', error);
  }
}

class TestHealth extends ConnectionHealth<FakeConnection> {
  readonly changes: string[] = [];
  /** All connections that were opened. */
  readonly opened: FakeConnection[] = [];
  /** How the connections that are opened answer probes. */
  answer: () => Promise<void> = () => Promise.resolve();
  fault: Error | null = null;

  constructor() {
    super(TIMEOUT_MS);
    this.onUp(() => void this.changes.push('up'));
    this.onDown((reason) => void this.changes.push(`down: ${reason.message}`));
    this.keepOpen(() => this.open());
  }

  readonly open = (): FakeConnection => {
    const connection = new FakeConnection(
      () => this.answer(),
      () => Promise.resolve(this.fault),
    );
    this.opened.push(connection);
    return connection;
  };

  /** The present one. */
  get last(): FakeConnection {
    return this.connection;
  }

  override readonly goOver = (connection: FakeConnection): void => super.goOver(connection, () => this.open());
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
const OF_SENTINEL = 'NOAUTH of a Sentinel';
const TOO_MANY = 'Redis refuses CONNECT (ERR max number of clients reached)';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Lets probes end that are answered at once. */
const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

type Step = (health: TestHealth) => unknown;

const answers =
  (ms = 0): Step =>
  (health) => {
    health.answer = () => new Promise((resolve) => void setTimeout(resolve, ms));
  };
const refuses: Step = (health) => {
  health.answer = () => Promise.reject(replyError('NOPERM no'));
};
/** As ioredis does with a command that it gives up. */
const givesUp =
  (ms: number): Step =>
  (health) => {
    health.answer = () => new Promise((_, reject) => void setTimeout(reject, ms, new Error('Command timed out')));
  };
const ready: Step = (health) => health.last.ready();
/** The next connection is opened within a second. */
const close: Step = (health) => {
  health.last.close();
};
const error: Step = (health) => health.last.fail(refused());
const says =
  (reply: string): Step =>
  (health) =>
    health.last.fail(replyError(reply));
const hasFault: Step = (health) => {
  health.fault = new Error(OF_SENTINEL);
};
const timeout: Step = (health) => health.setDown(new RedisTimeoutError(TIMEOUT_MS));
const wait =
  (ms: number): Step =>
  () =>
    vi.advanceTimersByTimeAsync(ms);
const goOver: Step = (health) => {
  const next = new FakeConnection(
    () => Promise.resolve(),
    () => Promise.resolve(null),
  );
  next.client.status = 'ready';
  health.goOver(next);
};

describe('the state and its changes', () => {
  test.each<[string, readonly Step[], readonly string[], reason: string]>([
    ['unknown until it answers', [wait(5000)], [], NOT_YET],
    ['up once it answers', [ready], ['up'], CLOSED],
    ['up whenever it answers first', [answers(2000), ready, wait(2000)], ['up'], CLOSED],
    [
      'down when no connection can be made, once',
      [error, close, wait(1000), error, close],
      [`down: ${REFUSED}`],
      REFUSED,
    ],
    ['unknown while only one connection has ended without a reason', [close], [], NOT_YET],
    ['down when two have', [close, wait(1000), close], [`down: ${NOT_YET}`], NOT_YET],
    ['down with what is found out when a connection ends', [hasFault, close], [`down: ${OF_SENTINEL}`], OF_SENTINEL],
    [
      'down with what Redis said before writing to it failed',
      [says('ERR max number of clients reached'), error, close],
      [`down: ${TOO_MANY}`],
      TOO_MANY,
    ],
    ['down when it refuses the first probe', [refuses, ready], ['down: NOPERM no'], 'NOPERM no'],
    ['down when the connection closes', [ready, close], ['up', `down: ${CLOSED}`], CLOSED],
    ['down with the error before the close', [ready, error, close], ['up', `down: ${REFUSED}`], REFUSED],
    ['up again with a new connection', [ready, close, wait(50), ready], ['up', `down: ${CLOSED}`, 'up'], CLOSED],
    [
      'not up by an error of before',
      [ready, error, close, wait(50), ready, close],
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
      [answers(100), ready, close, wait(20)],
      [`down: ${NOT_YET}`],
      NOT_YET,
    ],
    ['that of the connection gone over to', [ready, goOver, wait(1000)], ['up'], CLOSED],
    [
      'not down by a probe of the connection before',
      [ready, givesUp(500), wait(1000), goOver, wait(500)],
      ['up'],
      CLOSED,
    ],
  ])('is %s', async (_, steps, changes, reason) => {
    const health = new TestHealth();
    for (const step of steps) {
      await step(health);
      await settled();
    }
    expect(health.changes).toEqual(changes);
    expect(health.downReason.message).toBe(reason);
    expect(health.isUp()).toBe(changes.at(-1) === 'up');
  });
});

describe('a connection that ends is followed by a new one within a second', () => {
  test.each<[string, readonly Step[]]>([
    ['while it is opened', [close]],
    ['with an error', [error, close]],
    ['when it is ready', [ready, close]],
    ['when it has answered late', [ready, timeout, close]],
    ['having been refused', [says('WRONGPASS'), close]],
    ['when it was gone over to', [ready, goOver, close]],
  ])('%s', async (_, steps) => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999_999);
    const health = new TestHealth();
    for (let time = 1; time <= 10; time += 1) {
      for (const step of steps) {
        await step(health);
        await settled();
      }
      await vi.advanceTimersByTimeAsync(1000);
      expect(health.opened).toHaveLength(time + 1);
    }
  });

  test('and one that is neither ready nor ends is given up', async () => {
    const health = new TestHealth();
    await vi.advanceTimersByTimeAsync(11_000);
    expect(health.opened).toHaveLength(2);
    expect(health.opened[0]?.client.status).toBe('end');
  });

  test('but not if it was closed', async () => {
    const health = new TestHealth();
    health.last.ready();
    await settled();
    health.stop();
    health.last.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(health.opened).toHaveLength(1);
  });
});

async function start() {
  const health = new TestHealth();
  health.last.ready();
  await settled();
  return { health, connection: health.last };
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
    expect([connection.probes, health.last.probes]).toEqual([1, 0]);
    health.last.ready();
    expect(health.last.probes).toBe(1);
  });

  test('do not wait for one of the connection before', async () => {
    const { health, connection } = await start();
    connection.answer = () => new Promise(() => undefined);
    await vi.advanceTimersByTimeAsync(1000);
    connection.close();
    await vi.advanceTimersByTimeAsync(50);
    const next = health.last;
    next.answer = () => Promise.resolve();
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
    goOver(health);
    const next = health.last;
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
});
