/**
 * The counts of all gateway processes, in buckets of time over the last hour. Each process writes to Redis what it has counted
 * in a bucket, whole, again and again: writing it twice changes nothing, and what could not be written is written when Redis
 * is back. The counts of a process outlive it until the hour is over, so that no restart makes a sum go back.
 */
import { z } from 'zod';
import type { Clock } from '../../time/clock.ts';
import type { RedisLink } from '../../redis/connection.ts';
import { stepKey } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import type { Timers } from '../../time/timers.ts';

/** For processes that put together in Redis what they count. */
export interface BucketSharing {
  /** To the state Redis. It stays its owner's. */
  readonly link: Pick<RedisLink, 'run' | 'isUp'>;
  /** This process: no other has ever had this name. */
  readonly self: string;
  readonly timers: Timers;
  /** The counts of each worker of this gateway, this one included, as `own` returns them; null without workers. */
  readonly siblings: (() => Promise<readonly unknown[]>) | null;
}

/** Whose counts were read: `cut-off`: only those of this process, or of so many workers, because Redis does not answer. */
export type Whose = 'fleet' | 'process' | { readonly cutOff: number };

export interface TimeBucket<W> {
  /** When it began, Unix milliseconds. */
  readonly atMs: number;
  /** Those of each process; none if nothing was counted. */
  readonly counts: readonly W[];
}

export interface BucketOptions<C, W> {
  readonly name: string;
  readonly stepMs: number;
  /** How long steps are shown; an hour by default. */
  readonly spanMs?: number;
  /** Called with the counts of a step when the next one begins, and when the process stops. */
  readonly onEnd?: (atMs: number, counts: C) => void;
  /** Counts of a new step. JSON.stringify writes them. */
  readonly begin: () => C;
  /** Counts as they are written. Counts of another form, such as another release's, are left out. */
  readonly schema: z.ZodType<W>;
}

export const HOUR_MS = 3_600_000;
const WRITE_EVERY_MS = 2000;

/** KEYS: steps. ARGV: the process, for how long they are kept, and what it has counted in each of them. */
const WRITE = defineScript(
  'writeSteps',
  `
for index, step in ipairs(KEYS) do
  redis.call('HSET', step, ARGV[1], ARGV[index + 2])
  redis.call('PEXPIRE', step, ARGV[2])
end
`,
);

export class TimeBuckets<C, W> {
  readonly #options: BucketOptions<C, W>;
  readonly #clock: Clock;
  readonly #sharing: BucketSharing | null;
  /** The counts of this process, keyed by when the step began, oldest first. */
  readonly #own = new Map<number, C>();
  /** When the steps began that are not yet in Redis as they are here. */
  #changed = new Set<number>();
  /** The step whose end was not reported yet. */
  #underWay: { readonly atMs: number; readonly counts: C } | null = null;
  #cancel: () => void = () => undefined;

  /** `sharing` is null for a gateway without Redis. */
  constructor(options: BucketOptions<C, W>, clock: Clock, sharing: BucketSharing | null) {
    this.#options = options;
    this.#clock = clock;
    this.#sharing = sharing;
    if (sharing !== null) this.#writeAfterAWhile(sharing);
  }

  get name(): string {
    return this.#options.name;
  }

  /** This process's counts of the step under way, to be added to at once. */
  now(): C {
    return this.of(this.#clock.nowMs());
  }

  /** The same of the step at that time. */
  of(timeMs: number): C {
    const { stepMs, spanMs = HOUR_MS, begin } = this.#options;
    const atMs = timeMs - (timeMs % stepMs);
    if (this.#sharing !== null) this.#changed.add(atMs);
    const known = this.#own.get(atMs);
    if (known !== undefined) return known;
    this.#end();
    const counts = begin();
    this.#own.set(atMs, counts);
    this.#underWay = { atMs, counts };
    for (const old of this.#own.keys()) if (old <= atMs - spanMs) this.#own.delete(old);
    return counts;
  }

  /** This process's counts of the last steps: of those that began after that time, and not after now. */
  since(timeMs: number): readonly C[] {
    const nowMs = this.#clock.nowMs();
    const counts: C[] = [];
    for (const [atMs, one] of this.#own) if (atMs > timeMs && atMs <= nowMs) counts.push(one);
    return counts;
  }

  #end(): void {
    if (this.#underWay !== null) this.#options.onEnd?.(this.#underWay.atMs, this.#underWay.counts);
    this.#underWay = null;
  }

  /** Oldest first, without gaps, since the first step with counts; the last one is under way. Never rejects. */
  async read(): Promise<{ readonly whose: Whose; readonly steps: readonly TimeBucket<W>[] }> {
    const { stepMs, spanMs } = this.#options;
    const times = bucketTimes(stepMs, this.#clock.nowMs(), spanMs);
    const own = times.map((atMs) => this.#ownCounts(atMs));
    const sharing = this.#sharing?.link.isUp() === true ? this.#sharing : null;
    const others = sharing && (await readBuckets(sharing.link, this.#options, times, sharing.self).catch(() => null));
    const workers = others === null ? await this.#ofWorkers(times) : [];
    const steps = times.map((atMs, index) => ({
      atMs,
      counts:
        workers.length > 0
          ? workers.flatMap((worker) => worker[index] ?? [])
          : [...(own[index] ?? []), ...(others?.[index] ?? [])],
    }));
    // Without any counts only the step under way is left.
    const first = steps.findIndex(({ counts }) => counts.length > 0);
    const cutOff = { cutOff: Math.max(1, workers.length) };
    const whose = others !== null ? 'fleet' : this.#sharing === null ? 'process' : cutOff;
    return { whose, steps: steps.slice(first) };
  }

  /** The counts of this process by the beginning of the step, for another worker. */
  own(): Readonly<Record<string, C>> {
    return Object.fromEntries(this.#own);
  }

  /** By worker and step; none if they do not answer, or there are none. */
  async #ofWorkers(times: readonly number[]): Promise<readonly (readonly (readonly W[])[])[]> {
    const { name, schema } = this.#options;
    const reports = (await this.#sharing?.siblings?.().catch(() => [])) ?? [];
    const own = z.looseObject({ [name]: z.record(z.string(), z.unknown()) });
    return reports.flatMap((report) => {
      const counts = own.safeParse(report).data?.[name];
      if (counts === undefined) return [];
      return [
        times.map((atMs) => schema.safeParse(counts[atMs]).data).map((step) => (step === undefined ? [] : [step])),
      ];
    });
  }

  #ownCounts(atMs: number): readonly W[] {
    const counts = this.#own.get(atMs);
    return counts === undefined ? [] : parseCounts(this.#options.schema, JSON.stringify(counts));
  }

  /** Resolves once what other processes are to know is in Redis, or cannot be written. */
  async close(): Promise<void> {
    this.#cancel();
    this.#end();
    if (this.#sharing !== null) await this.#write(this.#sharing);
  }

  #writeAfterAWhile(sharing: BucketSharing): void {
    this.#cancel = sharing.timers.after(WRITE_EVERY_MS, () => {
      void this.#write(sharing);
      this.#writeAfterAWhile(sharing);
    });
  }

  /** Never rejects. */
  async #write({ link, self }: BucketSharing): Promise<void> {
    if (!link.isUp()) return;
    const changed = [...this.#changed].flatMap((atMs) => {
      const counts = this.#own.get(atMs);
      return counts === undefined ? [] : [{ atMs, text: JSON.stringify(counts) }];
    });
    this.#changed = new Set();
    if (changed.length === 0) return;
    const { name, spanMs = HOUR_MS } = this.#options;
    const keys = changed.map(({ atMs }) => stepKey(name, atMs));
    // Longer than it is shown, so that no step expires meanwhile.
    const keptForMs = 2 * spanMs;
    try {
      await runScript(link, WRITE, { keys, args: [self, keptForMs, ...changed.map(({ text }) => text)] });
    } catch {
      for (const { atMs } of changed) this.#changed.add(atMs);
    }
  }
}

/** When the steps of the last hour, or of a longer span, began, oldest first; the last one is under way. */
function bucketTimes(stepMs: number, nowMs: number, spanMs = HOUR_MS): readonly number[] {
  const last = nowMs - (nowMs % stepMs);
  const count = spanMs / stepMs;
  return Array.from({ length: count }, (_, index) => last - (count - 1 - index) * stepMs);
}

/**
 * The counts of all processes in each step, also of those that are gone, without the one named `except`. Rejects if
 * Redis does not answer.
 */
async function readBuckets<W>(
  link: Pick<RedisLink, 'run'>,
  { name, schema }: Pick<BucketOptions<unknown, W>, 'name' | 'schema'>,
  times: readonly number[],
  except: string = '',
): Promise<readonly (readonly W[])[]> {
  const steps = await link.run((redis) => Promise.all(times.map((atMs) => redis.hgetall(stepKey(name, atMs)))));
  return steps.map((step) =>
    Object.entries(step).flatMap(([self, counts]) => (self === except ? [] : parseCounts(schema, counts))),
  );
}

function parseCounts<W>(schema: z.ZodType<W>, text: string): readonly W[] {
  try {
    return [schema.parse(JSON.parse(text))];
  } catch {
    return [];
  }
}
