/** How soon a cache time that is changed at one gateway is in force in all of them, whether it outlives them, and ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { Fleet } from '../support/fleet.ts';
import type { GatewayProcess } from '../support/process.ts';
import { untilAll } from '../support/redis/client.ts';
import { percentile } from '../support/percentile.ts';
import { count, ms, prove } from './bar.ts';

const PROCESSES = 4;
const GIVE_UP_MS = 10_000;
const ADMIN = 'sre';

const timesSchema = z.object({ classes: z.array(z.object({ class: z.string(), freshMs: z.number() })) });
const auditSchema = z.object({
  entries: z.array(z.looseObject({ who: z.string(), action: z.string(), to: z.looseObject({ fresh: z.unknown() }) })),
});

/** Another one each time. */
function freshMsOf(round: number): number {
  return 40_000 + round;
}

async function freshMsAt(gateway: GatewayProcess): Promise<number | undefined> {
  const { classes } = timesSchema.parse(await gateway.administer('GET', '/api/cache/ttl'));
  return classes.find((one) => one.class === 'list')?.freshMs;
}

async function untilInForce(gateway: GatewayProcess, freshMs: number): Promise<void> {
  const sinceMs = performance.now();
  while ((await freshMsAt(gateway)) !== freshMs) {
    if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error(`Not in force within ${GIVE_UP_MS} ms.`);
  }
}

test('a cache time is changed', async (context) => {
  const [rounds, allowedMs] = [200, 1000];
  const fleet = await forTest(
    Fleet.start({
      gateways: PROCESSES,
      redis: {},
      env: { ADMIN_TOKEN: `${ADMIN}=prove-times` },
    }),
  );
  const delaysMs: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const sinceMs = performance.now();
    await Promise.all([
      fleet.gateway(round).administer('PUT', '/api/cache/ttl/list', { fresh: `${freshMsOf(round)}ms` }),
      ...fleet.gateways.map((gateway) => untilInForce(gateway, freshMsOf(round))),
    ]);
    delaysMs.push(performance.now() - sinceMs);
  }
  await Promise.all(fleet.gateways.splice(0).map((gateway) => gateway.kill()));
  await Promise.all(Array.from({ length: PROCESSES }, () => fleet.add()));
  const inForce = (await Promise.all(fleet.gateways.map(freshMsAt))).filter((one) => one === freshMsOf(rounds)).length;
  const audits = await Promise.all(fleet.gateways.map((gateway) => gateway.administer('GET', '/api/audit')));
  const audited = audits.map(
    (audit) =>
      auditSchema
        .parse(audit)
        .entries.filter(
          ({ who, action, to }, index) =>
            who === ADMIN && action === 'cache.ttl.set' && to.fresh === `${freshMsOf(rounds - index)}ms`,
        ).length,
  );
  const longestMs = Math.max(...delaysMs);
  prove(
    context,
    {
      name: 'cache time changed',
      bar: `${count(rounds)} times at one of ${PROCESSES} processes: in force in all of them within ${ms(allowedMs)}`,
      measured: `p50 ${ms(percentile(delaysMs, 0.5))}, p99 ${ms(percentile(delaysMs, 0.99))}, longest ${ms(longestMs)}`,
      ok: longestMs <= allowedMs,
    },
    {
      name: 'cache time changed, then a restart',
      bar: `all ${PROCESSES} processes killed and started: the last change in force in each, all ${count(rounds)} in the audit with who made them`,
      measured: `in force in ${inForce}; ${count(Math.min(...audited))} in the audit of each`,
      ok: inForce === PROCESSES && audited.every((one) => one === rounds),
    },
  );
});

const rowSchema = z.object({ until: z.object({ fresh: z.iso.datetime() }) });
const actionsSchema = z.object({ entries: z.array(z.looseObject({ action: z.string() })) });

async function endsAudited(gateway: GatewayProcess): Promise<number> {
  const { entries } = actionsSchema.parse(await gateway.administer('GET', '/api/audit'));
  return entries.filter(({ action }) => action === 'cache.ttl.end').length;
}

test('a cache time is set for a minute', async (context) => {
  const [setMs, allowedMs] = [47_000, 1000];
  const fleet = await forTest(Fleet.start({ gateways: PROCESSES, redis: {} }));
  const body = { fresh: `${setMs}ms`, for: '1m' };
  const row = rowSchema.parse(await fleet.first.administer('PUT', '/api/cache/ttl/list', body));
  const endMs = Date.parse(row.until.fresh);
  await Promise.all(fleet.gateways.map((gateway) => untilInForce(gateway, setMs)));
  await fleet.gateways.shift()?.kill();
  const late = await Promise.all(
    fleet.gateways.map(async (gateway) => {
      while ((await freshMsAt(gateway)) === setMs) {
        if (Date.now() - endMs > GIVE_UP_MS) break;
        await sleep(20);
      }
      return Date.now() - endMs;
    }),
  );
  await untilAll(fleet.gateways, 'the end is audited', async (gateway) => (await endsAudited(gateway)) > 0);
  const audited = await Promise.all(fleet.gateways.map(endsAudited));
  prove(context, {
    name: 'cache time set for a minute',
    bar: `at one of ${PROCESSES} processes, which is killed then: each other goes back by itself within ${ms(allowedMs)} of the end, not before it, and the audit has the end once`,
    measured: `after ${ms(Math.min(...late))} to ${ms(Math.max(...late))}; ${audited.join(', ')} ends in the audit`,
    ok: late.every((afterMs) => afterMs >= 0 && afterMs <= allowedMs) && audited.every((ends) => ends === 1),
  });
});
