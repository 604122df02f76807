/** How soon a cache time that is changed at one gateway rules at all of them, and whether it outlives them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { GatewayProcess } from '../../support/gateway-process.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { count, ms, percentile, type Row, scaled, type Scale, slackMs } from '../row.ts';

const PROCESSES = 4;
const GIVE_UP_MS = 10_000;
const ADMIN = { name: 'sre', token: 'prove-times' };

const timesSchema = z.object({ classes: z.array(z.object({ class: z.string(), freshMs: z.number() })) });
const auditSchema = z.object({
  entries: z.array(z.looseObject({ who: z.string(), action: z.string(), to: z.looseObject({ fresh: z.unknown() }) })),
});

export async function run(scale: Scale): Promise<readonly Row[]> {
  const redis = await startRedis();
  try {
    const rounds = scaled(scale, 200);
    const delaysMs = await withGateways(redis, (gateways) => changeAndChangeAgain(gateways, rounds));
    return [within(delaysMs, 1000 + slackMs(scale)), await withGateways(redis, (later) => outlived(later, rounds))];
  } finally {
    await redis.close();
  }
}

async function withGateways<R>(redis: TestRedis, use: (gateways: readonly GatewayProcess[]) => Promise<R>): Promise<R> {
  const env = { REDIS_URL: redis.url, LOG_LEVEL: 'silent', ADMIN_TOKEN: `${ADMIN.name}=${ADMIN.token}` };
  const started = await Promise.allSettled(Array.from({ length: PROCESSES }, () => GatewayProcess.start({ env })));
  const gateways = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  try {
    for (const one of started) if (one.status === 'rejected') throw one.reason;
    return await use(gateways);
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.kill()));
  }
}

/** How long after each change was asked for the last of the gateways went by it. */
async function changeAndChangeAgain(gateways: readonly GatewayProcess[], rounds: number): Promise<readonly number[]> {
  const delaysMs: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const at = gateways[round % gateways.length];
    if (at === undefined) throw new RangeError('There is no gateway.');
    const sinceMs = performance.now();
    const [changed] = await Promise.all([
      call(at, 'PUT', '/api/cache/ttl/list', { fresh: `${freshMsOf(round)}ms` }),
      ...gateways.map((gateway) => rules(gateway, freshMsOf(round))),
    ]);
    if (changed === null) throw new Error('A change was not answered.');
    delaysMs.push(performance.now() - sinceMs);
  }
  return delaysMs;
}

/** Another one each time. */
function freshMsOf(round: number): number {
  return 40_000 + round;
}

async function rules(gateway: GatewayProcess, freshMs: number): Promise<void> {
  const untilMs = performance.now() + GIVE_UP_MS;
  while ((await freshMsAt(gateway)) !== freshMs) {
    if (performance.now() > untilMs) throw new Error(`A time was not in force within ${GIVE_UP_MS} ms.`);
    await sleep(1);
  }
}

async function freshMsAt(gateway: GatewayProcess): Promise<number | undefined> {
  const { classes } = timesSchema.parse(await call(gateway, 'GET', '/api/cache/ttl'));
  return classes.find((one) => one.class === 'list')?.freshMs;
}

async function call(gateway: GatewayProcess, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(gateway.adminUrl + path, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN.token}` },
    body: body === undefined ? null : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}.`);
  return await response.json();
}

function within(delaysMs: readonly number[], allowedMs: number): Row {
  const longest = Math.max(...delaysMs);
  return {
    name: 'cache time changed',
    bar: `${count(delaysMs.length)} times at one of ${PROCESSES} processes: in force in all of them within ${ms(allowedMs)}`,
    measured: `p50 ${ms(percentile(delaysMs, 0.5))}, p99 ${ms(percentile(delaysMs, 0.99))}, longest ${ms(longest)}`,
    ok: longest <= allowedMs,
  };
}

/** `later` were started after all that made the changes had ended. */
async function outlived(later: readonly GatewayProcess[], rounds: number): Promise<Row> {
  const times = await Promise.all(later.map(freshMsAt));
  const inForce = times.filter((freshMs) => freshMs === freshMsOf(rounds)).length;
  const audits = await Promise.all(later.map((gateway) => call(gateway, 'GET', '/api/audit')));
  const audited = audits.map((audit) => countAudited(audit, rounds));
  return {
    name: 'cache time changed, then a restart',
    bar: `all ${PROCESSES} processes ended and started: the last change in force in each, all ${count(rounds)} in the audit with who made them`,
    measured: `in force in ${inForce}; ${count(Math.min(...audited))} in the audit of each`,
    ok: inForce === PROCESSES && audited.every((one) => one === rounds),
  };
}

/** How many of the changes it tells of, each at its place. */
function countAudited(audit: unknown, rounds: number): number {
  const newestFirst = auditSchema.parse(audit).entries;
  return newestFirst.filter(
    ({ who, action, to }, index) =>
      who === ADMIN.name && action === 'cache.ttl.set' && to.fresh === `${freshMsOf(rounds - index)}ms`,
  ).length;
}
