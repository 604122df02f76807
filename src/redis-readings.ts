/** What can be read of Redis when the metrics are asked for. */
import type { RedisMemory, RedisReading } from './admin/metrics/readings.ts';
import type { RedisLink, RedisServer } from './redis/connection.ts';
import { settingsOf } from './redis/settings.ts';
import type { RedisWatch } from './redis-watch.ts';

export class RedisReadings {
  /** Under way: the gauges of one scrape share it. */
  #asked: Promise<readonly RedisMemory[]> | null = null;
  readonly #links: readonly RedisLink[];
  readonly #watch: RedisWatch;

  constructor(links: readonly RedisLink[], watch: RedisWatch) {
    this.#links = links;
    this.#watch = watch;
  }

  get isQuotaExact(): boolean {
    return this.#watch.isQuotaExact;
  }

  now(): readonly RedisReading[] {
    return this.#links.map((link) => ({ role: link.role, isUp: link.isUp(), hearing: this.#watch.hearing[link.role] }));
  }

  /** Asks Redis, within the time of a command; nothing of one that is down or doesn't answer. Never rejects. */
  memory(): Promise<readonly RedisMemory[]> {
    this.#asked ??= this.#ask().finally(() => {
      this.#asked = null;
    });
    return this.#asked;
  }

  async #ask(): Promise<readonly RedisMemory[]> {
    const found = await Promise.all(this.#links.filter((link) => link.isUp()).map(memoryOf));
    return found.filter((memory) => memory !== null);
  }
}

/** Of a Cluster, the sums of its primaries; without a limit where one of them has none. */
async function memoryOf(link: RedisLink): Promise<RedisMemory | null> {
  try {
    const read = await Promise.all(link.servers().map(readMemory));
    const usedBytes = sumOf(read.map(({ usedMemoryBytes }) => usedMemoryBytes));
    if (usedBytes === null) return null;
    const limits = read.map(({ maxMemoryBytes }) => maxMemoryBytes);
    return {
      role: link.role,
      usedBytes,
      maxBytes: limits.includes(0) ? 0 : sumOf(limits),
      keys: sumOf(read.map(({ keys }) => keys)) ?? 0,
    };
  } catch {
    return null;
  }
}

async function readMemory({ client }: RedisServer) {
  const [info, keys] = await Promise.all([client.info('memory'), client.dbsize()]);
  const { usedMemoryBytes, maxMemoryBytes } = settingsOf(info, null);
  return { usedMemoryBytes, maxMemoryBytes, keys };
}

/** Null where one of them is not told, and of none. */
function sumOf(values: readonly (number | null)[]): number | null {
  return values.reduce(
    (sum, value) => (sum === null || value === null ? null : sum + value),
    values.length === 0 ? null : 0,
  );
}
