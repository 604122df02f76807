/** What one gateway tells of itself under the mix: what a log line, a scrape and a cached answer take. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { metricSum, sampleCount } from './capacity-readings.ts';

export interface Told {
  readonly samples: number;
  readonly memoryAnswerBytes: number;
}

export async function toldBy({ adminUrl }: { readonly adminUrl: string }): Promise<Told> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const bytes = metricSum(text, 'evalgate_cache_bytes');
  return {
    samples: sampleCount(text),
    memoryAnswerBytes: bytes / Math.max(1, metricSum(text, 'evalgate_cache_entries')),
  };
}

const LAUNCHER = fileURLToPath(new URL('../../src/cli/evalgate.js', import.meta.url));
const REQUESTS = 200;

/** Bytes of the access log a request, of a gateway of its own with the sample store. */
export async function logLineBytes(): Promise<number> {
  const child = spawn(process.execPath, [LAUNCHER, 'serve', '--json'], {
    env: { ...process.env, PORT: '0', ADMIN_PORT: '0', DRAIN_DELAY: '0s', LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    let [told, log] = ['', ''];
    child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
    child.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()));
    while (!told.trimEnd().endsWith('}')) await once(child.stdout, 'data');
    const url = /"publicUrl": *"([^"]+)"/.exec(told)?.[1] ?? '';
    const key = /"v2Key": *"([^"]+)"/.exec(told)?.[1] ?? '';
    for (let request = 0; request < REQUESTS; request += 1) {
      await (await fetch(`${url}/v2/calls?pageSize=8`, { headers: { authorization: `Bearer ${key}` } })).arrayBuffer();
    }
    const lines = log.split('\n').filter((line) => line.includes('/v2/calls'));
    // The last ones may still be under way.
    if (lines.length < REQUESTS / 2) throw new Error(`${lines.length} of ${REQUESTS} requests are in the log`);
    return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0) / lines.length;
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}
