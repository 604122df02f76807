/** `evalgate changes tail`: changes as they come. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { startTestGateway } from '../support/gateway.ts';
import { forTest } from '../support/opened.ts';
import { PROGRAM } from '../support/process.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';

const AT = '2026-01-15T12:00:00.000Z';

/** The command, once it waits for changes. */
async function tail(adminUrl: string, ...args: string[]) {
  const child = spawn(process.execPath, [PROGRAM, 'changes', 'tail', '--admin', adminUrl, ...args]);
  await once(createInterface({ input: child.stderr }), 'line');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  const end = async (): Promise<unknown> => {
    child.kill('SIGINT');
    return (await once(child, 'exit'))[0];
  };
  return { next, end };
}

test('prints a line per change until it is ended', async () => {
  const gateway = await forTest(startTestGateway());
  const { next, end } = await tail(gateway.adminUrl);
  const change = { evaluation: 'ev_1', workspace: WORKSPACE_A };
  await gateway.admin('POST', '/api/changes', {
    changes: [
      { ...change, kinds: ['transcript', 'evaluation'] },
      { ...change, deleted: true },
      { ...change, previousWorkspace: WORKSPACE_B, kinds: ['evaluation'] },
    ],
  });
  const head = `${AT}  announced  evaluation:ev_1  ${WORKSPACE_A}  `;
  expect(await next()).toMatch(new RegExp(`^${head}(?:created: )?evaluation, transcript$`));
  expect([await next(), await next()]).toEqual([
    `${head}deleted`,
    expect.stringMatching(new RegExp(`^${head}(?:created: )?moved from ${WORKSPACE_B}: evaluation$`)),
  ]);
  expect(await end()).toBe(0);
});

test('prints JSON lines with --json', async () => {
  const gateway = await forTest(startTestGateway());
  const { next, end } = await tail(gateway.adminUrl, '--json');
  await gateway.admin('POST', '/api/changes', { changes: [{ scorecard: 'sc_1', workspace: WORKSPACE_A }] });
  expect(JSON.parse(await next())).toMatchObject({ at: AT, record: 'scorecard:sc_1', kinds: ['rubric'] });
  expect(await end()).toBe(0);
});
