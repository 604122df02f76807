/**
 * docker-compose.yml, built and run: it answers from nothing, and a gateway that goes, in whichever way, costs no request.
 * Skipped loudly if there is no docker with Compose, or no daemon.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { ComposeStack, type GatewayName, whyNoCompose } from '../support/compose-stack.ts';
import { Load, type Sample, type Target } from '../support/load.ts';
import { type Bar, count, ms, p99, prove, skipLoudly } from './bar.ts';

const LOAD_PER_SECOND = 100;
const WANTED_ANSWERS = 10;
const ANSWERS_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 50;
const BEFORE_MS = 1000;
const AFTER_MS = 4000;
/** Longer than the balancer waits for an answer, which it does of what was under way. */
const FROZEN_MS = 20_000;
/** How long the balancer waits for a gateway's answer, and as long again for a retry. */
const FROZEN_ANSWER_MS = 17_000;
const PAGES = 10;
const TIMES = 10;

const pageSchema = z.object({ calls: z.array(z.object({ id: z.string() })) });

test('containers', async (context) => {
  const why = await whyNoCompose();
  if (why !== null) skipLoudly(context, why);
  const stack = new ComposeStack();
  onTestFinished(() => stack.down());
  const first = await fromNothing(stack);
  const load = await forTest(Load.start());
  // Else there would be none to take over.
  await stack.untilReady('gateway-1');
  await stack.untilReady('gateway-2');
  const world = { stack, load, targets: await targetsOf(first) };
  prove(context, first.bar, await killed(world), await stopped(world), await frozen(world));
});

interface World {
  readonly stack: ComposeStack;
  readonly load: Load;
  readonly targets: readonly Target[];
}

interface First {
  readonly url: string;
  readonly key: string;
  readonly bar: Bar;
}

async function fromNothing(stack: ComposeStack): Promise<First> {
  await stack.build();
  const beganMs = performance.now();
  await stack.up();
  const key = await stack.issueKey(await stack.workspaceId());
  const url = await stack.url();
  const statuses: number[] = [];
  while (statuses.filter((status) => status === 200).length < WANTED_ANSWERS) {
    if (performance.now() - beganMs > ANSWERS_WITHIN_MS) break;
    statuses.push(await statusOf(`${url}/v2/calls?pageSize=2`, key));
    await sleep(LOOK_EVERY_MS);
  }
  const tookMs = performance.now() - beganMs;
  const good = statuses.filter((status) => status === 200).length;
  const megabytes = Math.round((await stack.imageBytes()) / 1e6);
  const bar = {
    name: 'containers, from nothing',
    bar: `docker compose up, a key, and ${WANTED_ANSWERS} answers of 200 through the balancer within ${ms(ANSWERS_WITHIN_MS)}`,
    measured: `${good} of ${statuses.length} were 200, after ${ms(tookMs)}; image of ${megabytes} MB`,
    ok: good === WANTED_ANSWERS && tookMs <= ANSWERS_WITHIN_MS,
  };
  return { url, key, bar };
}

async function statusOf(url: string, key: string): Promise<number> {
  try {
    const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

/** Reads of a thousand calls in three ways: at first most wait for the store, later some and some don't. */
async function targetsOf({ url, key }: First): Promise<readonly Target[]> {
  const targets: Target[] = [];
  for (let page = 1; page <= PAGES; page += 1) {
    const response = await fetch(`${url}/v2/calls?pageSize=100&page=${page}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    for (const { id } of pageSchema.parse(await response.json()).calls) {
      for (const path of ['', '/transcript', '/scorecard']) {
        targets.push({ url: `${url}/v2/calls/${id}${path}`, key, tag: path });
      }
    }
  }
  return targets;
}

async function killed({ stack, load, targets }: World): Promise<Bar> {
  await load.begin(targets, LOAD_PER_SECOND);
  for (let done = 0; done < TIMES; done += 1) {
    const name = turn(done);
    await sleep(BEFORE_MS);
    await stack.kill(name);
    await sleep(AFTER_MS);
    await stack.start(name);
    await stack.untilReady(name);
  }
  return {
    name: 'containers, a gateway killed',
    bar: `docker kill, ${TIMES} times in turn, under ${LOAD_PER_SECOND} requests/s by keep-alive clients through the balancer: no failed request`,
    ...judged(await load.end()),
  };
}

async function stopped({ stack, load, targets }: World): Promise<Bar> {
  await load.begin(targets, LOAD_PER_SECOND);
  const statuses = new Set<number>();
  for (let done = 0; done < TIMES; done += 1) {
    const name = turn(done);
    await sleep(BEFORE_MS);
    statuses.add(await stack.stop(name));
    await stack.start(name);
    await stack.untilReady(name);
  }
  const { measured, ok } = judged(await load.end());
  return {
    name: 'containers, a gateway stopped',
    bar: `docker compose stop, ${TIMES} times in turn, under the same load: no failed request, exit status 0`,
    measured: `${measured}; exit status ${[...statuses].join(', ')}`,
    ok: ok && [...statuses].join() === '0',
  };
}

async function frozen({ stack, load, targets }: World): Promise<Bar> {
  await load.begin(targets, LOAD_PER_SECOND);
  await sleep(BEFORE_MS);
  await stack.freeze('gateway-1');
  await sleep(FROZEN_MS);
  await stack.thaw('gateway-1');
  await stack.untilReady('gateway-1');
  const samples = await load.end();
  const { measured, ok } = judged(samples);
  return {
    name: 'containers, a gateway frozen',
    bar: `docker pause for ${ms(FROZEN_MS)} under the same load: no failed request, none waits over ${ms(FROZEN_ANSWER_MS)}`,
    measured,
    ok: ok && longestMs(samples) <= FROZEN_ANSWER_MS,
  };
}

function turn(done: number): GatewayName {
  return done % 2 === 0 ? 'gateway-1' : 'gateway-2';
}

function judged(samples: readonly Sample[]): Pick<Bar, 'measured' | 'ok'> {
  const failed = samples.filter(({ status }) => status !== 200);
  const how = [...new Set(failed.map(({ status }) => status))].join(', ');
  return {
    measured: `${count(samples.length)} requests, ${failed.length} failed${how === '' ? '' : ` (status ${how})`}; p99 ${ms(p99(samples))}, longest ${ms(longestMs(samples))}`,
    ok: failed.length === 0 && samples.length > 0,
  };
}

function longestMs(samples: readonly Sample[]): number {
  return Math.max(...samples.map(({ tookMs }) => tookMs));
}
