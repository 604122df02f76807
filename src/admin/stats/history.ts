/**
 * Reads of each class and calls to the store over the last hour, in steps of half a minute. With Redis each
 * process writes what it has seen of a step, whole, again and again: writing it twice changes nothing, and what could
 * not be written is written when Redis is back.
 */
import { z } from 'zod';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { Clock } from '../../clock.ts';
import type { RedisLink } from '../../redis/connection.ts';
import { historyKey } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import type { Listener } from '../../telemetry/events.ts';
import type { Timers } from '../../timers.ts';

export const STEP_MS = 30_000;
export const STEPS = 120;

/** When the step of that time began. */
export function stepOf(atMs: number): number {
  return atMs - (atMs % STEP_MS);
}

/** The activity of one class in one step. */
interface Activity {
  reads: number;
  /** Served at once from a copy, fresh or not. */
  hits: number;
  /** Calls to the store, whatever came of them. */
  storeCalls: number;
  /** Reads for which there was nothing to serve; they are among the reads. */
  failed: number;
}

type ActivityByClass = ReadonlyMap<CacheClass, Readonly<Activity>>;

export interface HistoryPoint {
  /** When the step began, Unix milliseconds. */
  readonly atMs: number;
  /** Classes that were not in use have none. */
  readonly classes: ActivityByClass;
}

interface HistoryView {
  /** `fleet`: of all processes in front of the store; `process`: only of this one, if there are no others or Redis is away. */
  readonly scope: 'fleet' | 'process';
  /** Oldest first, without gaps, since the first step with activity. The last one is under way. */
  readonly points: readonly HistoryPoint[];
}

/** For processes in front of one store that put their activity together in Redis. */
export interface HistorySharing {
  /** To the state Redis. It stays its owner's. */
  readonly link: Pick<RedisLink, 'run' | 'isUp'>;
  /** Names the store: another store has another history. */
  readonly store: string;
  /** This process: no other has ever had this name. */
  readonly self: string;
  readonly timers: Timers;
}

const WRITE_EVERY_MS = 3000;
/** Longer than it is shown, so that no step expires meanwhile. */
const KEPT_FOR_MS = 2 * 3_600_000;

/** KEYS: steps. ARGV: the process, for how long they are kept, and what it has seen in each of them. */
const WRITE = defineScript(
  'writeHistory',
  `
for index, step in ipairs(KEYS) do
  redis.call('HSET', step, ARGV[1], ARGV[index + 2])
  redis.call('PEXPIRE', step, ARGV[2])
end
`,
);

/** KEYS: steps. Returns for each of them the processes and what each has seen, in turn. */
const READ = defineScript(
  'readHistory',
  `
local seen = {}
for index, step in ipairs(KEYS) do seen[index] = redis.call('HGETALL', step) end
return seen
`,
);

const replySchema = z.array(z.array(z.string()));
const count = z.int().min(0);
/** Reads, hits, calls to the store, failed reads. */
const writtenSchema = z.partialRecord(z.enum(CACHE_CLASSES), z.tuple([count, count, count, count]));

export class History {
  /** Never throws and never waits. */
  readonly hooks: Listener;
  readonly #clock: Clock;
  readonly #sharing: HistorySharing | null;
  /** This process's activity by step, keyed by when the step began, oldest first. */
  readonly #steps = new Map<number, Map<CacheClass, Activity>>();
  /** Steps that are not yet in Redis as they are here. */
  #changed = new Set<number>();
  #cancel: () => void = () => undefined;

  /** `sharing` is null for a gateway without Redis. */
  constructor(clock: Clock, sharing: HistorySharing | null) {
    this.#clock = clock;
    this.#sharing = sharing;
    this.hooks = {
      onRead: ({ class: cacheClass, outcome }) => {
        const activity = this.#activityOf(cacheClass);
        activity.reads += 1;
        if (outcome === 'hit' || outcome === 'stale-while-revalidate') activity.hits += 1;
        if (outcome === 'failed') activity.failed += 1;
      },
      onStoreCall: ({ class: cacheClass }) => {
        this.#activityOf(cacheClass).storeCalls += 1;
      },
    };
    if (sharing !== null) this.#writeAfterAWhile(sharing);
  }

  /** The last hour. Never rejects. */
  async view(): Promise<HistoryView> {
    const last = stepOf(this.#clock.nowMs());
    const steps = Array.from({ length: STEPS + 1 }, (_, index) => last - (STEPS - index) * STEP_MS);
    const others = await this.#readOthers(steps);
    const points = steps.map((atMs, index) => {
      const own = this.#steps.get(atMs) ?? new Map<CacheClass, Activity>();
      return { atMs, classes: others === null ? own : sumOf([own, ...(others[index] ?? [])]) };
    });
    // Without any activity only the step under way is left.
    const first = points.findIndex(({ classes }) => classes.size > 0);
    return { scope: others === null ? 'process' : 'fleet', points: points.slice(first) };
  }

  /** Resolves once what other processes are to know is in Redis, or cannot be written. */
  async close(): Promise<void> {
    this.#cancel();
    if (this.#sharing !== null) await this.#write(this.#sharing);
  }

  #activityOf(cacheClass: CacheClass): Activity {
    const stepAtMs = stepOf(this.#clock.nowMs());
    const step = this.#steps.get(stepAtMs) ?? this.#beginStep(stepAtMs);
    if (this.#sharing !== null) this.#changed.add(stepAtMs);
    const known = step.get(cacheClass);
    if (known !== undefined) return known;
    const activity = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };
    step.set(cacheClass, activity);
    return activity;
  }

  #beginStep(stepAtMs: number): Map<CacheClass, Activity> {
    const step = new Map<CacheClass, Activity>();
    this.#steps.set(stepAtMs, step);
    for (const old of this.#steps.keys()) if (old <= stepAtMs - (STEPS + 1) * STEP_MS) this.#steps.delete(old);
    return step;
  }

  #writeAfterAWhile(sharing: HistorySharing): void {
    this.#cancel = sharing.timers.after(WRITE_EVERY_MS, () => {
      void this.#write(sharing);
      this.#writeAfterAWhile(sharing);
    });
  }

  /** Never rejects. */
  async #write({ link, store, self }: HistorySharing): Promise<void> {
    if (!link.isUp()) return;
    const changed = [...this.#changed].flatMap((stepAtMs) => {
      const activity = this.#steps.get(stepAtMs);
      return activity === undefined ? [] : [{ stepAtMs, text: written(activity) }];
    });
    this.#changed = new Set();
    if (changed.length === 0) return;
    const keys = changed.map(({ stepAtMs }) => historyKey(store, stepAtMs));
    try {
      await runScript(link, WRITE, { keys, args: [self, KEPT_FOR_MS, ...changed.map(({ text }) => text)] });
    } catch {
      for (const { stepAtMs } of changed) this.#changed.add(stepAtMs);
    }
  }

  /**
   * The activity of every other process in each step, also of those that are gone; null without Redis, or while it does
   * not answer. Never rejects.
   */
  async #readOthers(steps: readonly number[]): Promise<readonly (readonly ActivityByClass[])[] | null> {
    if (this.#sharing?.link.isUp() !== true) return null;
    const { link, store, self } = this.#sharing;
    const keys = steps.map((step) => historyKey(store, step));
    try {
      const reply = replySchema.parse(await runScript(link, READ, { keys, args: [] }));
      return steps.map((_, index) => {
        const items = reply[index] ?? [];
        // A process and what it has seen, in turn.
        return items.flatMap((item, at) => (at % 2 === 0 || items[at - 1] === self ? [] : readActivity(item)));
      });
    } catch {
      return null;
    }
  }
}

/** The activity of several processes together. */
function sumOf(all: readonly ActivityByClass[]): ActivityByClass {
  const sums = new Map<CacheClass, Activity>();
  for (const [cacheClass, { reads, hits, storeCalls, failed }] of all.flatMap((one) => [...one])) {
    const sum = sums.get(cacheClass) ?? { reads: 0, hits: 0, storeCalls: 0, failed: 0 };
    sum.reads += reads;
    sum.hits += hits;
    sum.storeCalls += storeCalls;
    sum.failed += failed;
    sums.set(cacheClass, sum);
  }
  return sums;
}

function written(activity: ActivityByClass): string {
  const entries = [...activity].map(([cacheClass, { reads, hits, storeCalls, failed }]) => [
    cacheClass,
    [reads, hits, storeCalls, failed],
  ]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** None if it is not of this form: another release's, for example. */
function readActivity(text: string): ActivityByClass[] {
  try {
    const seen = writtenSchema.parse(JSON.parse(text));
    const entries = CACHE_CLASSES.flatMap((cacheClass) => {
      const counts = seen[cacheClass];
      if (counts === undefined) return [];
      const [reads, hits, storeCalls, failed] = counts;
      return [[cacheClass, { reads, hits, storeCalls, failed }] as const];
    });
    return [new Map(entries)];
  } catch {
    return [];
  }
}
