/** The first steps of a newcomer: start it, paste the lines, stop it. The real program in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { WITHIN } from '../support/world.ts';

const changesSchema = z.object({ changes: z.array(z.unknown()), cursor: z.string() });
const processes: ChildProcess[] = [];
afterEach(() => {
  // npm runs what it starts in a process of its own, which would outlive it.
  for (const { pid } of processes.splice(0)) if (pid !== undefined) killGroup(pid);
});

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has ended already.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

interface Started {
  readonly child: ChildProcess;
  readonly lines: readonly string[];
  readonly log: () => string;
}

/** `npm start` on free ports, as soon as it has announced itself. */
async function npmStart(env: Readonly<Record<string, string>> = {}, curls = 10): Promise<Started> {
  const child = spawn('npm', ['start', '--silent'], {
    env: { ...process.env, PORT: '0', ADMIN_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  processes.push(child);
  let output = '';
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  while (output.match(/^curl /gm)?.length !== curls) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${log}`);
    await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  }
  return { child, lines: output.split('\n'), log: () => log };
}

interface CurlLine {
  readonly url: string;
  readonly authorization: string;
}

function curlLines(lines: readonly string[]): CurlLine[] {
  return lines.flatMap((line) => {
    const [, authorization, url] = /^curl -H 'Authorization: ([^']+)' '([^']+)'$/.exec(line) ?? [];
    return authorization === undefined || url === undefined ? [] : [{ url, authorization }];
  });
}

test('npm start prints ten lines to paste, one an endpoint; each answers 200 with its key and 401 without', async () => {
  const { lines } = await npmStart();
  const pasted = curlLines(lines);
  expect(pasted).toHaveLength(10);
  for (const { url, authorization } of pasted) {
    const response = await fetch(url, { headers: { authorization } });
    expect([url, response.status]).toEqual([url, 200]);
    expect(z.record(z.string(), z.unknown()).parse(await response.json())).not.toEqual({});
    expect([url, (await fetch(url)).status]).toEqual([url, 401]);
  }
  expect(new Set(pasted.map(({ authorization }) => authorization)).size).toBe(2);
});

test('SIGTERM ends it with status 0 after DRAIN_DELAY, during which it goes on answering and asks connections to close', async () => {
  const { child, lines, log } = await npmStart({
    DRAIN_DELAY: '1s',
    UPSTREAM_TOKEN: 't',
    REDIS_SERVICE_HOST: '10.0.0.1',
  });
  const [line] = curlLines(lines);
  const adminUrl = /^Admin\s+(\S+)$/m.exec(lines.join('\n'))?.[1];
  if (line === undefined || adminUrl === undefined) throw new Error('lines are missing');
  const { url, authorization } = line;
  const before = await fetch(url, { headers: { authorization } });
  expect(before.headers.get('connection')).toBe('keep-alive');
  expect((await fetch(`${adminUrl}/readyz`)).status).toBe(200);
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await notReady(adminUrl)).toMatchObject({ status: 'draining' });
  child.kill('SIGTERM');
  const during = await fetch(url, { headers: { authorization } });
  expect(during.status).toBe(200);
  expect(during.headers.get('connection')).toBe('close');
  expect(await ended).toEqual([0, null]);
  // Variables that Kubernetes sets for a service of that name have no effect.
  expect(log()).toContain(
    'UPSTREAM_URL is not set, so this gateway serves the bundled SAMPLE data and no store of yours (set: UPSTREAM_TOKEN).',
  );
});

/** Resolves with what the gateway says once it isn't ready any more. */
async function notReady(adminUrl: string): Promise<unknown> {
  for (;;) {
    const response = await fetch(`${adminUrl}/readyz`);
    if (response.status === 503) return response.json();
  }
}

test('with CHANGES_ANNOUNCED its store announces changes, and the feed has them', async () => {
  const { lines } = await npmStart({ CHANGES_ANNOUNCED: 'true' }, 11);
  const { url = '', authorization = '' } = curlLines(lines).at(-1) ?? {};
  expect(url).toMatch(/\/v2\/changes$/);
  const read = async (query: string) => {
    const response = await fetch(url + query, { headers: { authorization } });
    return changesSchema.parse(await response.json());
  };
  const { cursor } = await read('');
  await vi.waitFor(async () => expect((await read(`?after=${cursor}`)).changes).not.toEqual([]), WITHIN);
});
