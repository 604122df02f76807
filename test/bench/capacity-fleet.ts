/** Gateways at a fixed rate, and all that it costs: one point of the measurement. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { z } from 'zod';
import type { Bench } from './gateway/bench.ts';
import type { Evalgate } from './gateway/evalgate.ts';
import { firstDocument, launch, OTHER_CORE } from './gateway/processes.ts';
import { KINDS } from './capacity-mix.ts';
import { type GatewayCounters, readCounters, readGateway, type RedisCounters } from './capacity-readings.ts';
import type { RedisInUse, Store } from './capacity-world.ts';

const DRIVER = fileURLToPath(new URL('./capacity-driver.ts', import.meta.url));
/** To each gateway. */
const CONNECTIONS = 16;
const WARM_UP_SECONDS = 12;
/** So that lists are filled, and then refreshed, evenly over the 30 s for which they are fresh. */
const FILL_RATE = 400;
const LISTEN_SECONDS = 5;
/** So that what is read fits in. */
const MEMORY = '256MB';

const drivenSchema = z.object({
  requests: z.number(),
  errors: z.number(),
  statuses: z.record(z.string(), z.number()),
  sentBytes: z.number(),
  firstOther: z.string().nullable(),
  kinds: z.record(z.enum(KINDS), z.object({ requests: z.number(), bytes: z.number() })),
  latencyMs: z.object({ p50: z.number(), p99: z.number() }),
});
export type Driven = z.output<typeof drivenSchema>;

export interface FleetOptions {
  readonly gateways: number;
  readonly state: RedisInUse;
  readonly cache: RedisInUse;
  readonly store: Store;
  /** Tokens. */
  readonly keys: readonly string[];
  /** Requests a second to each. */
  readonly warmUpRate: number;
  /** Other than the default. */
  readonly listFresh?: string;
  /** Of the memory tier, as the setting takes it. With 0B every read is one from Redis. */
  readonly memory?: string;
}

/** What channels are called in tables, by how their names begin. */
const CHANNELS = { 'what-if': 'what-if', 'keys:beat': 'beat', members: 'members', cache: 'flights' } as const;
export type Channel = (typeof CHANNELS)[keyof typeof CHANNELS];

/** Per second, of all gateways together, unless it says otherwise. */
export interface Point {
  readonly gateways: number;
  readonly freshSeconds: number;
  readonly memory: string;
  readonly requests: number;
  readonly gatewayCpuMicros: number;
  /** Of one gateway at the end, on average. Bytes. */
  readonly residentBytes: number;
  readonly hitRatio: number;
  readonly redisHits: number;
  readonly storeCalls: number;
  readonly storeBytes: number;
  readonly state: RedisLoad;
  readonly cache: RedisLoad;
  /** Messages published. */
  readonly messages: Readonly<Record<Channel, number>>;
  readonly driven: Driven;
  /**
   * Requests that were answered neither 200 nor 304, or not in time: on a machine that is too slow for the rate, and where
   * gateways go on alone for moments.
   */
  readonly others: number;
}

export interface RedisLoad {
  readonly cpuMicros: number;
  readonly commands: number;
  /** Calls that carry requests' quotas, where it is the state's. */
  readonly scripts: number;
  readonly inBytes: number;
  readonly outBytes: number;
  readonly appendedBytes: number;
  /** Connections that stand, not a rate. */
  readonly connections: number;
}

interface Look {
  readonly atMs: number;
  readonly state: RedisCounters;
  readonly cache: RedisCounters;
  readonly store: Awaited<ReturnType<Store['counts']>>;
  readonly gateways: readonly GatewayCounters[];
  readonly connections: { readonly state: number; readonly cache: number };
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #gateways: readonly Evalgate[];

  private constructor(options: FleetOptions, gateways: readonly Evalgate[]) {
    this.#options = options;
    this.#gateways = gateways;
  }

  /** Resolves once all of them are warm: everything that is read is cached, and V8 has compiled what is hot. */
  static async start(bench: Bench, options: FleetOptions): Promise<Fleet> {
    const { state, cache, store, listFresh = '30s', memory = MEMORY } = options;
    const file = `cache:\n  memory: ${memory}\n`;
    const env = {
      REDIS_URL: state.url,
      REDIS_CACHE_URL: cache.url,
      UPSTREAM_URL: store.url,
      UPSTREAM_TOKEN: store.token,
      // The defaults, which the benchmark has otherwise.
      CACHE_LIST_FRESH: listFresh,
      CACHE_EVALUATION_FRESH: '5m',
      CACHE_TRANSCRIPT_FRESH: '1h',
    };
    const gateways = await Promise.all(Array.from({ length: options.gateways }, () => bench.evalgate({ env, file })));
    const fleet = new Fleet(options, gateways);
    await fleet.drive({ ratePerTarget: FILL_RATE, seconds: null });
    await fleet.drive({ ratePerTarget: options.warmUpRate, seconds: WARM_UP_SECONDS });
    return fleet;
  }

  /** `rate` requests a second to each gateway for that time; for 0, what they cost when nobody asks. */
  async measure(rate: number, seconds: number): Promise<Point> {
    const before = await this.#look();
    const driven = rate === 0 ? await idle(seconds) : await this.drive({ ratePerTarget: rate, seconds });
    const after = await this.#look();
    const elapsed = (after.atMs - before.atMs) / 1000;
    const perSecond = (of: (look: Look) => number): number => (of(after) - of(before)) / elapsed;
    const total = (of: (one: GatewayCounters) => number) => perSecond(({ gateways }) => sumOf(gateways.map(of)));
    const redis = (role: 'state' | 'cache'): RedisLoad => ({
      cpuMicros: perSecond((look) => look[role].cpuMicros),
      commands: total((one) => (role === 'state' ? one.stateCommands : one.cacheCommands)),
      scripts: perSecond((look) => look[role].calls.get('evalsha') ?? 0),
      inBytes: perSecond((look) => look[role].inBytes),
      outBytes: perSecond((look) => look[role].outBytes),
      appendedBytes: perSecond((look) => look[role].appendedBytes),
      connections: after.connections[role],
    });
    const reads = total((one) => one.reads);
    return {
      gateways: this.#options.gateways,
      freshSeconds: Number.parseInt(this.#options.listFresh ?? '30', 10),
      memory: this.#options.memory ?? MEMORY,
      requests: driven.requests / elapsed,
      gatewayCpuMicros: total((one) => one.cpuMicros),
      residentBytes: sumOf(after.gateways.map((one) => one.residentBytes)) / this.#options.gateways,
      hitRatio: reads === 0 ? 1 : total((one) => one.memoryHits + one.redisHits) / reads,
      redisHits: total((one) => one.redisHits),
      storeCalls: perSecond(({ store }) => store.calls),
      storeBytes: perSecond(({ store }) => store.bytes),
      state: redis('state'),
      cache: redis('cache'),
      messages: await this.#listen(rate),
      driven,
      others: driven.errors + driven.requests - (driven.statuses['200'] ?? 0) - (driven.statuses['304'] ?? 0),
    };
  }

  /** Of one of its gateways. */
  async told<T>(tell: (gateway: Evalgate) => Promise<T>): Promise<T> {
    const [first] = this.#gateways;
    if (first === undefined) throw new Error('there is no gateway to ask');
    return await tell(first);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#gateways.map((gateway) => gateway.stop()));
  }

  async drive(load: { readonly ratePerTarget: number; readonly seconds: number | null }): Promise<Driven> {
    const folder = await mkdtemp(join(tmpdir(), 'evalgate-capacity-'));
    const file = join(folder, 'load.json');
    const targets = this.#gateways.map(({ url }) => url);
    const seed = Math.floor(Math.random() * 2 ** 32);
    await writeFile(
      file,
      JSON.stringify({ ...load, targets, keys: this.#options.keys, connections: CONNECTIONS, seed }),
    );
    const { child } = launch({ core: OTHER_CORE, command: [process.execPath, DRIVER, file] });
    const driven = await firstDocument(child, drivenSchema);
    await rm(folder, { recursive: true });
    return driven;
  }

  async #look(): Promise<Look> {
    const { state, cache, store } = this.#options;
    const [ofState, ofCache, ofStore, ...gateways] = await Promise.all([
      readCounters(state.nodes),
      readCounters(cache.nodes),
      store.counts(),
      ...this.#gateways.map(readGateway),
    ]);
    const connections = { state: await connectionsTo(state), cache: await connectionsTo(cache) };
    return { atMs: performance.now(), state: ofState, cache: ofCache, store: ofStore, gateways, connections };
  }

  /** Counts messages while the same load goes on. After the measurement: each listener is one more that Redis tells. */
  async #listen(rate: number): Promise<Point['messages']> {
    const counts = { 'what-if': 0, beat: 0, members: 0, flights: 0 };
    const ears = await Promise.all(
      [this.#options.state, this.#options.cache].map(async ({ nodes }) => {
        const ear = nodes[0]?.client.duplicate() ?? new Redis();
        ear.on('pmessage', (_pattern: string, channel: string) => {
          const channelKind = kindOf(channel);
          if (channelKind !== null) counts[channelKind] += 1;
        });
        await ear.psubscribe('evalgate:channel:*');
        return ear;
      }),
    );
    const startedMs = performance.now();
    if (rate === 0) await sleep(LISTEN_SECONDS * 1000);
    else await this.drive({ ratePerTarget: rate, seconds: LISTEN_SECONDS });
    const seconds = (performance.now() - startedMs) / 1000;
    for (const ear of ears) ear.disconnect();
    return {
      'what-if': counts['what-if'] / seconds,
      beat: counts.beat / seconds,
      members: counts.members / seconds,
      flights: counts.flights / seconds,
    };
  }
}

async function connectionsTo({ nodes }: RedisInUse): Promise<number> {
  const lists = await Promise.all(nodes.map(({ client }) => client.client('LIST')));
  // Beside the gateways' there is only that of the measurement, without a name.
  return sumOf(lists.map((list) => String(list).split(' name=evalgate-').length - 1));
}

function kindOf(channel: string): Channel | null {
  const [, rest = ''] = channel.split('evalgate:channel:');
  for (const [beginning, kind] of Object.entries(CHANNELS)) if (rest.startsWith(beginning)) return kind;
  return null;
}

async function idle(seconds: number): Promise<Driven> {
  await sleep(seconds * 1000);
  const kinds = Object.fromEntries(KINDS.map((kind) => [kind, { requests: 0, bytes: 0 }]));
  return drivenSchema.parse({
    requests: 0,
    errors: 0,
    statuses: {},
    sentBytes: 0,
    firstOther: null,
    kinds,
    latencyMs: { p50: 0, p99: 0 },
  });
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
