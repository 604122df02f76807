/** Load at one server, and what it cost the server: by wrk where it is installed, else by autocannon. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { cpuNanos, firstDocument, launch, OTHER_CORE } from './processes.ts';
import type { Server } from './server.ts';
import { HAS_WRK, loadByWrk } from './wrk.ts';

export interface LoadOptions {
  readonly requests: readonly BenchRequest[];
  readonly connections?: number;
  readonly seconds: number;
  /** Requests a second in all, sent when they are due; else each connection sends its next once it has its answer. */
  readonly rate?: number;
  /** `{n}` in a path is something else in each request, and nothing that was there before. */
  readonly isUnique?: boolean;
}

export interface DriverOptions extends LoadOptions {
  readonly connections: number;
  /** The first that stands for `{n}`. */
  readonly firstNumber: number;
}

export interface BenchRequest {
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const loadedSchema = z.object({
  requests: z.number(),
  statuses: z.record(z.string(), z.number()),
  errors: z.number(),
  seconds: z.number(),
  bytes: z.number(),
  latencyMs: z.object({ p50: z.number(), p90: z.number(), p99: z.number(), max: z.number() }),
});

export interface Loaded extends z.output<typeof loadedSchema> {
  /** Of the server process and its descendants, in microseconds a request. */
  readonly cpuMicros: number;
}

const DRIVER = fileURLToPath(new URL('../peers/load.js', import.meta.url));
/** Unless a load has others. */
export const CONNECTIONS = 32;

/** Each load has numbers of its own, so that what it asks for was never asked for before. */
const NUMBERS_OF_A_LOAD = 100_000_000;
let loads = 0;

/** Rejects where a request got no answer. Which statuses came is for the caller to look at. */
export async function load(server: Server, asked: LoadOptions): Promise<Loaded> {
  loads += 1;
  const options = { connections: CONNECTIONS, ...asked, firstNumber: loads * NUMBERS_OF_A_LOAD };
  const before = cpuNanos(server.pid);
  const loaded = await (HAS_WRK && options.rate === undefined
    ? loadByWrk(server.url, options)
    : loadByAutocannon(server.url, options));
  const cpu = cpuNanos(server.pid) - before;
  if (loaded.errors > 0)
    throw new Error(`${loaded.errors} of ${loaded.requests} requests to ${server.name} got no answer`);
  return { ...loadedSchema.parse(loaded), cpuMicros: cpu / 1000 / loaded.requests };
}

function loadByAutocannon(url: string, options: DriverOptions): Promise<z.output<typeof loadedSchema>> {
  const told = JSON.stringify({ ...options, url });
  const driver = launch({ core: OTHER_CORE, command: [process.execPath, DRIVER], env: { OPTIONS: told } });
  return firstDocument(driver.child, loadedSchema);
}
