/**
 * The cost of an answer to the process, beside bare Koa, a fastify stack that does the same work, and a 200 (`npm run bench`);
 * and the cost of an idle process.
 */
import { platform } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'vitest';
import { forTest } from '../support/opened.ts';
import { Bench } from '../bench/gateway/bench.ts';
import { answers } from '../bench/gateway/cases/answers.ts';
import { installPeers } from '../bench/gateway/node-peers.ts';
import { cpuNanos } from '../bench/gateway/processes.ts';
import { withClient } from '../support/redis/client.ts';
import { prove, skipLoudly } from './bar.ts';

/** Short rounds in turn: some two minutes. `npm run bench -- --only answers` takes longer, and is more exact. */
const EFFORT = { rounds: 5, seconds: 1, warmUpSeconds: 6, memorySeconds: 0 };
/** Until all that a start asks for has been asked. */
const START_MS = 5000;
const IDLE_SECONDS = 10;

test('each kind of answer keeps to its share of the CPU', async (context) => {
  installPeers();
  const { rows } = await answers(await openBench(context));
  prove(context, ...rows);
});

test('an idle process asks little of Redis', async (context) => {
  const bench = await openBench(context);
  const { pid } = await bench.evalgate();
  await sleep(START_MS);
  const [commands, cpu] = [await commandsSoFar(bench), cpuNanos(pid)];
  await sleep(1000 * IDLE_SECONDS);
  const perSecond = ((await commandsSoFar(bench)) - commands) / IDLE_SECONDS;
  const cpuMs = (cpuNanos(pid) - cpu) / 1_000_000 / IDLE_SECONDS;
  prove(context, {
    name: 'idle process over one Redis',
    bar: 'at most 15 commands, those within scripts included, and 8 ms of CPU a second',
    measured: `${perSecond.toFixed(1)} commands and ${cpuMs.toFixed(1)} ms of CPU a second`,
    ok: perSecond <= 15 && cpuMs <= 8,
  });
});

async function openBench(context: TestContext): Promise<Bench> {
  if (platform() !== 'linux') skipLoudly(context, 'CPU time is read from /proc');
  const bench = await forTest(Bench.open(EFFORT));
  return bench;
}

async function commandsSoFar({ redis }: Bench): Promise<number> {
  const stats = await withClient(redis.url, (client) => client.info('commandstats'));
  return [...stats.matchAll(/:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}
