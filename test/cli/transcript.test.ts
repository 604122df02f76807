/** `evalgate transcript` on files and standard input. */
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { runCli, runJson } from '../support/cli.ts';
import { fileOf } from '../support/files.ts';

const BODY = 'Weekly call\n\nAnn Example  0:03\nGood morning.\n\nBo  0:09\nHello.\n\nAnn Example  0:12\nShall we?\n';

test('a file is shown with its form, speakers and turns', async () => {
  const { status, stdout } = await runCli(['transcript', fileOf(BODY)]);
  expect(status).toBe(0);
  expect(stdout).toBe(`Form: spoken lines
Shape: name  time ⏎ words
Evidence: 3 turns; 2 names, 2 of the turns by names that recur; 3 times, 0 of them earlier than the one before
4 turns of 2 speakers, 91 characters

SPEAKER      TURNS
Ann Example  2
Bo           1

TURN  TEXT
0     Weekly call
1     Ann Example: Good morning.
2     Bo: Hello.
3     Ann Example: Shall we?
`);
});

test('--json has every turn whole, and - is standard input', async () => {
  const words = 'word '.repeat(100).trim();
  expect(await runJson(['transcript', '-', '--format', 'webvtt'], { stdin: `Ann: ${words}\nBo: yes` })).toEqual({
    form: 'spoken lines',
    isFormatSupported: true,
    shape: 'name: words',
    evidence: { turns: 2, names: 2, recurring: 0, times: 0, backs: 0 },
    runnerUp: null,
    turnCount: 2,
    speakers: [
      { name: 'Ann', turns: 1 },
      { name: 'Bo', turns: 1 },
    ],
    turns: [
      { index: 0, text: `Ann: ${words}` },
      { index: 1, text: 'Bo: yes' },
    ],
  });
});

test('the shape that won is shown with its evidence, and the runner-up with what speaks against it', async () => {
  const body = '[0:03] Anna: Hi.\n[0:05] Bo: Hello.\n[0:09] Anna: So.\n';
  const { stdout } = await runCli(['transcript', '-'], { stdin: body });
  expect(stdout).toContain(`Shape: [time] name: words
Evidence: 3 turns; 2 names, 2 of the turns by names that recur; 3 times, 0 of them earlier than the one before
Runner-up: [time] words, 3 turns; no names; 3 times, 0 of them earlier than the one before
`);
  const chapters = '0:03 Intro\n5:10 Pricing\n9:59 Outlook\n';
  expect((await runCli(['transcript', '-'], { stdin: chapters })).stdout).toMatch(
    /^Form: none that is known; paragraphs are the turns\nRunner-up: .*; no speech: most have no words below\n/,
  );
});

test('many turns are shown in part, and no control character reaches the terminal', async () => {
  const body = Array.from({ length: 30 }, (_, i) => `Ann\u009B${i % 3}: \u001B[31m${'x\u0007'.repeat(50)}`).join('\n');
  const { stdout } = await runCli(['transcript', fileOf(body)]);
  expect(stdout).toContain('... and 10 more; --json has all');
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});

test('a file in no form is shown by its paragraphs', async () => {
  const { status, stdout } = await runCli(['transcript', fileOf('First.\n\nSecond.\n')]);
  expect(status).toBe(0);
  expect(stdout).toContain('Form: none that is known; paragraphs are the turns\n2 turns of 0 speakers');
});

test.each([
  ['nothing', '', 'none: it is empty'],
  ['white space', ' \r\n', 'none: it is empty'],
  [
    'JSON that is cut off',
    '[{"speaker":"Ann","text":"Hel',
    'none: it begins like JSON, and is none from character 25 of 29 on',
  ],
  [
    'another JSON',
    '{"results":{"channels":[{"alternatives":[{"transcript":"Hi."}]}]}}',
    'none: JSON without a list of',
  ],
  ['brackets', '[Music]\n\nFirst.', 'none that is known; paragraphs are the turns'],
])('%s in no form is told why', async (_what, body, form) => {
  const { status, stdout } = await runCli(['transcript', '-'], { stdin: body });
  expect([status, stdout]).toEqual([0, expect.stringContaining(`Form: ${form}`)]);
});

test.each([
  ['a file that is not there', () => '/nowhere/call.txt', 'it cannot be read (ENOENT)'],
  ['a folder', () => dirname(fileOf('')), 'it cannot be read (EISDIR)'],
  ['Latin-1', () => fileOf(Uint8Array.of(0x41, 0x3a, 0x20, 0xe9)), 'it is not UTF-8'],
])('%s is reported', async (_what, path, message) => {
  const { status, stdout, stderr } = await runCli(['transcript', path()]);
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toContain(message);
});

test('an unknown format is a wrong call', async () => {
  const { status, stderr } = await runCli(['transcript', '-', '--format', 'docx'], { stdin: '' });
  expect(status).toBe(2);
  expect(stderr).toContain('Allowed choices are speaker_text, webvtt, srt, utterances_json');
});
