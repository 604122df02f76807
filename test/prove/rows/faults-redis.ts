/** Redis freezes, dies, or is behind a network that swallows everything: keys in use go on, no others are let in. */
import { newToken } from '../../../src/keys/token.ts';
import { type FaultsWorld, sleep, withFaultsWorld } from '../../support/faults-world.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { Load } from '../../support/load.ts';
import type { Sample, Target } from '../../support/load-commands.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { count, ms, percentile, type Row, type Scale, loadSlackMs } from '../row.ts';

const GATEWAYS = 2;
const PER_SECOND = 60;
const LIMIT = 40;
const MINUTE_MS = 60_000;
const ADDED_MS = 100;
const BACK_WITHIN_MS = 2000;
const PROBE_EVERY_MS = 20;
const GIVE_UP_MS = 10_000;
const NEVER_ISSUED = newToken();

interface Outage {
  readonly name: string;
  begin(redis: TestRedis, proxy: TcpProxy | null): Promise<void> | void;
  end(redis: TestRedis, proxy: TcpProxy | null): Promise<void> | void;
}

const OUTAGES: readonly Outage[] = [
  {
    name: 'SIGSTOP',
    begin: (redis) => redis.pause(),
    end: async (redis) => {
      await redis.resume();
      await redis.settled?.();
    },
  },
  { name: 'killed', begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
  { name: 'black-holed', begin: (_, proxy) => proxy?.blackHole(), end: (_, proxy) => proxy?.heal() },
];

export async function run(scale: Scale): Promise<readonly Row[]> {
  const forMs = scale === 'whole' ? 30_000 : 2500;
  // The nodes of a Cluster tell their own addresses, so nothing can be put in front of them.
  const isOne = (process.env['TEST_REDIS_TOPOLOGY'] ?? '') === '';
  const outages = scale === 'whole' && isOne ? OUTAGES : OUTAGES.slice(0, 2);
  const found = await Promise.all(outages.map((outage) => redisDown(outage, { forMs, scale })));
  return [
    {
      name: 'Redis down',
      bar: `${outages.map(({ name }) => name).join(', ')} for ${forMs / 1000} s each, ${GATEWAYS} processes, warm keys under load: 100 % answered 200, p99 at most ${ms(ADDED_MS + loadSlackMs(scale))} more than before; no other key let in; each process within its share of a limit of ${LIMIT}, both within the limit; normal within ${ms(BACK_WITHIN_MS + loadSlackMs(scale))} of its return`,
      measured: found.map(({ text }) => text).join('; '),
      ok: found.every(({ ok }) => ok),
    },
  ];
}

async function redisDown(outage: Outage, about: Outing): Promise<{ text: string; ok: boolean }> {
  const redis = await startRedis({ controls: true, isDurable: true });
  const proxy = redis.servers.length === 1 ? await TcpProxy.start(redis.url) : null;
  try {
    return await withFaultsWorld({ gateways: GATEWAYS, env: { REDIS_URL: proxy?.url ?? redis.url } }, (world) =>
      new Trial(world, outage, { redis, proxy }).run(about),
    );
  } finally {
    await proxy?.close();
    await redis.close();
  }
}

interface Outing {
  readonly forMs: number;
  readonly scale: Scale;
}

interface Keys {
  readonly warm: string;
  /** Known to each process, with nothing of its limit used but for that. */
  readonly limited: string;
  /** Issued, and used nowhere yet. */
  readonly unused: string;
}

class Trial {
  readonly #world: FaultsWorld;
  readonly #outage: Outage;
  readonly #redis: TestRedis;
  readonly #proxy: TcpProxy | null;

  constructor(world: FaultsWorld, outage: Outage, { redis, proxy }: { redis: TestRedis; proxy: TcpProxy | null }) {
    this.#world = world;
    this.#outage = outage;
    this.#redis = redis;
    this.#proxy = proxy;
  }

  async run({ forMs, scale }: Outing): Promise<{ text: string; ok: boolean }> {
    const { load, first } = this.#world;
    const keys: Keys = {
      warm: await first.issueKey(),
      limited: await first.issueKey({ perMinute: LIMIT }),
      unused: await first.issueKey(),
    };
    const warm = this.#targets(keys.warm, 'warm');
    await load.run(warm, { perSecond: 60, forMs: 1500 });
    const before = await load.run(warm, { perSecond: PER_SECOND, forMs: Math.min(5000, forMs) });
    const others = await Load.start();
    try {
      // One after the other, so that each knows what the other has admitted: else they would count on the same rest.
      const known = await others.run(this.#one(keys.limited, 'limited'), { perSecond: 5, forMs: 700 });
      await this.#outage.begin(this.#redis, this.#proxy);
      await load.begin(warm, PER_SECOND);
      await others.begin(this.#others(keys), PER_SECOND);
      await sleep(forMs);
      const refused = await others.end();
      const [backMs, during] = [await this.#back(keys), await load.end()];
      const after = await load.run(warm, { perSecond: PER_SECOND, forMs: Math.min(3000, forMs) });
      const late = await others.run(this.#one(keys.limited, 'limited'), { perSecond: 20, forMs: 1000 });
      return this.#judge({ before, known, during, after, refused, late, backMs }, scale);
    } finally {
      await others.close();
    }
  }

  /** Milliseconds from its return until keys are decided on by Redis again. */
  async #back({ unused }: Keys): Promise<number> {
    const beganMs = performance.now();
    await this.#outage.end(this.#redis, this.#proxy);
    const [returnedMs, gateways] = [performance.now(), this.#world.gateways];
    while (performance.now() - returnedMs < GIVE_UP_MS) {
      const statuses = await Promise.all(
        gateways.flatMap((one) => [statusFor(one, unused), statusFor(one, NEVER_ISSUED)]),
      );
      if (statuses.join() === gateways.flatMap(() => [200, 401]).join()) break;
      await sleep(PROBE_EVERY_MS);
    }
    // It was gone while it started, or while its nodes found together.
    const isLater = this.#outage.name === 'killed' || this.#redis.settled !== undefined;
    return performance.now() - (isLater ? returnedMs : beganMs);
  }

  #judge(found: Findings, scale: Scale): { text: string; ok: boolean } {
    const { before, known, during, refused, after, late, backMs } = found;
    const [p99Before, p99During, p99After] = [before, during, after].map(p99);
    const served = during.filter(({ status }) => status === 200).length;
    const letIn = refused.filter(({ tag, status }) => tag !== 'limited' && status < 400);
    const admitted = [...known, ...refused, ...late].filter(({ tag, status }) => tag === 'limited' && status !== 429);
    const shares = this.#world.gateways.map(
      ({ publicUrl }) =>
        refused.filter((one) => one.tag === 'limited' && one.url.startsWith(publicUrl) && one.status === 200).length,
    );
    const most = mostInAMinute(admitted);
    const added = (p99During ?? 0) - (p99Before ?? 0);
    const isAfterWell =
      after.every(({ status }) => status === 200) &&
      (p99After ?? 0) - (p99Before ?? 0) <= ADDED_MS + loadSlackMs(scale);
    const lost = during.find(({ status }) => status !== 200);
    return {
      text: `${this.#outage.name}: ${count(served)} of ${count(during.length)} answered 200${lost === undefined ? '' : ` (${JSON.stringify(lost)})`}, p99 ${ms(p99Before ?? 0)} before and ${ms(p99During ?? 0)} meanwhile, ${letIn.length} of ${refused.filter(({ tag }) => tag !== 'limited').length} let in with other keys, ${shares.join(' and ')} admitted of the limit (${most} in all within a minute), normal after ${ms(backMs)}`,
      ok:
        served === during.length &&
        added <= ADDED_MS + loadSlackMs(scale) &&
        letIn.length === 0 &&
        shares.every((share) => share >= 1 && share <= LIMIT / GATEWAYS) &&
        most <= LIMIT &&
        backMs <= BACK_WITHIN_MS + loadSlackMs(scale) &&
        isAfterWell,
    };
  }

  #targets(key: string, tag: string): readonly Target[] {
    return Array.from({ length: 10 }, (_, index) =>
      this.#world.gateways.map(({ publicUrl }) => ({ url: `${publicUrl}/v2/calls/warm_${index}`, key, tag })),
    ).flat();
  }

  #one(key: string, tag: string): readonly Target[] {
    return this.#world.gateways.map(({ publicUrl }) => ({ url: `${publicUrl}/v2/calls/warm_0`, key, tag }));
  }

  #others({ limited, unused }: Keys): readonly Target[] {
    return [
      ...this.#one(limited, 'limited'),
      ...this.#one(unused, 'unused'),
      ...this.#one(NEVER_ISSUED, 'never issued'),
    ];
  }
}

interface Findings {
  readonly before: readonly Sample[];
  /** Made both processes know the key with the limit. */
  readonly known: readonly Sample[];
  readonly during: readonly Sample[];
  readonly after: readonly Sample[];
  /** What other keys than the warm one were answered meanwhile. */
  readonly refused: readonly Sample[];
  readonly late: readonly Sample[];
  readonly backMs: number;
}

async function statusFor({ publicUrl }: GatewayProcess, key: string): Promise<number> {
  const response = await fetch(`${publicUrl}/v2/calls/warm_0`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

function p99(samples: readonly Sample[]): number {
  return percentile(
    samples.map(({ tookMs }) => tookMs),
    0.99,
  );
}

/** Of all minutes that begin with one of them. */
function mostInAMinute(admitted: readonly Sample[]): number {
  const times = admitted.map(({ atMs }) => atMs).toSorted((a, b) => a - b);
  return Math.max(
    0,
    ...times.map((fromMs) => times.filter((atMs) => atMs >= fromMs && atMs < fromMs + MINUTE_MS).length),
  );
}
