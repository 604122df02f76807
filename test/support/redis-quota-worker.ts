/**
 * One process of a fleet: hammers one quota in bursts, often just as room is given back, and writes what it was told.
 * Arguments: the task as JSON. Output: one JSON document.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '../../src/clock.ts';
import type { QuotaDecision } from '../../src/quota/quota.ts';
import { openFleetQuota } from '../../src/quota/redis-open.ts';
import { openRedis } from '../../src/redis/connection.ts';
import { SeededRandom } from './random.ts';
import { linkUp } from './redis-link.ts';

const windows = z.strictObject({ minuteMicros: z.int(), hourMicros: z.int() });
const limits = z.strictObject({ perMinute: z.int(), perHour: z.int() });
const taskSchema = z.strictObject({
  url: z.string(),
  windows,
  limits,
  seed: z.int(),
  startAtMs: z.number(),
  durationMs: z.number(),
});
export type HammerTask = z.infer<typeof taskSchema>;

const windowState = z.strictObject({
  limit: z.int(),
  remaining: z.int(),
  emptyAtMicros: z.int(),
  nextFreeAtMicros: z.int(),
});
const decision = z.strictObject({
  admitted: z.boolean(),
  nowMicros: z.int(),
  minute: windowState,
  hour: windowState,
  retryAtMicros: z.int().nullable(),
});
/** What a process writes: its decisions in order, and how often it went on without Redis. */
export const hammerReport = z.strictObject({ decisions: z.array(decision), wentAlone: z.int() });
export type HammerReport = z.infer<typeof hammerReport>;

/** To the edge where it is known, with the microseconds that a timer can't wait spent in turning. */
async function waitAround(last: QuotaDecision, random: SeededRandom): Promise<void> {
  const edge = last.retryAtMicros;
  if (edge === null || random.next() < 0.5) {
    await sleep(random.integer(0, 12));
    return;
  }
  const dueMicros = systemClock.nowMicros() + (edge - last.nowMicros) + random.integer(-1500, 300);
  await sleep(Math.max(0, Math.floor((dueMicros - systemClock.nowMicros()) / 1000) - 1));
  while (systemClock.nowMicros() < dueMicros) await new Promise((resume) => setImmediate(resume));
}

async function hammer(task: HammerTask): Promise<HammerReport> {
  const random = new SeededRandom(task.seed);
  const link = openRedis({ url: task.url, role: 'state' });
  await linkUp(link);
  let wentAlone = 0;
  const hooks = { onAlone: () => (wentAlone += 1) };
  const quota = openFleetQuota({
    link,
    clock: systemClock,
    members: { count: () => 1 },
    windows: task.windows,
    hooks,
    answerWithinMs: 5000,
  });
  await sleep(Math.max(0, task.startAtMs - Date.now()));
  const decisions: QuotaDecision[] = [];
  const untilMs = task.startAtMs + task.durationMs;
  while (Date.now() < untilMs) {
    const burst = Array.from({ length: random.integer(1, 12) }, async () => await quota.take('q', task.limits));
    decisions.push(...(await Promise.all(burst)));
    const last = decisions.at(-1);
    if (last !== undefined) await waitAround(last, random);
  }
  quota.close();
  await link.close();
  return { decisions, wentAlone };
}

if (process.argv[1] === import.meta.filename) {
  const report = await hammer(taskSchema.parse(JSON.parse(process.argv[2] ?? 'null')));
  process.stdout.write(JSON.stringify(report));
}
