/** What was set over the configured times, for all processes of a fleet: kept in the state Redis, in force from memory. */
import { randomUUID } from 'node:crypto';
import { afterChange, type RedisCommands } from '../redis/connection.ts';
import { changeTimes } from './redis-state-scripts.ts';
import { type AdjustableTimes, CACHE_CLASSES, type CacheClass, type CacheTimes } from './times.ts';
import { checkedTimes, isTime, type TimesChange, type TimesControl } from './times-control.ts';

export interface RedisTimesOptions {
  /** To the state Redis. */
  readonly redis: RedisCommands;
  /** What this process goes by. */
  readonly times: AdjustableTimes;
  /** Brings the times of this process to what Redis holds by then. */
  readonly look: () => Promise<void>;
}

type Fields = ReadonlyMap<string, string>;

const NAMES = ['freshMs', 'staleMs', 'errorMs'] as const satisfies readonly (keyof CacheTimes)[];

export class RedisTimes implements TimesControl {
  readonly #options: RedisTimesOptions;
  #version = '';

  constructor(options: RedisTimesOptions) {
    this.#options = options;
  }

  /** Of what is in force here; empty where nothing was ever set. */
  get version(): string {
    return this.#version;
  }

  async set(cacheClass: CacheClass, times: Partial<CacheTimes>): Promise<TimesChange> {
    const checked = checkedTimes(times);
    const given = NAMES.filter((name) => checked[name] !== undefined);
    const before = await this.#change(new Map(given.map((name) => [fieldOf(cacheClass, name), checked[name] ?? null])));
    const from = this.#inForce(cacheClass, before);
    return { from, to: { ...from, ...checked } };
  }

  async reset(cacheClass: CacheClass): Promise<TimesChange> {
    const before = await this.#change(new Map(NAMES.map((name) => [fieldOf(cacheClass, name), null])));
    return { from: this.#inForce(cacheClass, before), to: this.#options.times.configuredOf(cacheClass) };
  }

  /** What Redis holds; a value that is no time counts as not set. */
  adopt(version: string, fields: Fields): void {
    this.#version = version;
    for (const cacheClass of CACHE_CLASSES) {
      const set = setOf(cacheClass, fields);
      this.#options.times.reset(cacheClass);
      if (Object.keys(set).length > 0) this.#options.times.set(cacheClass, set);
    }
  }

  async #change(fields: ReadonlyMap<string, number | null>): Promise<Fields> {
    const before = await changeTimes(this.#options.redis, randomUUID(), fields);
    await afterChange(this.#options.look);
    return before;
  }

  #inForce(cacheClass: CacheClass, fields: Fields): CacheTimes {
    return { ...this.#options.times.configuredOf(cacheClass), ...setOf(cacheClass, fields) };
  }
}

function fieldOf(cacheClass: CacheClass, name: keyof CacheTimes): string {
  return `${cacheClass}.${name}`;
}

function setOf(cacheClass: CacheClass, fields: Fields): Partial<CacheTimes> {
  const values = NAMES.flatMap((name) => {
    const text = fields.get(fieldOf(cacheClass, name)) ?? '';
    return /^[0-9]+$/.test(text) && isTime(Number(text)) ? [[name, Number(text)] as const] : [];
  });
  return Object.fromEntries(values);
}
