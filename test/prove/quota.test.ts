/** The exact quota: the pure algorithm, four processes on one Redis, near and far, clients that obey `Retry-After`, the cost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test, vi } from 'vitest';
import { forTest } from '../support/opened.ts';
import { median } from '../bench/gateway/measure.ts';
import { Fleet } from '../support/fleet.ts';
import { judgeTraces } from '../support/quota-traces.ts';
import { SeededRandom } from '../support/random.ts';
import { withClient } from '../support/redis/client.ts';
import { isOneServer } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { count, mostWithin, prove } from './bar.ts';

const PROCESSES = 4;
const PATH = '/v2/calls/warm';
const MINUTE_MICROS = 60_000_000;

async function startFleet(): Promise<Fleet> {
  const env = { CACHE_EVALUATION_FRESH: '1h' };
  const fleet = await forTest(Fleet.start({ gateways: PROCESSES, redis: {}, env }));
  return fleet;
}

interface Answer {
  readonly status: number;
  readonly minuteRemaining: number;
  readonly hourRemaining: number;
  readonly retryAfterSeconds: number;
}

async function ask(fleet: Fleet, gateway: number, key: string): Promise<Answer> {
  const response = await fleet.gateway(gateway).get(PATH, key);
  await response.arrayBuffer();
  const number = (name: string): number => Number(response.headers.get(name));
  return {
    status: response.status,
    minuteRemaining: number('x-ratelimit-minute-remaining'),
    hourRemaining: number('x-ratelimit-hour-remaining'),
    retryAfterSeconds: number('retry-after'),
  };
}

/** The name of the one log of admitted requests that Redis holds, and the server that holds it. */
async function findLog({ redis }: Fleet): Promise<{ readonly url: string; readonly log: string }> {
  for (const url of redis.servers) {
    const [log] = await withClient(url, (client) => client.keys('evalgate:{quota-*}:*:log'));
    if (log !== undefined) return { url, log };
  }
  throw new Error('Redis holds no log of admitted requests.');
}

test('the pure algorithm', async (context) => {
  const traces = 10_000;
  const { decisions, refusals, faults } = await judgeTraces(traces);
  prove(context, {
    name: 'quota, pure algorithm',
    bar: `${count(traces)} random traces, decided as by an oracle that goes through the whole log`,
    measured: `${count(decisions)} decisions, ${count(refusals)} refusals: ${faults[0] ?? 'all as the oracle'}`,
    // Traces that hardly refuse would show nothing.
    ok: faults.length === 0 && refusals > 5 * traces,
  });
});

test('a fleet', async (context) => {
  const [perMinute, perHour, forMs] = [40, 110, 150_000];
  const fleet = await startFleet();
  const key = await fleet.first.issueKey({ perMinute, perHour });
  const untilMs = performance.now() + forMs;
  /** Bursts, often just as room is given back. */
  const hammer = async (gateway: number): Promise<readonly Answer[]> => {
    const random = new SeededRandom(gateway + 1);
    const answers: Answer[] = [];
    while (performance.now() < untilMs) {
      const burst = Array.from({ length: random.integer(1, 12) }, () => ask(fleet, gateway, key));
      answers.push(...(await Promise.all(burst)));
      await sleep(random.integer(0, 100));
    }
    return answers;
  };
  const byProcess = await Promise.all(Array.from({ length: PROCESSES }, (_, gateway) => hammer(gateway)));
  const answers = byProcess.flat();
  const admitted = answers.filter(({ status }) => status === 200);
  const { url, log } = await findLog(fleet);
  const times = (await withClient(url, (client) => client.lrange(log, 0, -1))).map(Number);
  const fullest = mostWithin(times, MINUTE_MICROS);
  // Nothing leaves the hour meanwhile, so each admitted request has a number of its own.
  const hourRemaining = admitted.map((answer) => answer.hourRemaining).toSorted((a, b) => b - a);
  const isNumbered = hourRemaining.every((remaining, index) => remaining === perHour - 1 - index);
  const others = answers.filter(({ status }) => status !== 200 && status !== 429).length;
  const perProcess = byProcess.map((own) => own.filter(({ status }) => status === 200).length);
  prove(context, {
    name: 'quota, fleet',
    bar: `${PROCESSES} processes, bursts for ${forMs / 1000} s: never over ${perMinute} in any trailing 60 s, all ${perHour} of the hour given, each admitted request with its own exact rest`,
    measured: `${count(answers.length)} requests, ${admitted.length} admitted (${perProcess.join(', ')}), ${times.length} in Redis's log; fullest minute ${fullest}; ${isNumbered ? 'every rest exact' : `rests ${hourRemaining.join()}`}; ${others} other answers`,
    ok:
      fullest === perMinute &&
      admitted.length === perHour &&
      times.length === perHour &&
      isNumbered &&
      others === 0 &&
      perProcess.every((own) => own > 0) &&
      admitted.every(({ minuteRemaining }) => minuteRemaining >= 0 && minuteRemaining < perMinute),
  });
});

/** Milliseconds from a command to its reply, of each gateway; some vary by 10 ms. */
const DISTANCES = [
  [0, 100],
  [80, 80],
  [100, 150],
  [0, 200],
  [0, 80, 100, 150],
  [80, 150, 200, 200],
];

/** Gateways in front of one Redis, each behind a proxy of its own. */
async function startDistantFleet(size: number): Promise<{ fleet: Fleet; proxies: readonly TcpProxy[] }> {
  const fleet = await forTest(Fleet.start({ gateways: 0, redis: {}, env: { CACHE_EVALUATION_FRESH: '1h' } }));
  const proxies: TcpProxy[] = [];
  for (let i = 0; i < size; i += 1) {
    const proxy = await forTest(TcpProxy.start(fleet.redis.url));
    proxies.push(proxy);
    await fleet.add({ REDIS_URL: proxy.url });
  }
  return { fleet, proxies };
}

/** The answers to a burst and a stream of requests with a new key at each of the first gateways. */
async function overrun(fleet: Fleet, gateways: number, perMinute: number): Promise<readonly Answer[]> {
  const key = await fleet.first.issueKey({ perMinute, perHour: 1000 });
  for (const gateway of fleet.gateways) {
    await vi.waitUntil(async () => (await gateway.status('/v2/key', key)) === 200, { timeout: 10_000 });
  }
  const stream = async (gateway: number): Promise<readonly Answer[]> => {
    const answers: Promise<Answer>[] = [];
    for (let round = 0; round < 30; round += 1) {
      answers.push(ask(fleet, gateway, key));
      await sleep(30);
    }
    return Promise.all(answers);
  };
  const burst = Promise.all(Array.from({ length: 2 * perMinute + 20 }, (_, i) => ask(fleet, i % gateways, key)));
  const streams = Array.from({ length: gateways }, (_, gateway) => stream(gateway));
  return (await Promise.all([burst, ...streams])).flat();
}

// A proxy can't stand before a Cluster.
test.runIf(isOneServer)('a Redis far away', async (context) => {
  const limits = [1, 5, 120];
  const { fleet, proxies } = await startDistantFleet(4);
  const inexact: string[] = [];
  let requests = 0;
  for (const distances of DISTANCES) {
    for (const [index, proxy] of proxies.entries()) {
      const delayMs = (distances[index] ?? 0) / 2;
      for (const way of ['upstream', 'downstream'] as const) proxy.delay(way, delayMs, delayMs === 40 ? 5 : 0);
    }
    for (const perMinute of limits) {
      const statuses = (await overrun(fleet, distances.length, perMinute)).map(({ status }) => status);
      requests += statuses.length;
      const admitted = statuses.filter((status) => status === 200).length;
      const others = statuses.filter((status) => status !== 200 && status !== 429).length;
      if (admitted !== perMinute || others > 0) {
        inexact.push(`${distances.join(', ')} ms: ${admitted} of ${perMinute}, ${others} other answers`);
      }
    }
  }
  prove(context, {
    name: 'quota, far from Redis',
    bar: `2 and 4 processes up to 200 ms away from Redis, each at another distance, limits of ${limits.join(', ')}, bursts and streams: exactly the limit admitted`,
    measured: `${count(requests)} requests in ${DISTANCES.length * limits.length} runs: ${inexact.join('; ') || 'all exact'}`,
    ok: inexact.length === 0,
  });
});

interface Followed {
  /** The answer to one that came a second or more before that; null if there was no such second. */
  readonly early: number | null;
  readonly later: number;
}

test('Retry-After', async (context) => {
  const clients = 200;
  const fleet = await startFleet();
  // One after another: the admin listener has a limit on the connections of one address.
  const keys: string[] = [];
  for (let index = 0; index < clients; index++) {
    keys.push(await fleet.first.issueKey({ perMinute: new SeededRandom(index + 1).integer(1, 4), perHour: 1000 }));
  }
  const follow = async (key: string, index: number): Promise<Followed> => {
    const random = new SeededRandom(index + 1);
    for (;;) {
      await sleep(random.integer(0, 3000));
      const askedAtMs = performance.now();
      const { status, retryAfterSeconds } = await ask(fleet, random.integer(0, PROCESSES - 1), key);
      const answeredAtMs = performance.now();
      if (status === 200) continue;
      const earlyInMs = askedAtMs + (retryAfterSeconds - 1) * 1000 - 100 - performance.now();
      await sleep(Math.max(0, earlyInMs));
      const sentAtMs = performance.now();
      const early = await ask(fleet, random.integer(0, PROCESSES - 1), key);
      // Held up on the way, it may have come in time after all.
      const isEarly = performance.now() <= askedAtMs + (retryAfterSeconds - 1) * 1000 && sentAtMs > answeredAtMs;
      await sleep(answeredAtMs + retryAfterSeconds * 1000 - performance.now() + 1);
      const later = await ask(fleet, random.integer(0, PROCESSES - 1), key);
      return { early: isEarly ? early.status : null, later: later.status };
    }
  };
  const followed = await Promise.all(keys.map(follow));
  const early = followed.filter((one) => one.early !== null);
  const earlyAdmitted = early.filter((one) => one.early !== 429).length;
  const laterRefused = followed.filter(({ later }) => later !== 200).length;
  prove(context, {
    name: 'quota, Retry-After',
    bar: `${clients} clients that wait as long as it says are admitted, those that come a second earlier are not`,
    measured: `${clients} waited, ${laterRefused} of them refused; ${early.length} came early, ${earlyAdmitted} of them admitted`,
    ok: laterRefused === 0 && earlyAdmitted === 0 && early.length > clients / 5,
  });
});

test('the cost in Redis', async (context) => {
  const [entries, rounds, requests, allowedMicros, allowedRatio] = [1000, 31, 40, 50, 1.5];
  const fleet = await startFleet();
  const key = await fleet.first.issueKey();
  await ask(fleet, 0, key);
  const { url, log } = await findLog(fleet);
  const costs = await withClient(url, async (client) => {
    const scripts = async (): Promise<readonly [calls: number, micros: number]> => {
      const found = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await client.info('commandstats'));
      return [Number(found?.[1]), Number(found?.[2])];
    };
    /** The mean of requests that come one after the other. */
    const costWith = async (held: number): Promise<number> => {
      const nowMicros = Date.now() * 1000;
      await client.del(log);
      await client.rpush(log, ...Array.from({ length: held }, (_, i) => nowMicros - (held - i) * 3_500_000));
      await ask(fleet, 0, key);
      const [callsBefore, microsBefore] = await scripts();
      for (let request = 0; request < requests; request += 1) await ask(fleet, 0, key);
      const [calls, micros] = await scripts();
      return (micros - microsBefore) / (calls - callsBefore);
    };
    const pairs: { readonly empty: number; readonly full: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      pairs.push({ empty: await costWith(1), full: await costWith(entries) });
    }
    return pairs;
  });
  // The medians: others may be at work on the same machine, and other scripts of the gateways are counted with these.
  const full = median(costs.map((pair) => pair.full));
  const ratio = median(costs.map((pair) => pair.full / pair.empty));
  prove(context, {
    name: 'quota, cost',
    bar: `with ${count(entries)} requests in the log at most ${allowedMicros} µs of Redis's time per request that comes alone, and at most ${allowedRatio} × what it takes with an empty log`,
    measured: `${full.toFixed(1)} µs: ${ratio.toFixed(2)} × an empty log, medians of ${rounds} rounds`,
    ok: full <= allowedMicros && ratio <= allowedRatio,
  });
});
