/** A process of a fleet that watches made-up traffic, and nothing else. Argument: the address of Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AdjustableTimes } from '../../src/cache/times.ts';
import { adviceOf } from '../../src/cache/what-if/advice.ts';
import { WhatIfModel } from '../../src/cache/what-if/model.ts';
import { redisBoard, redisMessages } from '../../src/cache/what-if/redis-what-if.ts';
import { fleetWhatIf } from '../../src/cache/what-if/what-if.ts';
import { systemClock } from '../../src/clock.ts';
import { openRedis } from '../../src/redis/connection.ts';
import { systemTimers } from '../../src/timers.ts';
import { OUTDATED_LIMITS } from './insight.ts';
import { until } from './key-fleet.ts';
import { openMembers } from './members.ts';
import { linkUp } from './redis-link.ts';
import { type WhatIfCommand, whatIfCommandSchema } from './what-if-commands.ts';
import { aRead, ZipfKeys } from './what-if-fleet.ts';
import { answerCalls } from './worker-calls.ts';

const STEP_MS = 10;
const KEYS = 20_000;
const BEAT_EVERY_MS = 2000;
const GIVE_UP_MS = 10_000;

const link = openRedis({ url: process.argv[2] ?? '', role: 'state' });
await linkUp(link);
await until(() => link.subscriber.isUp(), GIVE_UP_MS);
const members = openMembers(link, {}, BEAT_EVERY_MS);
const place = { link, store: 'test', self: members.id };
const times = new AdjustableTimes();
const whatIf = fleetWhatIf(
  { model: new WhatIfModel({ clock: systemClock, times }), clock: systemClock },
  {
    self: members.id,
    peers: () => members.peers(),
    messages: redisMessages(place),
    board: redisBoard(place),
    timers: systemTimers,
  },
);

async function read({ durationMs, perSecond, seed, isWatched }: Extract<WhatIfCommand, { name: 'read' }>) {
  const keys = new ZipfKeys(KEYS, seed);
  const reads: (readonly [string, number])[] = [];
  const before = process.cpuUsage();
  const beganMs = performance.now();
  for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs = performance.now() - beganMs) {
    while (reads.length < (elapsedMs * perSecond) / 1000) {
      const report = aRead(keys.next());
      reads.push([report.key, Date.now()]);
      if (isWatched) whatIf.hooks.onRead?.(report);
    }
    await sleep(STEP_MS);
  }
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1000, reads };
}

async function listAdvice() {
  const snapshots = (await whatIf.reports()).map(({ snapshot }) => snapshot);
  const all = adviceOf(snapshots, { times, outdatedLimits: OUTDATED_LIMITS, nowMs: Date.now() });
  const list = all.find((advice) => advice.class === 'list');
  return { reads: list?.reads ?? 0, curve: list?.curve ?? [] };
}

async function answer(command: WhatIfCommand): Promise<unknown> {
  if (command.name === 'read') return read(command);
  if (command.name === 'advice') return listAdvice();
  return until(() => members.peers().length === command.processes, GIVE_UP_MS);
}

answerCalls((command) => answer(whatIfCommandSchema.parse(command)));
