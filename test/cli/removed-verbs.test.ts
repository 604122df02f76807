import { afterEach, expect, test, vi } from 'vitest';
import { main } from '../../src/cli/main.ts';

afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

/** Runs `evalgate` in this process, to its end. */
async function evalgate(...args: readonly string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  await main(args);
  const code = process.exitCode;
  vi.restoreAllMocks();
  return { code, ...written };
}

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
  expect(await evalgate('cache', 'trial', ...given)).toEqual({ code: 2, stdout: '', stderr: `${REMOVED}\n` });
});

test('with --json it says so in a document too', async () => {
  const { code, stdout } = await evalgate('cache', 'trial', 'adopt', 'list', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toEqual({ error: { message: REMOVED } });
});

test('the help does not list it', async () => {
  const { code, stdout } = await evalgate('cache', '--help');
  expect(code).toBe(0);
  expect(stdout).toContain('advice');
  expect(stdout).not.toContain('trial');
});
