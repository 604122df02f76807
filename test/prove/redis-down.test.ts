/** Redis freezes, dies, or is behind a network that swallows everything: keys in use go on, no others are let in. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'vitest';
import { fileOf } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { newToken } from '../../src/keys/token.ts';
import { Fleet } from '../support/fleet.ts';
import type { Sample } from '../support/load.ts';
import { isOneServer } from '../support/redis.ts';
import { count, mostWithin, ms, p99, prove } from './bar.ts';

const GATEWAYS = 2;
const PER_SECOND = 60;
const LIMIT = 40;
const ADDED_MS = 100;
const BACK_WITHIN_MS = 2000;
const FOR_MS = 30_000;
const GIVE_UP_MS = 10_000;
const NEVER_ISSUED = newToken();
const WARM = Array.from({ length: 10 }, (_, index) => `/v2/calls/warm_${index}`);

interface Outage {
  readonly name: string;
  readonly begin: (fleet: Fleet) => Promise<void> | void;
  /** Resolves once Redis is there again. */
  readonly end: (fleet: Fleet) => Promise<void> | void;
}

const OUTAGES: readonly Outage[] = [
  {
    name: 'frozen',
    begin: ({ redis }) => redis.pause(),
    end: async ({ redis }) => {
      const resumed: unknown = redis.resume();
      await resumed;
      await redis.settled?.();
    },
  },
  { name: 'killed', begin: ({ redis }) => redis.kill(), end: ({ redis }) => redis.restart() },
];
const BLACK_HOLE: Outage = {
  name: 'black-holed',
  begin: ({ redisProxy }) => redisProxy.blackHole(),
  end: ({ redisProxy }) => redisProxy.heal(),
};

test.for([...OUTAGES, ...(isOneServer ? [BLACK_HOLE] : [])])('$name', async (outage, context) => {
  await proveOuting(outage, context);
});

function isAdmitted({ tag, status }: Sample): boolean {
  return tag === 'limited' && status === 200;
}

async function proveOuting({ name, begin, end }: Outage, context: TestContext): Promise<void> {
  const fleet = await forTest(
    Fleet.start({
      gateways: GATEWAYS,
      redis: { isDurable: true },
      isRedisProxied: isOneServer,
      env: { LOG_LEVEL: 'fatal' },
    }),
  );
  const load = await fleet.load();
  const [key, limited, unused] = [
    await fleet.first.issueKey(),
    await fleet.first.issueKey({ perMinute: LIMIT }),
    await fleet.first.issueKey(),
  ];
  const warm = fleet.targets(WARM, key);
  const ofLimited = fleet.targets(WARM.slice(0, 1), limited, 'limited');
  const strangers = [unused, NEVER_ISSUED].flatMap((one) => fleet.targets(WARM.slice(0, 1), one, 'stranger'));
  await load.run(warm, { perSecond: PER_SECOND, forMs: 1500 });
  const before = await load.run(warm, { perSecond: PER_SECOND, forMs: 5000 });
  // One after the other, so that each process knows what the other has admitted: else both would count on the same rest.
  const known = await load.run(ofLimited, { perSecond: 5, forMs: 700 });
  await begin(fleet);
  const warmLoad = await load.begin(warm, PER_SECOND);
  const meanwhile = await load.run([...ofLimited, ...strangers], { perSecond: PER_SECOND, forMs: FOR_MS });
  await end(fleet);
  const backAtMs = performance.now();
  const isBack = async (): Promise<boolean> => {
    const statuses = fleet.gateways.map((one) =>
      Promise.all([one.status('/v2/calls/warm_0', unused), one.status('/v2/calls/warm_0', NEVER_ISSUED)]),
    );
    return (await Promise.all(statuses)).every((found) => found.join() === '200,401');
  };
  while (!(await isBack()) && performance.now() - backAtMs < GIVE_UP_MS) await sleep(20);
  const backMs = performance.now() - backAtMs;
  const during = await load.end(warmLoad);
  const after = await load.run(warm, { perSecond: PER_SECOND, forMs: 3000 });
  const late = await load.run(ofLimited, { perSecond: 20, forMs: 1000 });
  const served = during.filter(({ status }) => status === 200).length;
  const letIn = meanwhile.filter(({ tag, status }) => tag === 'stranger' && status < 400).length;
  const most = mostWithin(
    [...known, ...meanwhile, ...late].filter(isAdmitted).map(({ atMs }) => atMs),
    60_000,
  );
  const shares = fleet.gateways.map(
    ({ publicUrl }) => meanwhile.filter((one) => isAdmitted(one) && one.url.startsWith(publicUrl)).length,
  );
  const lost = during.find(({ status }) => status !== 200);
  prove(context, {
    name: `Redis ${name}`,
    bar: `for ${FOR_MS / 1000} s, ${GATEWAYS} processes, warm keys under load: 100 % answered 200, p99 at most ${ms(ADDED_MS)} more than before; no other key let in; each process within its share of a limit of ${LIMIT}, both within the limit; normal within ${ms(BACK_WITHIN_MS)} of its return`,
    measured: `${count(served)} of ${count(during.length)} answered 200${lost === undefined ? '' : ` (${JSON.stringify(lost)})`}, p99 ${ms(p99(before))} before and ${ms(p99(during))} meanwhile, ${letIn} let in with other keys, ${shares.join(' and ')} admitted of the limit (${most} in all within a minute), normal after ${ms(backMs)}`,
    ok:
      served === during.length &&
      p99(during) - p99(before) <= ADDED_MS &&
      letIn === 0 &&
      shares.every((share) => share >= 1 && share <= LIMIT / GATEWAYS) &&
      most <= LIMIT &&
      backMs <= BACK_WITHIN_MS &&
      after.every(({ status }) => status === 200) &&
      p99(after) - p99(before) <= ADDED_MS,
  });
}

test.runIf(isOneServer)('answers that come too late', async (context) => {
  const [timeouts, giveUpMs, perSecond] = [2000, 120_000, 300];
  // Nothing is kept in memory, so that every answer comes by way of Redis, or from the store.
  const file = fileOf('cache: { memory: 0MB }\n');
  const env = { CONFIG_FILE: file, LOG_LEVEL: 'fatal' };
  const fleet = await forTest(Fleet.start({ gateways: GATEWAYS, redis: {}, isRedisProxied: true, env }));
  const load = await fleet.load();
  const paths = Array.from({ length: 100 }, (_, index) => `/v2/calls/call_${index}`);
  const targets = fleet.targets(paths, await fleet.first.issueKey());
  await load.run(targets, { perSecond, forMs: 1500 });
  const begun = await load.begin(targets, perSecond);
  const untilMs = performance.now() + giveUpMs;
  let forced = 0;
  while (forced < timeouts && performance.now() < untilMs) {
    // Around the 250 ms after which commands are given up. After one, no request waits for Redis until it answers again.
    fleet.redisProxy.delay('downstream', 270, 60);
    await sleep(600);
    fleet.redisProxy.heal();
    await sleep(1000);
    const found = fleet.gateways.map((one) => one.metric('evalgate_redis_command_failures_total', 'timeout'));
    forced = (await Promise.all(found)).reduce((sum, one) => sum + one, 0);
  }
  const samples = await load.end(begun);
  const served = samples.filter(({ status }) => status === 200);
  const foreign = served.filter(({ url, id }) => !url.endsWith(`/${id}`));
  const fromRedis = served.filter(({ cacheStatus }) => cacheStatus.startsWith('evalgate; hit'));
  const others = samples.filter(({ status }) => status !== 200);
  prove(context, {
    name: 'late answers of Redis',
    bar: `${count(timeouts)} commands timed out under load, with their answers coming after: none is taken for another's`,
    measured: `${count(forced)} timed out; ${count(served.length)} of ${count(samples.length)} reads served, ${count(fromRedis.length)} of them by way of Redis, ${foreign.length} with another's record${foreign[0] === undefined ? '' : ` (${foreign[0].url}: ${foreign[0].id})`}; p99 ${ms(p99(samples))}`,
    ok:
      forced >= timeouts &&
      foreign.length === 0 &&
      // If Redis is too late for a key as well, that key can't be let in.
      others.every(({ status }) => status === 500) &&
      fromRedis.length > 0,
  });
});
