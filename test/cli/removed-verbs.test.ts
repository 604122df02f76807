import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';

const REMOVED =
  '`evalgate cache trial` was removed in evalgate 0.2. See what another fresh time would do with `evalgate cache advice`, set it for a while with `evalgate cache ttl set <class> --fresh <duration> --for <duration>`, watch it with `evalgate cache stats`, and go back earlier with `evalgate cache ttl reset <class>`.';

test.each([
  '',
  'start list --fresh 60s --share 10% --for 1h',
  'show list --watch',
  'stop list --admin http://127.0.0.1:1',
  '--help',
])('`cache trial %s` fails as a usage error and says what takes its place', async (rest) => {
  const given = rest.split(' ').filter((word) => word !== '');
  expect(await runCli(['cache', 'trial', ...given])).toEqual({ status: 2, stdout: '', stderr: `${REMOVED}\n` });
});

test('with --json it says so in a document too', async () => {
  const { status, stdout } = await runCli(['cache', 'trial', 'adopt', 'list', '--json']);
  expect(status).toBe(2);
  expect(JSON.parse(stdout)).toEqual({ error: { message: REMOVED } });
});

test('the help does not list it', async () => {
  const { status, stdout } = await runCli(['cache', '--help']);
  expect(status).toBe(0);
  expect(stdout).toContain('advice');
  expect(stdout).not.toContain('trial');
});
