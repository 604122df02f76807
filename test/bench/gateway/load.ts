/** Load at one server, and what it cost the server. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { cpuNanos, firstDocument, launch, OTHER_CORE } from './processes.ts';
import type { Server } from './server.ts';

export interface LoadOptions {
  readonly requests: readonly BenchRequest[];
  readonly connections?: number;
  readonly seconds: number;
  /** Requests a second in all, sent when they are due; else each connection sends its next once it has its answer. */
  readonly rate?: number;
  /** `{n}` in a path is another number in each request. */
  readonly isUnique?: boolean;
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

/** Rejects where a request got no answer. Which statuses came is for the caller to look at. */
export async function load(server: Server, options: LoadOptions): Promise<Loaded> {
  const before = cpuNanos(server.pid);
  const told = JSON.stringify({ connections: CONNECTIONS, ...options, url: server.url });
  const driver = launch({ core: OTHER_CORE, command: [process.execPath, DRIVER], env: { OPTIONS: told } });
  const loaded = await firstDocument(driver.child, loadedSchema);
  const cpu = cpuNanos(server.pid) - before;
  if (loaded.errors > 0)
    throw new Error(`${loaded.errors} of ${loaded.requests} requests to ${server.name} got no answer`);
  return { ...loaded, cpuMicros: cpu / 1000 / loaded.requests };
}
