/**
 * R1, R2, R6: the script that counts in Redis decides to the microsecond as the oracle says, also after the clock went back. In the
 * modelled Redis, since only its clock stands still.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { afterAll, expect, inject, test } from 'vitest';
import { RedisLimiter } from '../../src/quota/redis-limiter.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/time/clock.ts';
import { systemTimers } from '../../src/time/timers.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { forFile } from '../support/opened.ts';
import { type Decide, judgeTraces } from '../support/quota-traces.ts';
import { RedisModel } from './redis/server.ts';

/** The clock of Redis, Unix microseconds. */
let redisMicros = 1000 * Date.now();

const model = new RedisModel({ nowMicros: () => redisMicros, timers: systemTimers });
const server = createServer((socket) => {
  const connection = model.connect((bytes) => socket.write(bytes, 'latin1'));
  socket.on('data', (bytes) => connection.receive(bytes.toString('latin1')));
  socket.on('close', () => connection.close());
});
const running = await listenOnLoopback(server);
const link = await forFile(new RedisLink({ url: running.url.replace('http:', 'redis:'), role: 'state' }));
afterAll(() => running.close());
await new Promise<void>((resolve) => void link.onUp(resolve));

function decideInRedis(): Decide {
  const quotaId = randomUUID();
  return (nowMicros, limits) => {
    redisMicros = nowMicros;
    // A new one for each request: refusals that it remembers are not the script's.
    const limiter = new RedisLimiter({ redis: link, clock: systemClock, onForgotten: () => undefined });
    return limiter.consume(quotaId, limits);
  };
}

test(
  'random traces, with bursts at the edges, changing limits and clocks that go back',
  { timeout: 120_000 },
  async () => {
    const traces = 100 * inject('thoroughness');
    const { faults, refusals } = await judgeTraces(traces, decideInRedis);
    expect(faults).toEqual([]);
    expect(refusals).toBeGreaterThan(5 * traces);
  },
);
