/** Tracing that is off costs nothing: nothing is loaded for it, and nothing is put around anything. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { UNTRACED } from '../../src/tracing/tracing.ts';
import { Collector } from '../support/collector.ts';

const WORKER = join(import.meta.dirname, '../support/loaded-modules-worker.ts');
const run = promisify(execFile);

/** The modules of OpenTelemetry, and of the gateway's own tracing, that a whole run has loaded. */
async function loadedWith(otel: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('OTEL_'));
  const env = { ...Object.fromEntries(own), PORT: '0', ADMIN_PORT: '0', ...otel };
  const { stdout } = await run(process.execPath, [WORKER], { env });
  return z.array(z.string()).parse(JSON.parse(stdout));
}

test('nothing of OpenTelemetry is loaded, but what the metrics library loads of its interfaces', async () => {
  const allowed = ['/node_modules/@opentelemetry/api/', '/src/tracing/tracing.ts'];
  const loaded = await loadedWith({ OTEL_SERVICE_NAME: 'a', OTEL_TRACES_SAMPLER: 'no such' });

  expect(loaded.filter((url) => !allowed.some((part) => url.includes(part)))).toEqual([]);
});

test('where it is on, it is loaded: the test above sees it', async () => {
  const collector = await Collector.start();
  const loaded = await loadedWith(collector.env);
  await collector.close();

  expect(loaded.filter((url) => url.includes('@opentelemetry/sdk-trace')).length).toBeGreaterThan(0);
});

const given = () => Promise.resolve();

test.each(['handler', 'http', 'cache', 'flights', 'store', 'storeHooks', 'quota', 'keys', 'fleet'] as const)(
  'the very same %s is used',
  (name) => {
    expect(Reflect.apply(UNTRACED[name], UNTRACED, [given])).toBe(given);
  },
);
