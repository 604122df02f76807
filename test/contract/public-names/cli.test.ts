/** The verbs of the command line, their arguments and their options. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../../support/cli.ts';
import { expectPinned } from './pin.ts';

const ROOT = join(import.meta.dirname, '../../../');

interface Help {
  readonly text: string;
  readonly command: string;
  readonly usage: string;
  readonly options: readonly string[];
  readonly commands: readonly string[];
}

async function helpOf(words: readonly string[]): Promise<Help> {
  const { status, stdout, stderr } = await runCli([...words, '--help']);
  expect([words, status, stderr]).toEqual([words, 0, '']);
  expect(stdout).toContain('\nExamples:\n  $ evalgate');
  const command = ['evalgate', ...words].join(' ');
  const [, usage = ''] = /^Usage: (.*)$/m.exec(stdout) ?? [];
  expect(usage.startsWith(command)).toBe(true);
  const section = (name: string): string => new RegExp(`^${name}:\\n((?: .*\\n)+)`, 'm').exec(stdout)?.[1] ?? '';
  const options = [...`${section('Options')}${section('Faults')}`.matchAll(/^ {2}(-.*?)(?: {2}|\n)/gm)];
  const commands = [...section('Commands').matchAll(/^ {2}([a-z-]+)/gm)];
  return {
    text: stdout,
    command,
    usage,
    options: options.map(([, flags = '']) => `${flags}${defaultOf(stdout, flags)}`),
    commands: commands.map(([, name = '']) => name),
  };
}

/** The default and the choices in the help of an option. */
function defaultOf(help: string, flags: string): string {
  const after = help.slice(help.indexOf(`  ${flags}`) + flags.length + 2);
  const [description = ''] = after.split(/\n(?= {0,2}\S|\n|$)/);
  const notes = [...description.replaceAll(/\s+/g, ' ').matchAll(/\(((?:default|choices): [^)]*)\)/g)];
  return notes.map(([, note = '']) => `  (${note})`).join('');
}

async function walk(words: readonly string[]): Promise<Help[]> {
  const own = await helpOf(words);
  const inner: Help[] = [];
  for (const name of own.commands) inner.push(...(await walk([...words, name])));
  return [own, ...inner];
}

test('every command has help with examples, and --json if it answers; verbs and options are as pinned', async () => {
  const all = await walk([]);
  for (const { command, commands, options } of all) {
    const isAnswering = commands.length === 0;
    expect([command, options.includes('--json')]).toEqual([command, isAnswering]);
  }
  await expectPinned(
    'command-line.txt',
    all.flatMap(({ usage, options }) => [
      usage,
      ...options.filter((option) => option !== '--json' && !option.startsWith('-h')).map((option) => `    ${option}`),
    ]),
  );
  const sections = all.map(
    ({ command, text }) =>
      `## ${command}\n\n\`\`\`text\n${text.trimEnd().replace(ROOT, '/the/folder/of/evalgate/')}\n\`\`\``,
  );
  const page = `# The command line\n\nThe help of every command, as \`evalgate ... --help\` prints it.\n\n${sections.join('\n\n')}\n`;
  await expect(page).toMatchFileSnapshot(join(ROOT, 'docs/cli.md'));
});
