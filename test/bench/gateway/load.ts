/** Load at one server, and what it cost the server: by wrk if it is installed, else by autocannon. */
import type { z } from 'zod';
import { type BenchRequest, closedLoop, closedLoopSchema } from '../../support/load.ts';
import { cpuNanos, ON_OTHER_CORE } from './processes.ts';
import type { Server } from './server.ts';
import { HAS_WRK, loadByWrk } from './wrk.ts';

export interface LoadOptions {
  readonly requests: readonly BenchRequest[];
  readonly connections?: number;
  readonly seconds: number;
  /** Requests a second in all, sent when they are due; else each connection sends its next once it has its answer. */
  readonly rate?: number;
}

export interface DriverOptions extends LoadOptions {
  readonly connections: number;
  /** The first that stands for `{n}`. */
  readonly firstNumber: number;
}

export interface Loaded extends z.output<typeof closedLoopSchema> {
  /** CPU time of the server process and its descendants, in microseconds per request. */
  readonly cpuMicros: number;
}

/** Unless a load has others. */
export const CONNECTIONS = 32;

/** Each load has numbers of its own, so that what it asks for was never asked for before. */
const NUMBERS_OF_A_LOAD = 100_000_000;
let loads = 0;

/** Rejects if a request got no answer. Which statuses came is for the caller to look at. */
export async function load(server: Server, asked: LoadOptions): Promise<Loaded> {
  loads += 1;
  const options = { connections: CONNECTIONS, ...asked, firstNumber: loads * NUMBERS_OF_A_LOAD };
  const before = cpuNanos(server.pid);
  const loaded = await (HAS_WRK && options.rate === undefined
    ? loadByWrk(server.url, options)
    : closedLoop({ url: server.url, ...options }, ON_OTHER_CORE));
  const cpu = cpuNanos(server.pid) - before;
  if (loaded.errors > 0)
    throw new Error(`${loaded.errors} of ${loaded.requests} requests to ${server.name} got no answer`);
  return { ...closedLoopSchema.parse(loaded), cpuMicros: cpu / 1000 / loaded.requests };
}
