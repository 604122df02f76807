/**
 * The history of a fleet, in the state Redis. Each process writes what it has itself seen of a step, whole, again and
 * again: writing it twice changes nothing, and what could not be written is written when Redis is back.
 */
import { z } from 'zod';
import type { Listener } from '../telemetry/events.ts';
import type { Timers } from '../timers.ts';
import { CACHE_CLASSES } from '../cache/ttl-policy.ts';
import type { Clock } from '../clock.ts';
import { historyKey } from '../redis/names.ts';
import type { RedisLink } from '../redis/connection.ts';
import { defineScript, runScript } from '../redis/script.ts';
import {
  ActivityLog,
  type ActivityByClass,
  type History,
  type HistoryView,
  pointsOf,
  stepsUntil,
  sumOf,
} from './history.ts';

export interface RedisHistoryOptions {
  /** To the state Redis. It stays its owner's. */
  readonly link: Pick<RedisLink, 'run' | 'isUp'>;
  /** Names the store: what was read of another one is another history. */
  readonly store: string;
  /** This process: no other has ever had this name. */
  readonly self: string;
  readonly clock: Clock;
  readonly timers: Timers;
}

const WRITE_EVERY_MS = 3000;
/** Longer than it is shown, so that nothing goes while it is. */
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

export function createRedisHistory(options: RedisHistoryOptions): History {
  return new RedisHistory(options);
}

class RedisHistory implements History {
  readonly #options: RedisHistoryOptions;
  readonly #log: ActivityLog;
  #cancel: () => void = () => undefined;

  constructor(options: RedisHistoryOptions) {
    this.#options = options;
    this.#log = new ActivityLog(options.clock);
    this.#schedule();
  }

  get hooks(): Listener {
    return this.#log.hooks;
  }

  async view(): Promise<HistoryView> {
    const steps = stepsUntil(this.#options.clock.nowMs());
    try {
      const others = await this.#others(steps);
      const at = (step: number): ActivityByClass => sumOf([this.#log.at(step), ...(others.get(step) ?? [])]);
      return { scope: 'fleet', points: pointsOf(steps, at) };
    } catch {
      return { scope: 'process', points: pointsOf(steps, (step) => this.#log.at(step)) };
    }
  }

  async close(): Promise<void> {
    this.#cancel();
    await this.#write();
  }

  #schedule(): void {
    this.#cancel = this.#options.timers.after(WRITE_EVERY_MS, () => {
      void this.#write();
      this.#schedule();
    });
  }

  /** Rejects never. */
  async #write(): Promise<void> {
    const { link, store, self } = this.#options;
    if (!link.isUp()) return;
    const steps = this.#log.takeChanged();
    if (steps.length === 0) return;
    const keys = steps.map((step) => historyKey(store, step));
    const seen = steps.map((step) => written(this.#log.at(step)));
    try {
      await runScript(link, WRITE, { keys, args: [self, KEPT_FOR_MS, ...seen] });
    } catch {
      this.#log.giveBack(steps);
    }
  }

  /** What all other processes have seen, also those that are gone. Rejects where Redis can't be asked. */
  async #others(steps: readonly number[]): Promise<ReadonlyMap<number, readonly ActivityByClass[]>> {
    const { link, store, self } = this.#options;
    if (!link.isUp()) throw new Error('Redis does not answer');
    const keys = steps.map((step) => historyKey(store, step));
    const reply = replySchema.parse(await runScript(link, READ, { keys, args: [] }));
    return new Map(
      steps.map((step, index) => {
        const [fields, values] = alternating(reply[index] ?? []);
        return [step, values.flatMap((value, at) => (fields[at] === self ? [] : readActivity(value)))];
      }),
    );
  }
}

function alternating(items: readonly string[]): readonly [even: readonly string[], odd: readonly string[]] {
  return [items.filter((_, index) => index % 2 === 0), items.filter((_, index) => index % 2 === 1)];
}

function written(activity: ActivityByClass): string {
  const entries = [...activity].map(([cacheClass, { reads, hits, storeCalls, failed }]) => [
    cacheClass,
    [reads, hits, storeCalls, failed],
  ]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** None of what is not of this form: another release's, say. */
function readActivity(text: string): ActivityByClass[] {
  try {
    const seen = writtenSchema.parse(JSON.parse(text));
    const entries = CACHE_CLASSES.flatMap((cacheClass) => {
      const [reads, hits, storeCalls, failed] = seen[cacheClass] ?? [];
      if (reads === undefined || hits === undefined || storeCalls === undefined || failed === undefined) return [];
      return [[cacheClass, { reads, hits, storeCalls, failed }] as const];
    });
    return [new Map(entries)];
  } catch {
    return [];
  }
}
