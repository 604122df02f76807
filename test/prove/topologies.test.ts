/** The guarantees hold on a Cluster of three, with Sentinels, and on Valkey if it is there, as on one Redis. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'vitest';
import { z } from 'zod';
import { fileOf } from '../support/files.ts';
import { programOnPath, runProcess } from '../support/process.ts';
import { prove, skipLoudly } from './bar.ts';

const VITEST = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs');
const OVER_A_CLUSTER = ['herd', 'leaders', 'purges', 'revocation', 'quota', 'isolation', 'ttl-change', 'redis-down'];
const OVER_A_TOPOLOGY = ['cache-', 'quota-', 'keys-'].map((prefix) => `test/integration/${prefix}`);
const TIMEOUT_MS = 3_600_000;

const barsSchema = z.array(z.object({ name: z.string(), bar: z.string(), measured: z.string(), ok: z.boolean() }));

/** Without what a run hands on to a run of its own. */
function runVitest(args: readonly string[], env: Readonly<Record<string, string>>) {
  const own = Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name));
  return runProcess(process.execPath, [VITEST, 'run', ...args], {
    ...Object.fromEntries(own),
    NO_COLOR: '1',
    ...env,
  });
}

test.for([
  ['a Cluster of three', async () => ({ TEST_REDIS_TOPOLOGY: 'cluster' })],
  ['Sentinels', async () => ({ TEST_REDIS_TOPOLOGY: 'sentinel' })],
  [
    'Valkey',
    async () => {
      const path = programOnPath('valkey-server');
      return path === null ? null : { TEST_REDIS_SERVER: path };
    },
  ],
] as const)('tests at the door over %s', { timeout: TIMEOUT_MS }, async ([name, find], context) => {
  const env = await find();
  if (env === null) skipLoudly(context, 'there is no valkey-server on the PATH');
  const { stdout } = await runVitest(['--project', 'processes', ...OVER_A_TOPOLOGY], env);
  const [, passed = '0', failed = 'all'] = /^(\d+) passed, (\d+) failed$/m.exec(stdout) ?? [];
  prove(context, {
    name: `tests at the door, ${name}`,
    bar: 'cache, quota and keys: all pass',
    measured: `${passed} tests passed, ${failed} failed`,
    ok: failed === '0' && Number(passed) > 0,
  });
});

test('the bars over a Cluster of three', { timeout: TIMEOUT_MS }, async (context) => {
  const file = fileOf('', 'bars.json');
  await runVitest(['--project', 'prove', ...OVER_A_CLUSTER.map((name) => `test/prove/${name}.test.ts`)], {
    TEST_REDIS_TOPOLOGY: 'cluster',
    PROVE_JSON: file,
  });
  const bars = barsSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  prove(context, ...bars.map((bar) => ({ ...bar, name: `Cluster of 3: ${bar.name}` })));
});
