/** Names, files and answers of others cannot drive the terminal: no command prints a control character that it did not make. */
import { createServer } from 'node:http';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli, type CliOptions } from '../support/cli.ts';
import { fileOf } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { listenOnLoopback } from '../support/loopback.ts';

/** Rename the window, clear the screen in seven and in eight bits, delete, reverse the line, begin another, hide a tag. */
const HOSTILE = '\u001b]0;gnp\u0007\u001b[2J\u009b2J\u007f\u202egnp\u2028\r\u{E0041}';
const CONTROLS = /[^\P{Cc}\n]|[\p{Cf}\u2028\u2029]/u;

/** The output of a command on both streams, which must hold no controls. */
async function printedBy(args: readonly string[], options: CliOptions = {}): Promise<string> {
  const { stdout, stderr } = await runCli(args, options);
  const printed = stdout + stderr;
  expect(printed).not.toMatch(CONTROLS);
  return printed;
}

/** The address of a server that answers everything with that status and body. */
async function answering(status: number, body: string): Promise<string> {
  const server = createServer((_, response) => void response.writeHead(status).end(body));
  return (await forTest(listenOnLoopback(server))).url;
}

describe('an import file', () => {
  test.each([
    ['the name of a member', { [HOSTILE]: 1 }],
    ['an id', { keyId: HOSTILE }],
    ['a scope', { scopes: [HOSTILE] }],
    ['a time', { expiresAt: HOSTILE }],
  ])('with controls in %s', async (_what, line) => {
    const file = fileOf(JSON.stringify(line));
    expect(await printedBy(['keys', 'import', file])).toContain('Nothing was imported');
    const { stdout } = await runCli(['keys', 'import', file, '--json']);
    expect(stdout).not.toMatch(CONTROLS);
    expect(JSON.parse(stdout)).toMatchObject({ error: {} });
  });

  test('whose name has controls', async () => {
    expect(await printedBy(['keys', 'import', `nowhere/${HOSTILE}`])).toContain('there is no such file');
  });
});

describe('an admin listener', () => {
  test('that refuses with controls', async () => {
    const refusal = JSON.stringify({ error: { message: `It says ${HOSTILE}.` } });
    const url = await answering(400, refusal);
    for (const args of [
      ['keys', 'list'],
      ['cache', 'stats'],
      ['cache', 'purge', '--tag', 'all', '--yes'],
      ['doctor'],
    ]) {
      expect(await printedBy([...args, '--admin', url])).toContain('It says \uFFFD]0;gnp\uFFFD');
    }
  });

  test('whose answer has controls: as text none is printed, and as JSON all are kept', async () => {
    const answer = { active: true, since: HOSTILE, until: HOSTILE, leftMs: 1, by: HOSTILE };
    const args = ['cache', 'maintenance', '--admin', await answering(200, JSON.stringify(answer))];
    expect(await printedBy(args)).toContain('Maintenance is on until \uFFFD]0;gnp');
    const { stdout } = await runCli([...args, '--json']);
    expect(stdout).not.toMatch(CONTROLS);
    expect(JSON.parse(stdout)).toEqual(answer);
  });
});

test.each([
  ['a command', ['keys', HOSTILE]],
  ['a tag', ['cache', 'purge', '--tag', HOSTILE]],
  ['a UUID', ['doctor', '--workspace', HOSTILE]],
  ['an address', ['keys', 'list', '--admin', HOSTILE]],
])('controls in place of %s', async (_what, args) => {
  expect(await printedBy(args)).toMatch(/error/);
});

test('no file but the one that prints writes to the terminal', () => {
  const root = join(import.meta.dirname, '../../src/cli');
  const writers = globSync('**/*.ts', { cwd: root }).filter((file) =>
    /process\.(?:stdout|stderr)\.write|console\./.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(writers).toEqual(['output.ts']);
});
