/** The faults of a soak, one after the other, and the failures that each explains. */
import { setTimeout as sleep } from 'node:timers/promises';
import { withClient } from '../../support/redis/client.ts';
import type { Traffic } from './traffic.ts';
import type { SoakWorld } from './world.ts';

/** How long answers may still fail once the trouble is over; the README says so of each. */
const STORE_TAIL_MS = 6000;
export const REDIS_TAIL_MS = 3000;
/** A connection's end may be read a moment after the next request was written to it. */
const KILL_TAIL_MS = 200;
const REVOKED_WITHIN_MS = 1000;

/** A request that did not go as it should. */
export interface Failure {
  readonly gateway: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** 0 if no whole answer came. */
  readonly status: number;
  readonly what: string;
}

export interface Fault {
  readonly name: string;
  /** Which failures it can cause, while it lasts and so long after. */
  readonly explains: (failure: Failure) => boolean;
  readonly tailMs: number;
  /** Resolves when the trouble is over. */
  readonly run: (world: SoakWorld, traffic: Traffic, holdMs: number) => Promise<void>;
}

export const isServerError = ({ status }: Failure): boolean => status === 500;
const nothing = (): boolean => false;
const store = { explains: isServerError, tailMs: STORE_TAIL_MS };
const redis = { explains: isServerError, tailMs: REDIS_TAIL_MS };
/** Changes during which no request may fail. */
const harmless = { explains: nothing, tailMs: 0 };

export const KEY_CHANGE: Fault = { name: 'key issued and revoked', ...harmless, run: changeKeys };

/** The gateway behind the balancer is replaced by another one. */
export const ROLLOUT: Fault = { name: 'rollout', ...harmless, run: (world) => world.rollOut() };

export const FAULTS: readonly Fault[] = [
  { name: 'SIGHUP', ...harmless, run: (world) => world.reconfigure() },
  {
    name: 'purge',
    ...harmless,
    run: async (world) => {
      await world.several.administer('POST', '/api/cache/purge', { tags: ['all'], mode: 'hard' });
      await world.several.administer('POST', '/api/cache/purge', { tags: ['class:list'], mode: 'soft' });
    },
  },
  {
    name: 'cache times',
    ...harmless,
    run: async (world, _, holdMs) => {
      await world.several.administer('PUT', '/api/cache/ttl/evaluation', { fresh: '1s' });
      await sleep(holdMs);
      await world.several.administer('DELETE', '/api/cache/ttl/evaluation');
    },
  },
  KEY_CHANGE,
  ROLLOUT,
  {
    name: 'worker killed',
    // The balancer reports it when the connection to the worker ends.
    explains: ({ gateway, status }) => gateway === 1 && status === 502,
    tailMs: KILL_TAIL_MS,
    run: async ({ several }) => {
      const pid = several.workerPids.at(-2);
      if (pid === undefined) throw new Error('There is no worker.');
      process.kill(pid, 'SIGKILL');
      await several.untilEnded(pid);
    },
  },
  {
    name: 'Redis frozen',
    ...redis,
    run: async ({ parts: { redis: server } }, _, holdMs) => {
      await server.pause();
      await sleep(holdMs);
      await server.resume();
    },
  },
  {
    name: 'Redis killed',
    ...redis,
    run: async ({ parts }, _, holdMs) => {
      // As one that is on disk comes back: with its keys.
      await withClient(parts.redis.url, (client) => client.save());
      await parts.redis.kill();
      await sleep(holdMs);
      await parts.redis.restart();
    },
  },
  { name: 'connections to Redis cut', ...redis, run: async ({ redisProxy }) => redisProxy.resetPeers() },
  { name: 'connections to the store cut', ...store, run: async ({ parts }) => parts.storeProxy.resetPeers() },
  { name: 'store answers 503', ...store, run: ({ parts }, _, holdMs) => undoing(parts.store.fail(503), holdMs) },
  {
    name: 'store hangs',
    ...store,
    run: ({ parts }, _, holdMs) => {
      const gate = parts.store.hold();
      return undoing(() => gate.release(), holdMs);
    },
  },
  {
    name: 'store slow',
    ...store,
    run: async ({ parts }, _, holdMs) => {
      parts.storeProxy.delay('downstream', 1500, 500);
      await sleep(holdMs);
      parts.storeProxy.heal();
    },
  },
];

interface Span {
  readonly fault: Fault;
  readonly fromMs: number;
  toMs: number;
}

/** The faults so far, with their times. */
export class FaultLog {
  readonly #spans: Span[] = [];

  /** Rejects if the fault can't be caused. */
  async run(fault: Fault, ...args: Parameters<Fault['run']>): Promise<void> {
    const span = { fault, fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
    this.#spans.push(span);
    try {
      await fault.run(...args);
    } finally {
      span.toMs = Date.now();
    }
  }

  isExplained(failure: Failure): boolean {
    return this.#spans.some(
      ({ fault, fromMs, toMs }) =>
        failure.fromMs <= toMs + fault.tailMs && failure.toMs >= fromMs && fault.explains(failure),
    );
  }

  /** The last one that had begun by then, and how long it was over. */
  before(atMs: number): string {
    const last = this.#spans.findLast(({ fromMs }) => fromMs <= atMs);
    if (last === undefined) return 'before all faults';
    return last.toMs >= atMs ? `during "${last.fault.name}"` : `${atMs - last.toMs} ms after "${last.fault.name}"`;
  }

  /** How many there were of each. */
  counts(): string {
    const names = this.#spans.map(({ fault }) => fault.name);
    return [...new Set(names)].map((name) => `${name} ${names.filter((one) => one === name).length}`).join(', ');
  }

  /** The share of that time in which no failure at all would be explained. */
  calmShare(fromMs: number, untilMs: number): number {
    const times = Array.from({ length: Math.ceil((untilMs - fromMs) / 50) }, (_, step) => fromMs + step * 50);
    const calm = times.filter(
      (atMs) => !this.#spans.some(({ fault, fromMs: begunMs, toMs }) => begunMs <= atMs && atMs <= toMs + fault.tailMs),
    );
    return calm.length / Math.max(1, times.length);
  }
}

async function undoing(undo: () => void, holdMs: number): Promise<void> {
  await sleep(holdMs);
  undo();
}

/** A consumer comes, and one that came before is turned away. */
async function changeKeys(world: SoakWorld, traffic: Traffic, holdMs: number): Promise<void> {
  const consumer = await world.issue();
  traffic.consumers.push(consumer);
  await sleep(holdMs);
  // It goes on asking for a while.
  setTimeout(() => traffic.consumers.splice(traffic.consumers.indexOf(consumer), 1), 4 * REVOKED_WITHIN_MS).unref();
  consumer.revoking.beginMs = Date.now();
  await world.several.administer('DELETE', `/api/keys/${consumer.keyId}`);
  consumer.revoking.doneMs = Date.now() + REVOKED_WITHIN_MS;
}
