/** Looks at the gateways of a soak, again and again. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reading } from './trend.ts';
import type { SoakWorld } from './world.ts';

/** The findings of one look. All but the last are of the gateway that lives as long as the soak. */
export interface Look {
  readonly atMs: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** The p99 of the event loop since the look before. */
  readonly lagSeconds: number;
  readonly descriptors: number;
  /** Memory of the primary; null while Redis does not answer. */
  readonly redisBytes: number | null;
  /** Resident memory of the two workers behind the balancer together. */
  readonly workersBytes: number;
}

export class Watch {
  readonly looks: Look[] = [];
  readonly #over = new AbortController();
  readonly #watching: Promise<void>;

  constructor(world: SoakWorld, everyMs: number) {
    this.#watching = this.#watch(world, everyMs);
  }

  async end(): Promise<void> {
    this.#over.abort();
    await this.#watching;
  }

  /** One figure over time. */
  readings(figure: (look: Look) => number | null): readonly Reading[] {
    return this.looks.flatMap((look) => {
      const value = figure(look);
      return value === null ? [] : [{ atMs: look.atMs, value }];
    });
  }

  async #watch(world: SoakWorld, everyMs: number): Promise<void> {
    while (!this.#over.signal.aborted) {
      // A worker that ends takes its connections of the admin listener along.
      const found = await lookAt(world).catch(() => null);
      if (found !== null) this.looks.push(found);
      await sleep(everyMs);
    }
  }
}

export async function lookAt(world: SoakWorld): Promise<Look> {
  const { single, several } = await world.look();
  return {
    atMs: Date.now(),
    residentBytes: world.parts.single.memory().nowBytes,
    heapBytes: sampleOf(single, 'nodejs_heap_size_used_bytes') ?? 0,
    lagSeconds: sampleOf(single, 'nodejs_eventloop_lag_p99_seconds') ?? 0,
    descriptors: sampleOf(single, 'process_open_fds') ?? 0,
    redisBytes: sampleOf(single, 'evalgate_redis_memory_used_bytes{role="state"}'),
    workersBytes: sampleOf(several, 'process_resident_memory_bytes') ?? 0,
  };
}

/** Null if the metrics have no such sample. */
function sampleOf(metrics: string, sample: string): number | null {
  const line = metrics.split('\n').find((one) => one.startsWith(`${sample} `));
  return line === undefined ? null : Number(line.slice(sample.length));
}
