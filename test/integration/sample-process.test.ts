/** A gateway in front of the sample store as somebody starts it, with faults from the command line. */
import { expect, test } from 'vitest';
import { WORKSPACE_A } from '../support/records.ts';
import { startStoreProcess } from '../support/store-process.ts';
import { startUpstreamGateway } from '../support/upstream-settings.ts';

test('faults of the sample reach a consumer as a plain failure, and its records unchanged', async () => {
  for (const [options, status] of [
    [['--evaluations', '50'], 200],
    [['--evaluations', '50', '--misbehave', 'cut-off-json'], 500],
    [['--evaluations', '50', '--latency', '1', '--capacity', '1', '--status', '503', '--retry-after', '9'], 500],
  ] as const) {
    const store = await startStoreProcess(options);
    try {
      const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token };
      const gateway = await startUpstreamGateway({}, { env });
      const key = await gateway.issueKey({ workspaceIds: [...store.workspaceIds, WORKSPACE_A] });
      expect((await gateway.get('/v2/calls', { key })).status).toBe(status);
    } finally {
      await store.kill();
    }
  }
});
