/**
 * A gateway process's cache alone, in a process of its own: the read-through over Redis and the real client of the store.
 * Driven by messages; over HTTP it serves `/cached/ID` through the cache and `/bare?ms=500` without anything.
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import Koa from 'koa';
import { MaintenanceState } from '../../src/cache/maintenance.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { createReadThrough } from '../../src/cache/read-through.ts';
import type { EvaluationReader } from '../../src/cache/reader.ts';
import { openRedisFleet, type RedisFleet } from '../../src/cache/redis-fleet.ts';
import { systemTimers } from '../../src/timers.ts';
import { AdjustableTimes, DEFAULT_TIMES } from '../../src/cache/times.ts';
import { systemClock } from '../../src/clock.ts';
import { openRedis } from '../../src/redis/connection.ts';
import { createHttpStore } from '../../src/upstream/http-store.ts';
import { StoreError } from '../../src/upstream/store.ts';
import { type Command, requestSchema, settingsSchema, type WorkerSettings } from './cache-commands.ts';
import { listenOnLoopback } from './loopback.ts';
import { WORKSPACE_A } from './records.ts';

interface Process {
  readonly reader: EvaluationReader;
  readonly fleet: RedisFleet;
}

interface Read {
  readonly endedAtMs: number;
  readonly durationMs: number;
  readonly outcome: string;
  readonly title: string;
}

const CONTEXT = { requestId: 'prove', workspaceIds: [WORKSPACE_A] };

async function open({ redisUrl, storeUrl, storeToken, times: evaluation }: WorkerSettings): Promise<Process> {
  const memory = new MemoryTier({ maxBytes: 2 ** 26 });
  const times = new AdjustableTimes({ ...DEFAULT_TIMES, evaluation });
  const [state, cache] = [openRedis({ url: redisUrl, role: 'state' }), openRedis({ url: redisUrl, role: 'cache' })];
  const maintenance = new MaintenanceState(systemClock);
  const shared = { memory, times, maintenance, clock: systemClock, timers: systemTimers };
  const fleet = await openRedisFleet({ store: 'test', ...shared, state, cache });
  const store = createHttpStore({
    baseUrl: storeUrl,
    token: storeToken,
    timeoutMs: 10_000,
    maxResponseBytes: 2 ** 24,
    maxConnections: 64,
  });
  return { fleet, reader: createReadThrough({ ...shared, store, fleet: fleet.fleet, purges: fleet.purges }) };
}

/** Since the epoch, finer than Date.now. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

async function read({ reader }: Process, id: string): Promise<Read> {
  const startedMs = performance.now();
  const ended = (outcome: string, title: string): Read => ({
    endedAtMs: nowMs(),
    durationMs: performance.now() - startedMs,
    outcome,
    title,
  });
  try {
    const { entry, outcome } = await reader.evaluation(id, CONTEXT);
    return ended(outcome, entry.answer.kind === 'found' ? entry.answer.record.title : '');
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return ended(`failed: ${error.kind}`, '');
  }
}

async function hammer(member: Process, command: Extract<Command, { name: 'hammer' }>): Promise<object> {
  const outcomes: Record<string, number> = {};
  let longestMs = 0;
  const untilMs = performance.now() + command.durationMs;
  const loop = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const { outcome, durationMs } = await read(member, command.id);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      longestMs = Math.max(longestMs, durationMs);
      await sleep(command.pauseMs);
    }
  };
  await Promise.all(Array.from({ length: command.readers }, loop));
  return { outcomes, longestMs };
}

async function watch(member: Process, { id, title, timeoutMs }: Extract<Command, { name: 'watch' }>): Promise<object> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const seen = await read(member, id);
    if (seen.title === title) return { seenAtMs: seen.endedAtMs };
    if (performance.now() > untilMs) throw new Error(`"${title}" was not seen within ${timeoutMs} ms.`);
    await sleep(1);
  }
}

async function run(member: Process, command: Command): Promise<object> {
  if (command.name === 'hammer') return hammer(member, command);
  if (command.name === 'watch') return watch(member, command);
  if (command.name === 'read') {
    return { reads: await Promise.all(Array.from({ length: command.readers }, () => read(member, command.id))) };
  }
  await member.fleet.purges.purge([`evaluation:${command.id}`], 'hard');
  return {};
}

function createApp(member: Process): Koa {
  const app = new Koa();
  app.use(async (context) => {
    if (context.path === '/bare') {
      await sleep(Number(context.query['ms']));
      context.body = { title: 'bare' };
      return;
    }
    const { outcome, title } = await read(member, context.path.slice('/cached/'.length));
    context.status = outcome.startsWith('failed') ? 500 : 200;
    context.body = { title, outcome };
  });
  return app;
}

const settings = settingsSchema.parse(JSON.parse(process.argv[2] ?? ''));
const member = await open(settings);
process.on('message', (message) => {
  const { call, command } = requestSchema.parse(message);
  void run(member, command).then(
    (result) => process.send?.({ call, result }),
    (error: unknown) => process.send?.({ call, error: String(error) }),
  );
});
// The end of the test's process is the end of this one.
process.on('disconnect', () => process.exit(0));
const callback = createApp(member).callback();
const server = await listenOnLoopback(createServer((request, response) => void callback(request, response)));
process.send?.({ url: server.url });
