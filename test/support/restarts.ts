/** Gateways that are restarted, and workers that are killed, while keep-alive clients go on asking. */
import { type Closers, sleep } from './faults-world.ts';
import { Balancer } from './balancer.ts';
import type { Sample } from './load-commands.ts';
import { Load } from './load.ts';
import { anEvaluation, WORKSPACE_A } from './records.ts';
import { startRedis } from './redis.ts';
import { Served } from './served.ts';
import { createStoreServer, sendJson, type StoreServer } from './store-server.ts';

/** As many reads wait for the store as are answered from memory, so that there is always something in flight. */
const STORE_MS = 50;
const IDS = 200;
const FRESH = '1s';
const LOAD_PER_SECOND = 200;
/** The default: many times as long as the balancer takes to look again. */
const DRAIN_DELAY = '2s';

export interface Restarts {
  readonly requests: number;
  readonly failed: readonly Sample[];
  /** Why the balancer failed requests. */
  readonly reasons: readonly string[];
  /** How each ended: exit status or signal. */
  readonly ends: readonly (number | string | null)[];
}

/** Each of two gateways in turn is stopped by SIGTERM and started anew, so many times in all. */
export async function rollingRestarts(times: number, closers: Closers): Promise<Restarts> {
  const world = await startWorld(closers);
  const balancer = await closers.keep(Balancer.start(), (opened) => opened.close());
  const members: Served[] = [];
  const startOne = async (): Promise<Served> => {
    const started = await closers.keep(Served.start(world.env), (opened) => opened.kill());
    members.push(started);
    await balancer.add(started);
    return started;
  };
  const { token } = await (await startOne()).issueKey();
  await startOne();
  await world.begin(balancer.url, token);
  const ends: Restarts['ends'][number][] = [];
  while (ends.length < times) {
    const old = members.shift();
    if (old === undefined) throw new Error('There is no gateway.');
    const [code, signal] = await old.stop();
    ends.push(code ?? signal);
    balancer.remove(old);
    await startOne();
  }
  const samples = await world.load.end();
  return { requests: samples.length, failed: failuresOf(samples), reasons: balancer.failures, ends };
}

export interface Crashes {
  readonly requests: number;
  readonly failed: readonly Sample[];
  /** Those of them that were not under way as a worker was killed. */
  readonly unexplained: readonly Sample[];
  readonly kills: number;
  /** Milliseconds from each kill until the process was seen to be gone: so long its connections may have stood. */
  readonly goneMs: readonly number[];
  /** Milliseconds from each kill until as many workers were ready as before. */
  readonly replacedMs: readonly number[];
}

/** A connection's end may be read a moment after the next request was written to it. */
const TOLD_WITHIN_MS = 100;
/** Between one that is ready and the next kill: longer than what counts as a crash at once. */
const BETWEEN_KILLS_MS = 2100;

/** One of two workers of a gateway is killed (SIGKILL), so many times, always the one that is there longest. */
export async function workerCrashes(times: number, closers: Closers): Promise<Crashes> {
  const world = await startWorld(closers);
  const gateway = await closers.keep(Served.start({ ...world.env, WORKERS: '2' }), (opened) => opened.kill());
  const { token } = await gateway.issueKey();
  await world.begin(gateway.publicUrl, token);
  const kills: { readonly fromMs: number; readonly toMs: number }[] = [];
  const replacedMs: number[] = [];
  while (kills.length < times) {
    await sleep(BETWEEN_KILLS_MS);
    const pid = gateway.workerPids[kills.length];
    if (pid === undefined) throw new Error('There is no worker.');
    const fromMs = Date.now();
    process.kill(pid, 'SIGKILL');
    // A busy machine takes its time: until then its connections stand, and requests go to where nobody reads them.
    kills.push({ fromMs, toMs: await gateway.untilEnded(pid) });
    await gateway.untilReady(2 + kills.length);
    replacedMs.push(Date.now() - fromMs);
  }
  const samples = await world.load.end();
  const failed = failuresOf(samples);
  const isUnderWay = ({ atMs, tookMs }: Sample): boolean =>
    kills.some(({ fromMs, toMs }) => atMs <= toMs + TOLD_WITHIN_MS && atMs + tookMs >= fromMs - 1);
  const unexplained = failed.filter((sample) => !isUnderWay(sample));
  const goneMs = kills.map(({ fromMs, toMs }) => toMs - fromMs);
  return { requests: samples.length, failed, unexplained, kills: kills.length, goneMs, replacedMs };
}

interface World {
  readonly env: Readonly<Record<string, string>>;
  readonly load: Load;
  begin(url: string, key: string): Promise<void>;
}

async function startWorld(closers: Closers): Promise<World> {
  const redis = await closers.keep(startRedis(), (opened) => opened.close());
  const store = await closers.keep(slowStore(), (opened) => opened.close());
  const load = await closers.keep(Load.start(), (opened) => opened.close());
  const env = {
    UPSTREAM_URL: store.url,
    UPSTREAM_TOKEN: store.token,
    REDIS_URL: redis.url,
    CACHE_EVALUATION_FRESH: FRESH,
    CACHE_EVALUATION_STALE: '0s',
    DRAIN_DELAY,
    LOG_LEVEL: 'info',
  };
  const begin = (url: string, key: string): Promise<void> => {
    const paths = Array.from({ length: IDS }, (_, i) => [
      `/v2/calls/ev_${i}`,
      `/v1/workspaces/${WORKSPACE_A}/reports/ev_${i}`,
    ]);
    return load.begin(
      paths.flat().map((path) => ({ url: url + path, key, tag: '' })),
      LOAD_PER_SECOND,
    );
  };
  return { env, load, begin };
}

async function slowStore(): Promise<StoreServer> {
  const store = await createStoreServer();
  store.override(/\/evaluations\/[^/]+$/, (request, response) => {
    const record = anEvaluation({ _id: request.url?.split('/').at(-1) ?? '' });
    setTimeout(() => sendJson(request, response, record), STORE_MS);
  });
  return store;
}

function failuresOf(samples: readonly Sample[]): readonly Sample[] {
  return samples.filter(({ status }) => status !== 200);
}
