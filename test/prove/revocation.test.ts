/** How soon a revocation is in force in every process of the fleet, also in those whose subscription is cut. */
import { test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { Fleet } from '../support/fleet.ts';
import type { GatewayProcess } from '../support/process.ts';
import { countSubscribers, cutSubscribers } from '../support/redis/client.ts';
import { percentile } from '../support/percentile.ts';
import { count, prove } from './bar.ts';

const PROCESSES = 4;
const GIVE_UP_MS = 10_000;
const PATH = '/v2/calls/warm';

const times = { CACHE_EVALUATION_FRESH: '1h' };
const fleet = await forFile(Fleet.start({ gateways: PROCESSES, redis: {}, env: times }));

interface Revoked {
  /** How long after the revocation was asked for the last process refused the key for the first time. */
  readonly refusedMs: number;
  /** The answers after that, one per process. */
  readonly afterwards: readonly number[];
}

/** One key that all processes know and let in, revoked at the gateway of that place. */
async function revoke(round: number, meanwhile: () => Promise<unknown> = async () => null): Promise<Revoked> {
  const { keyId, token } = await fleet.first.issue();
  for (const gateway of fleet.gateways) {
    const status = await gateway.status(PATH, token);
    if (status !== 200) throw new Error(`A key that was just issued was answered ${status}.`);
  }
  const sinceMs = performance.now();
  const [refused] = await Promise.all([
    Promise.all(fleet.gateways.map((gateway) => refusedAfter(gateway, token, sinceMs))),
    meanwhile(),
    fleet.gateway(round).administer('DELETE', `/api/keys/${keyId}`),
  ]);
  const afterwards = await Promise.all(fleet.gateways.map((gateway) => gateway.status(PATH, token)));
  return { refusedMs: Math.max(...refused), afterwards };
}

async function refusedAfter(gateway: GatewayProcess, token: string, sinceMs: number): Promise<number> {
  while ((await gateway.status(PATH, token)) !== 403) {
    if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error(`The key was let in after ${GIVE_UP_MS} ms.`);
  }
  return performance.now() - sinceMs;
}

function at(all: readonly Revoked[], share: number): number {
  return percentile(
    all.map(({ refusedMs }) => refusedMs),
    share,
  );
}

/** How often a process answered something else once it had refused the key. */
function letInAgain(all: readonly Revoked[]): number {
  return all.flatMap(({ afterwards }) => afterwards).filter((status) => status !== 403).length;
}

function tenths(value: number): string {
  return `${value.toFixed(1)} ms`;
}

test('a revocation spreads', async (context) => {
  const [rounds, allowedMs] = [1000, 100];
  const all: Revoked[] = [];
  for (let round = 0; round < rounds; round += 1) all.push(await revoke(round));
  prove(context, {
    name: 'revocation',
    bar: `${count(rounds)} times at one of ${PROCESSES} processes: the key answered 403 by every one, p99 at most ${allowedMs} ms`,
    measured: `p50 ${tenths(at(all, 0.5))}, p99 ${tenths(at(all, 0.99))}, longest ${tenths(at(all, 1))}; ${letInAgain(all)} other answers afterwards`,
    ok: at(all, 0.99) <= allowedMs && letInAgain(all) === 0,
  });
});

test('a revocation while subscriptions are cut', async (context) => {
  const [rounds, allowedMs] = [50, 1000];
  const subscribers = await countSubscribers(fleet.redis);
  const all: Revoked[] = [];
  let cuts = 0;
  for (let round = 0; round < rounds; round += 1) {
    const sinceMs = performance.now();
    while ((await countSubscribers(fleet.redis)) < subscribers) {
      if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error('A connection for messages did not come back.');
    }
    all.push(await revoke(round, async () => (cuts += await cutSubscribers(fleet.redis))));
  }
  prove(context, {
    name: "revocation, subscribers' connections cut",
    bar: `${rounds} times: no process lets the key in beyond ${allowedMs} ms`,
    measured: `${cuts} connections cut; the key was refused everywhere within ${tenths(at(all, 1))}; ${letInAgain(all)} other answers afterwards`,
    ok: cuts >= rounds * PROCESSES && at(all, 1) <= allowedMs && letInAgain(all) === 0,
  });
});
