/** A store whose capacity nobody has configured: what it is used for, against the best limit that could be configured. */
import { onTestFinished, test } from 'vitest';
import { type Capacity, CurvedStore, type Measured, slowerBeyond } from '../support/curved-store.ts';
import { fileOf } from '../support/files.ts';
import { closedLoop } from '../support/load.ts';
import { forTest } from '../support/opened.ts';
import { GatewayProcess } from '../support/process.ts';
import { startRedis } from '../support/redis.ts';
import { ms, percent, prove } from './bar.ts';

const READERS = 40;
const KEYS = 5;
const MEASURED_S = 12;

interface Outcome extends Measured {
  readonly perSecond: number;
  readonly p99Ms: number;
  /** Of the store's answers. */
  readonly share503: number;
  /** Of the reads. */
  readonly shareRefused: number;
}

/** Readers who each ask for one cold record after the other, from several keys. */
class Readers {
  readonly #gateway: GatewayProcess;
  readonly #store: CurvedStore;
  readonly #keys: readonly string[];
  #asked = 0;

  constructor(gateway: GatewayProcess, store: CurvedStore, keys: readonly string[]) {
    this.#gateway = gateway;
    this.#store = store;
    this.#keys = keys;
  }

  async read(seconds: number): Promise<Outcome> {
    const requests = this.#keys.map((key) => ({ path: '/v2/calls/c{n}', headers: { authorization: `Bearer ${key}` } }));
    // No number comes twice, so that every read is cold.
    const firstNumber = (this.#asked += 1_000_000);
    const options = { url: this.#gateway.publicUrl, requests, connections: READERS, seconds, firstNumber };
    const [reads, measured] = await this.#store.measure(() => closedLoop(options));
    const served = reads.statuses['200'] ?? 0;
    return {
      ...measured,
      perSecond: served / reads.seconds,
      p99Ms: reads.latencyMs.p99,
      share503: measured.refused / Math.max(1, measured.refused + measured.answered),
      shareRefused: 1 - served / Math.max(1, reads.requests),
    };
  }
}

/** A gateway in front of the store; `fixed`: with that limit, else it finds its own. */
async function startReaders(store: CurvedStore, fixed: number | null, env: Readonly<Record<string, string>> = {}) {
  const limit = fixed === null ? '' : `adaptive: false, maxConnections: ${fixed}, `;
  const file = fileOf(`upstream: {${limit}reservePercent: 20}\n`);
  const gateway = await GatewayProcess.start({ env: { ...store.env, CONFIG_FILE: file, LOG_LEVEL: 'fatal', ...env } });
  onTestFinished(() => gateway.kill());
  const keys: string[] = [];
  for (let issued = 0; issued < KEYS; issued += 1) keys.push(await gateway.issueKey());
  const readers = new Readers(gateway, store, keys);
  return { readers, stop: () => gateway.kill() };
}

async function fixedAt(store: CurvedStore, limit: number): Promise<Outcome> {
  const { readers, stop } = await startReaders(store, limit);
  await readers.read(3);
  const outcome = await readers.read(MEASURED_S);
  await stop();
  return outcome;
}

/** The best of these fixed limits: the most throughput, and of nearly equal ones the shortest waits. */
async function bestOf(store: CurvedStore, limits: readonly number[]): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (const limit of limits) outcomes.push(await fixedAt(store, limit));
  const most = Math.max(...outcomes.map(({ perSecond }) => perSecond));
  const good = outcomes.filter(({ perSecond }) => perSecond >= 0.95 * most);
  return good.reduce((best, one) => (one.p99Ms < best.p99Ms ? one : best));
}

async function startStore(capacity: Capacity): Promise<CurvedStore> {
  return await forTest(CurvedStore.start(capacity));
}

function textOf({ perSecond, p99Ms, inFlight, share503, shareRefused }: Outcome): string {
  return `${perSecond.toFixed(1)}/s, p99 ${ms(p99Ms)}, ${inFlight.toFixed(1)} under way, ${percent(share503)} of calls 503, ${percent(shareRefused)} of reads refused`;
}

function isAsGoodAs(found: Outcome, best: Outcome): boolean {
  return (
    found.perSecond >= 0.9 * best.perSecond &&
    found.p99Ms <= 1.5 * best.p99Ms &&
    found.share503 <= 0.02 &&
    found.shareRefused <= 0.05
  );
}

const BAR =
  'throughput at least 0.9 × the best fixed limit, p99 at most 1.5 ×, at most 2 % of calls 503 and 5 % of reads refused';
const REFUSES_ABOVE = 24;

function bears(calls: number): Capacity {
  return { latencyMs: slowerBeyond(calls), refusesAbove: REFUSES_ABOVE };
}

test('one process finds what the store bears, and follows it', async (context) => {
  const [settledMs, followsDownMs, followsUpMs] = [10_000, 10_000, 30_000];
  const store = await startStore(bears(4));
  const best = await bestOf(store, [3, 4, 6, 8]);
  const { readers } = await startReaders(store, null);
  await readers.read(settledMs / 1000);
  const found = await readers.read(MEASURED_S);
  store.become(bears(2));
  await readers.read(followsDownMs / 1000);
  const halved = await readers.read(MEASURED_S);
  store.become(bears(4));
  await readers.read(followsUpMs / 1000);
  const doubled = await readers.read(MEASURED_S);
  store.become(bears(2));
  const bestOfHalf = await bestOf(store, [2, 3]);
  prove(
    context,
    {
      name: 'capacity 4: found',
      bar: `${BAR}, ${ms(settledMs)} after the start`,
      measured: `${textOf(found)}; the best fixed: ${textOf(best)}`,
      ok: isAsGoodAs(found, best),
    },
    {
      name: 'capacity halved',
      bar: `${BAR}, ${ms(followsDownMs)} later`,
      measured: `${textOf(halved)}; the best fixed: ${textOf(bestOfHalf)}`,
      ok: isAsGoodAs(halved, bestOfHalf),
    },
    {
      name: 'capacity doubled',
      bar: `${BAR}, ${ms(followsUpMs)} later`,
      measured: `${textOf(doubled)}; the best fixed: ${textOf(best)}`,
      ok: isAsGoodAs(doubled, best),
    },
  );
});

test.for([2, 4])('%i processes find it together', async (count, context) => {
  const store = await startStore(bears(4));
  const best = await bestOf(store, [4, 6]);
  const redis = await forTest(startRedis());
  const { readers } = await startReaders(store, null, { REDIS_URL: redis.url, WORKERS: String(count) });
  await readers.read(10);
  const found = await readers.read(MEASURED_S);
  prove(context, {
    name: `capacity 4: found by ${count} processes`,
    bar: `${BAR}, 10 s after the start`,
    measured: `${textOf(found)}; the best fixed of one process: ${textOf(best)}`,
    ok: isAsGoodAs(found, best),
  });
});

const EVEN: Readonly<Record<string, Capacity['latencyMs']>> = {
  'of 800 ms': () => 800,
  'of 400 and 40 ms': () => (Math.random() < 0.5 ? 400 : 40),
};

test.for(Object.entries(EVEN))('a store %s that bears whatever it is asked', async ([name, latencyMs], context) => {
  const store = await startStore({ latencyMs });
  const fixed = await fixedAt(store, 50);
  const { readers } = await startReaders(store, null);
  await readers.read(20);
  const found = await readers.read(2 * MEASURED_S);
  prove(context, {
    name: `a store ${name}`,
    bar: 'throughput at least 0.95 × that with a fixed limit of 50, 20 s after the start',
    measured: `${textOf(found)}; fixed: ${textOf(fixed)}`,
    ok: found.perSecond >= 0.95 * fixed.perSecond,
  });
});
