/** Commands that run until they are stopped, as processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { evalgate, LAUNCHER } from './support.ts';

let running: ChildProcess | null = null;
afterEach(() => {
  running?.kill('SIGKILL');
  running = null;
});

const started = z.object({
  url: z.string(),
  token: z.string().nullable(),
  evaluations: z.number(),
  workspaceIds: z.array(z.string()),
});

/** Starts the sample store; resolves with its document, once it has printed it whole. */
async function startSample(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [LAUNCHER, 'sample-upstream', '--port', '0', '--json', ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running = child;
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += String(chunk);
    if (printed.endsWith('}\n')) break;
  }
  return { child, document: started.parse(JSON.parse(printed)) };
}

const list = (url: string, workspaceId: string, token: string) =>
  fetch(`${url}/internal/v1/evaluations?workspaceId=${workspaceId}`, { headers: { authorization: `Bearer ${token}` } });

test('sample-upstream serves as many evaluations as asked, and ends with 0 on SIGTERM', async () => {
  const { child, document } = await startSample(['--evaluations', '40', '--latency', '0', '--seed', '7']);
  expect(document).toMatchObject({ token: 'sample-token', evaluations: 40 });
  const totals = await Promise.all(
    document.workspaceIds.map(async (id) =>
      z.object({ total: z.number() }).parse(await (await list(document.url, id, 'sample-token')).json()),
    ),
  );
  expect(totals.reduce((sum, { total }) => sum + total, 0)).toBe(40);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('sample-upstream asks for the token of the environment, does not print it, and misbehaves as told', async () => {
  const env = { UPSTREAM_TOKEN: 'my-own' };
  const { document } = await startSample(
    ['--evaluations', '5', '--latency', '0', '--status', '503', '--retry-after', '9'],
    env,
  );
  expect(document.token).toBeNull();
  const workspaceId = document.workspaceIds[0] ?? '';
  expect((await list(document.url, workspaceId, 'sample-token')).status).toBe(401);
  const failed = await list(document.url, workspaceId, 'my-own');
  expect([failed.status, failed.headers.get('retry-after')]).toEqual([503, '9']);
});

test.each([
  [['--port', '65536'], 'Allowed: an integer from 0 to 65535.'],
  [['--evaluations', '0'], 'Allowed: an integer from 1 to 1000000.'],
  [['--error-rate', '2'], '--error-rate: "2" is not allowed, it must be a number from 0 to 1'],
])('sample-upstream %j is a wrong call', async (args, message) => {
  const { code, stdout, stderr } = await evalgate(['sample-upstream', ...args]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});

test('sample-upstream on a port in use says so', async () => {
  const { document } = await startSample(['--evaluations', '5']);
  const { port } = new URL(document.url);
  const { code, stderr } = await evalgate(['sample-upstream', '--evaluations', '5', '--port', port]);
  expect([code, stderr]).toEqual([
    1,
    `It cannot listen on 127.0.0.1:${port} (EADDRINUSE). Give another --port or --host.\n`,
  ]);
});
