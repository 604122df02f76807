/** A gateway in front of the sample store as somebody starts it, with faults from the command line. */
import { spawn } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { firstJson, PROGRAM } from '../support/process.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { startUpstreamGateway } from '../support/upstream-settings.ts';

const announcedSchema = z.object({ url: z.string(), token: z.string(), workspaceIds: z.array(z.string()) });

test('faults of the sample reach a consumer as a plain failure, and its records unchanged', async () => {
  for (const [options, status] of [
    [['--evaluations', '50'], 200],
    [['--evaluations', '50', '--misbehave', 'cut-off-json'], 500],
    [['--evaluations', '50', '--latency', '1', '--capacity', '1', '--status', '503', '--retry-after', '9'], 500],
  ] as const) {
    const args = [PROGRAM, 'sample-upstream', '--port', '0', '--latency', '0', ...options, '--json'];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill());
    const { url, token, workspaceIds } = announcedSchema.parse(await firstJson(child));
    const gateway = await startUpstreamGateway({}, { env: { UPSTREAM_URL: url, UPSTREAM_TOKEN: token } });
    const key = await gateway.issueKey({ workspaceIds: [...workspaceIds, WORKSPACE_A] });
    expect((await gateway.get('/v2/calls', { key })).status).toBe(status);
  }
});
