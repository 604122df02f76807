/** The links of the documents lead somewhere, and the commands in them exist with the options that they are given. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';

const ROOT = join(import.meta.dirname, '../..');
const DOCUMENTS = globSync(['*.md', 'docs/**/*.md', 'deploy/**/*.md'], { cwd: ROOT });
const textOf = (document: string): string => readFileSync(join(ROOT, document), 'utf8');

/** As GitHub names the anchors of headings. */
function anchorsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each(DOCUMENTS)('%s: each link leads to a file, and each anchor to a heading', (document) => {
  const links = [...textOf(document).matchAll(/\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)/g)];
  const broken = links.filter(([, path = '', anchor]) => {
    const target = path === '' ? document : normalize(join(dirname(document), path));
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(textOf(target)).includes(anchor);
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

test('docs/index.md names every document', () => {
  const index = textOf('docs/index.md');
  const documents = globSync('docs/*.md', { cwd: ROOT }).map((path) => path.replace('docs/', ''));
  expect(documents.filter((name) => name !== 'index.md' && !index.includes(`(${name})`))).toEqual([]);
});

/** A command, or an argument that is none of an option's. */
const NAME = /^[a-z][a-z-]*$/;

/** The commands of the shell blocks, each as its words. */
function commandsOf(text: string): readonly (readonly string[])[] {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block.replaceAll('\\\n', ' '));
  const lines = blocks.flatMap((block) => block.split(/\n|[|;]|&&/));
  return lines.flatMap((line) => {
    const [, command] = /(?:^|npx |-- )evalgate ((?:'[^']*'|"[^"]*"|[^'"#])*)/.exec(line) ?? [];
    return command === undefined ? [] : [command.match(/'[^']*'|"[^"]*"|\S+/g) ?? []];
  });
}

test.each(DOCUMENTS)('%s: each command exists, with its options', async (document) => {
  const unknown: string[] = [];
  for (const words of commandsOf(textOf(document))) {
    const end = words.findIndex((word) => !NAME.test(word));
    const names = end === -1 ? words : words.slice(0, end);
    const { status, stdout } = await runCli([...names, '--help']);
    const options = words.filter((word) => word.startsWith('--')).map((word) => word.replace(/=.*/, ''));
    const missing = options.filter((option) => !stdout.includes(option));
    if (status !== 0 || missing.length > 0) unknown.push(words.join(' '));
  }
  expect(unknown).toEqual([]);
});
