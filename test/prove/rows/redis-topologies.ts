/** What holds over one Redis, over a Cluster of three, with Sentinels, and over Valkey where it can be had. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { programOnPath } from '../../support/programs.ts';
import type { Row, Scale } from '../row.ts';
import { run as cacheFlights } from './cache-flights.ts';
import { run as cacheLeaders } from './cache-leaders.ts';
import { run as cachePurges } from './cache-purges.ts';
import { run as faultsRedis } from './faults-redis.ts';
import { run as isolation } from './isolation.ts';
import { run as keys } from './keys.ts';
import { run as quota } from './quota.ts';
import { run as failovers } from './redis-failovers.ts';
import { run as times } from './times.ts';

const OVER_A_CLUSTER = [cacheFlights, cacheLeaders, cachePurges, keys, quota, isolation, times, faultsRedis];
const CONTRACTS_TIMEOUT_MS = 300_000;

export async function run(scale: Scale): Promise<readonly Row[]> {
  const rows: Row[] = [...(await failovers(scale))];
  for (const [name, env] of [
    ['a Cluster of three', { TEST_REDIS_TOPOLOGY: 'cluster' }],
    ['Sentinels', { TEST_REDIS_TOPOLOGY: 'sentinel' }],
  ] as const) {
    rows.push(await contracts(name, env));
  }
  rows.push(await valkey());
  return [...rows, ...(await overCluster(scale))];
}

async function overCluster(scale: Scale): Promise<readonly Row[]> {
  const before = process.env['TEST_REDIS_TOPOLOGY'] ?? '';
  process.env['TEST_REDIS_TOPOLOGY'] = 'cluster';
  try {
    const rows: Row[] = [];
    for (const row of OVER_A_CLUSTER) rows.push(...(await row(scale)));
    return rows.map((row) => ({ ...row, name: `Cluster of 3: ${row.name}` }));
  } finally {
    process.env['TEST_REDIS_TOPOLOGY'] = before;
  }
}

async function valkey(): Promise<Row> {
  const server = process.env['VALKEY_SERVER'] ?? programOnPath('valkey-server');
  if (server !== null) return contracts('Valkey', { TEST_REDIS_SERVER: server });
  return {
    name: 'contracts, Valkey',
    bar: 'where there is one: VALKEY_SERVER, or valkey-server on the PATH',
    measured: 'skipped: there is none here',
    ok: true,
  };
}

/** All suites of `test/contract`, over Redis servers of that kind. */
async function contracts(name: string, env: Readonly<Record<string, string>>): Promise<Row> {
  const args = ['node_modules/vitest/vitest.mjs', 'run', 'test/contract'];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...process.env, ...env, NO_COLOR: '1' },
    timeout: CONTRACTS_TIMEOUT_MS,
    maxBuffer: 2 ** 26,
  }).catch((error: unknown) => ({ stdout: String(error) }));
  const [, passed = '0', failed = 'all'] = /^(\d+) passed, (\d+) failed$/m.exec(stdout) ?? [];
  return {
    name: `contracts, ${name}`,
    bar: 'every suite that an implementation of a port has to pass',
    measured: `${passed} tests passed, ${failed} failed`,
    ok: failed === '0' && Number(passed) > 0,
  };
}
