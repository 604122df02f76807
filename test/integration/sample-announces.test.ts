/** The whole loop as docs/store-interface.md shows it: the sample store changes, announces, and consumers see it. */
import { spawn } from 'node:child_process';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { listenOnLoopback } from '../support/loopback.ts';
import { GatewayProcess, firstJson, PROGRAM } from '../support/process.ts';
import { WITHIN } from '../support/world.ts';

const SECRET = `whsec_${Buffer.alloc(32, 's').toString('base64')}`;
const startedSchema = z.object({ url: z.string(), workspaceIds: z.array(z.string()) });
const pageSchema = z.object({
  changes: z.array(z.object({ id: z.string(), kind: z.string(), change: z.string() })),
  cursor: z.string(),
});

async function startSample(announceTo: string, ...args: string[]): Promise<z.output<typeof startedSchema>> {
  const child = spawn(
    process.execPath,
    [
      PROGRAM,
      'sample-upstream',
      '--port',
      '0',
      '--latency',
      '0',
      '--evaluations',
      '60',
      '--json',
      '--announce',
      announceTo,
      ...args,
    ],
    { env: { ...process.env, UPSTREAM_TOKEN: 'a-token', CHANGES_SECRET: SECRET }, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  onTestFinished(() => void child.kill());
  return startedSchema.parse(await firstJson(child));
}

test('edits and deletions of the sample store are in the feed, and read fresh', async () => {
  // The store's address is known before the gateway's, so announcements go by way of a server that knows both.
  let adminUrl = '';
  const forward = async (
    path: string,
    headers: IncomingHttpHeaders,
    body: Buffer,
  ): Promise<readonly [number, string]> => {
    const named = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature'];
    const sent = Object.fromEntries(named.map((name) => [name, String(headers[name])]));
    const answer = await fetch(adminUrl + path, { method: 'POST', headers: sent, body }).catch(() => null);
    return [answer?.status ?? 503, (await answer?.text()) ?? ''];
  };
  const way = await listenOnLoopback(
    createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        void forward(request.url ?? '', request.headers, Buffer.concat(chunks)).then(([status, text]) =>
          response.writeHead(status).end(text),
        );
      });
    }),
  );
  onTestFinished(() => way.close());
  const { url, workspaceIds } = await startSample(way.url, '--edit-rate', '20', '--delete-rate', '5');
  const gateway = await GatewayProcess.start({
    env: { UPSTREAM_URL: url, UPSTREAM_TOKEN: 'a-token', CHANGES_SECRET: SECRET, CHANGES_ANNOUNCED: 'true' },
  });
  onTestFinished(() => gateway.kill());
  const key = await gateway.issueKey({ workspaceIds });
  let { cursor } = pageSchema.parse(await (await gateway.get('/v2/changes', key)).json());
  ({ adminUrl } = gateway);
  const seen = new Map<string, string>();
  await vi.waitFor(async () => {
    const page = pageSchema.parse(await (await gateway.get(`/v2/changes?after=${cursor}`, key)).json());
    ({ cursor } = page);
    for (const { id, kind, change } of page.changes) seen.set(`${kind} ${change}`, id);
    expect([...seen.keys()].filter((what) => what.endsWith('deleted'))).toEqual(['call deleted']);
    expect(seen.size).toBeGreaterThan(2);
  }, WITHIN);
  const gone = await gateway.get(`/v2/calls/${seen.get('call deleted')}`, key);
  expect(gone.status).toBe(404);
  expect(await gateway.stop()).toEqual([0, null]);
});
