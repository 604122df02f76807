/** Tracing that is off costs nothing: nothing is loaded for it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { Collector } from '../support/collector.ts';
import { runProcess } from '../support/process.ts';

const WORKER = join(import.meta.dirname, '../support/loaded-modules-worker.ts');

/** The modules of OpenTelemetry that a whole run has loaded. */
async function loadedWith(otel: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('OTEL_'));
  const env = { ...Object.fromEntries(own), PORT: '0', ADMIN_PORT: '0', ...otel };
  const { stdout } = await runProcess(process.execPath, [WORKER], env);
  return z.array(z.string()).parse(JSON.parse(stdout));
}

test('nothing of OpenTelemetry is loaded, but what the metrics library loads of its interfaces', async () => {
  const loaded = await loadedWith({ OTEL_SERVICE_NAME: 'a', OTEL_TRACES_SAMPLER: 'no such' });

  // The metrics library requires CommonJS; what this program imports would be modules.
  expect(loaded.filter((url) => !/\/node_modules\/@opentelemetry\/api\/.*\.cjs$/.test(url))).toEqual([]);
});

test('if it is on, it is loaded: the test above notices', async () => {
  const collector = await Collector.start();
  const loaded = await loadedWith(collector.env);
  await collector.close();

  expect(loaded.filter((url) => url.includes('@opentelemetry/sdk-trace')).length).toBeGreaterThan(0);
});
