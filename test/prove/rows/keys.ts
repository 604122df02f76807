/** How soon a revocation is known to every process of the fleet, also to those that can't be told. */
import { KeyWorkers, type RevocationSample } from '../../support/key-workers.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { count, ms, percentile, type Row, scaled, type Scale, slackMs } from '../row.ts';

const PROCESSES = 4;

export async function run(scale: Scale): Promise<readonly Row[]> {
  const redis = await startRedis();
  try {
    const workers = await KeyWorkers.start(redis.url, PROCESSES);
    try {
      return [await revocations(workers, scale), await cuts(workers, redis, scale)];
    } finally {
      await workers.close();
    }
  } finally {
    await redis.close();
  }
}

async function revocations(workers: KeyWorkers, scale: Scale): Promise<Row> {
  const rounds = scaled(scale, 1000);
  const allowedMs = 100 + slackMs(scale);
  const samples: RevocationSample[] = [];
  for (let round = 0; round < rounds; round += 1) samples.push(await workers.revocation(round));
  const p99 = at(samples, 0.99);
  return {
    name: 'revocation',
    bar: `${count(rounds)} times: the key refused by every one of ${PROCESSES} processes, p99 at most ${ms(allowedMs)}`,
    measured: `p50 ${tenths(at(samples, 0.5))}, p99 ${tenths(p99)}, longest ${tenths(at(samples, 1))}${admittedNote(samples)}`,
    ok: p99 <= allowedMs && admittedAfter(samples) === 0,
  };
}

async function cuts(workers: KeyWorkers, redis: TestRedis, scale: Scale): Promise<Row> {
  const rounds = scaled(scale, 50);
  const allowedMs = 1000 + slackMs(scale);
  const samples: RevocationSample[] = [];
  for (let round = 0; round < rounds; round += 1) samples.push(await workers.revocationWhileCut(round, redis));
  return {
    name: "revocation, subscribers' connections cut",
    bar: `${rounds} times: nobody lets the key in beyond ${ms(allowedMs)}`,
    measured: `${rounds * PROCESSES} connections cut; the key was refused everywhere within ${tenths(at(samples, 1))}${admittedNote(samples)}`,
    ok: at(samples, 1) <= allowedMs && admittedAfter(samples) === 0,
  };
}

function tenths(value: number): string {
  return `${value.toFixed(1)} ms`;
}

function at(samples: readonly RevocationSample[], share: number): number {
  return percentile(
    samples.map(({ refusedMs }) => refusedMs),
    share,
  );
}

/** How often a process took the key for anything but revoked after it had once refused it. */
function admittedAfter(samples: readonly RevocationSample[]): number {
  return samples.flatMap(({ statuses }) => statuses).filter((status) => status !== 'revoked').length;
}

function admittedNote(samples: readonly RevocationSample[]): string {
  const times = admittedAfter(samples);
  return times === 0 ? '' : `; ${times} times not known as revoked afterwards`;
}
