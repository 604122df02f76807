/** What gauges read at the moment when the metrics are asked for. */
import type { Usage } from '../../cache/entry.ts';
import type { Connectivity } from '../../cache/redis/connectivity.ts';
import type { RedisRole } from '../../redis/connection.ts';
import type { GuardStatus } from '../../upstream/guard.ts';
import type { Readiness } from '../readiness.ts';

export interface RedisReading {
  readonly role: RedisRole;
  /** Whether it answered lately. */
  readonly isUp: boolean;
  readonly hearing: Connectivity;
}

export interface RedisMemory {
  readonly role: RedisRole;
  readonly usedBytes: number;
  /** 0 for no limit; null where it is not told. */
  readonly maxBytes: number | null;
  /** In the database that is used there. */
  readonly keys: number;
}

/** Each is read at every scrape. None may throw. */
export interface StateReadings {
  readonly readiness: () => Readiness;
  readonly memory: () => Usage;
  readonly memoryLimitBytes: number;
  /** Whether the maintenance switch is on. */
  readonly maintenance: () => boolean;
  readonly connections: () => Readonly<Record<'public' | 'admin', number>>;
  readonly guard: () => GuardStatus;
  /** Processes that share this gateway's Redis, itself included. */
  readonly processes: () => number;
  /** Null for a gateway without Redis. */
  readonly redis: {
    now(): readonly RedisReading[];
    memory(): Promise<readonly RedisMemory[]>;
    readonly isQuotaExact: boolean;
  } | null;
}

export type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

export interface StateGauge {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** What the values of several processes are together. */
  readonly aggregator: 'sum' | 'min' | 'max';
  readonly read: (readings: StateReadings) => readonly Sample[] | Promise<readonly Sample[]>;
}

export function flag(value: boolean): number {
  return value ? 1 : 0;
}
