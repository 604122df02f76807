/** A soak: mixed load with faults at random, each failed request judged against what was done at the time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Closers } from '../faults-world.ts';
import { SeededRandom } from '../random.ts';
import { withClient } from '../redis/client.ts';
import { type Failure, FaultLog } from './fault-log.ts';
import { DOINGS, doTo } from './faults.ts';
import { Traffic } from './traffic.ts';
import { floors, mean, type Reading, slopePerHour } from './trend.ts';
import { SoakWorld } from './world.ts';

const CONSUMERS = 12;
const LIMITED_PER_MINUTE = 30;
const LOOK_EVERY_MS = 2000;
/** What is judged by its trend is looked at from then on. */
const WARM_UP_SHARE = 1 / 3;
const FLOOR_WINDOW_MS = 15_000;

export interface SoakOptions {
  readonly forMs: number;
  readonly perSecond: number;
  readonly seed: number;
  /** How long a fault lasts, and how long nothing is done after it. */
  readonly holdMs: readonly [from: number, to: number];
  readonly calmMs: readonly [from: number, to: number];
}

export interface Soaked {
  readonly requests: number;
  readonly statuses: ReadonlyMap<number, number>;
  readonly longestMs: number;
  readonly failed: number;
  readonly unexplained: readonly Failure[];
  readonly faults: ReadonlyMap<string, number>;
  /** The share of the time in which any failure would be unexplained. */
  readonly calmShare: number;
  readonly foundSecrets: readonly string[];
  readonly searched: number;
  readonly meanBytes: number;
  readonly bytesPerHour: number;
  /** The 99th percentiles of the event loop's lag, a value a look. Seconds. */
  readonly lagsSeconds: readonly number[];
}

export async function soak(options: SoakOptions): Promise<Soaked> {
  const closers = new Closers();
  try {
    return await soakIn(await SoakWorld.start(closers), options);
  } finally {
    await closers.close();
  }
}

async function soakIn(world: SoakWorld, { forMs, perSecond, seed, holdMs, calmMs }: SoakOptions): Promise<Soaked> {
  const { records, redis, secrets } = world.parts;
  const failures: Failure[] = [];
  const onFailure = (failure: Failure): void => void failures.push(failure);
  const traffic = new Traffic({ urls: world.urls, records, random: new SeededRandom(seed), secrets, onFailure });
  for (let i = 0; i < CONSUMERS; i += 1) traffic.consumers.push(await world.issue());
  traffic.consumers.push(await world.issue({ perMinute: LIMITED_PER_MINUTE }));
  const log = new FaultLog();
  const random = new SeededRandom(seed + 1);
  const watch = new Watch(world);
  const beganMs = Date.now();
  traffic.begin(perSecond);
  // All of them come once before any comes again, in an order of its own each time.
  for (let left = [...DOINGS]; Date.now() - beganMs < forMs; left = left.length === 0 ? [...DOINGS] : left) {
    await sleep(random.integer(...calmMs));
    const [doing] = left.splice(random.integer(0, left.length - 1), 1);
    if (doing !== undefined) await doTo(world, doing, { log, traffic, holdMs: random.integer(...holdMs) });
  }
  await sleep(calmMs[1]);
  await traffic.end();
  const endedMs = Date.now();
  await watch.end();
  await withClient(redis.url, (client) => secrets.searchRedis(client));
  const steady = watch.resident.filter(({ atMs }) => atMs >= beganMs + WARM_UP_SHARE * (endedMs - beganMs));
  const lows = floors(steady, FLOOR_WINDOW_MS);
  return {
    requests: traffic.requests,
    statuses: traffic.statuses,
    longestMs: traffic.longestMs,
    failed: failures.length,
    unexplained: failures
      .filter((failure) => !log.isExplained(failure))
      .map((failure) => ({ ...failure, what: `${failure.what}, ${log.before(failure.toMs)}` })),
    faults: log.counts(),
    calmShare: log.calmShare(beganMs, endedMs),
    foundSecrets: secrets.found,
    searched: secrets.searched,
    meanBytes: mean(lows.map(({ value }) => value)),
    bytesPerHour: slopePerHour(lows),
    lagsSeconds: watch.lagsSeconds,
  };
}

/** Looks at the gateways again and again. */
class Watch {
  readonly resident: Reading[] = [];
  readonly lagsSeconds: number[] = [];
  readonly #world: SoakWorld;
  readonly #watching: Promise<void>;
  #isOver = false;

  constructor(world: SoakWorld) {
    this.#world = world;
    this.#watching = this.#watch();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      this.resident.push({ atMs: Date.now(), value: this.#world.residentBytes() });
      // A worker that is killed takes its connections of the admin listener along.
      const looked = await this.#world.look().catch(() => null);
      if (looked !== null) this.lagsSeconds.push(looked.lagSeconds);
      await sleep(LOOK_EVERY_MS);
    }
  }
}
