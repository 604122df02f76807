/** How soon a cache time that is changed at one gateway is in force in all of them, and whether it outlives them. */
import { onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { Fleet } from '../support/fleet.ts';
import type { GatewayProcess } from '../support/process.ts';
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
  const fleet = await Fleet.start({
    gateways: PROCESSES,
    redis: {},
    env: { ADMIN_TOKEN: `${ADMIN}=prove-times` },
  });
  onTestFinished(() => fleet.close());
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
