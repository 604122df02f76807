/** The reference table of docs/configuration.md is made from the schema. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SETTINGS } from '../../../src/config/config.ts';
import type { Setting } from '../../../src/config/settings.ts';

const page = fileURLToPath(new URL('../../../docs/configuration.md', import.meta.url));

test('docs/configuration.md holds the reference table as the schema has it now', async () => {
  const [before, after] = (await readFile(page, 'utf8')).split(
    /(?<=<!-- settings:.*-->\n)[^]*(?=<!-- end of settings -->)/,
  );
  await expect(`${before}\n${describeConfig()}\n\n${after}`).toMatchFileSnapshot(page);
});

test('the table has a row a setting, with its variables, default and what is allowed', () => {
  const rows = describeConfig().split('\n');
  expect(rows).toHaveLength(SETTINGS.length + 2);
  expect(rows.every((row) => row.split(/(?<!\\)\|/).length === 7)).toBe(true);
  expect(rows).toContain(
    '| `rateLimit.perMinute` | `RATE_LIMIT_PER_MINUTE` | `120` | an integer from 1 to 1000000000 | Requests per key in any 60 s, unless the key has a limit of its own. |',
  );
  expect(rows.find((row) => row.startsWith('| `redis.url`'))).toMatch(
    /^\| `redis.url` \| `REDIS_URL`, `REDIS_URL_FILE` \| none \| redis:/,
  );
});

const HEADINGS = ['In the file', 'Environment', 'Default', 'Allowed', 'What it does, and when to change it'];

/** The reference table in Markdown: one row per setting, in the order of the file. */
function describeConfig(): string {
  const rows = [HEADINGS, HEADINGS.map(() => '---'), ...SETTINGS.map(rowOf)];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function rowOf({ id, env, default: written, secret, allowed, description }: Setting): string[] {
  const names = [...(env === null ? [] : [env]), ...(secret ? [`${env}_FILE`] : [])];
  const hasNone = written === null || (Array.isArray(written) && written.length === 0);
  return [
    `\`${id}\``,
    names.map((name) => `\`${name}\``).join(', '),
    hasNone ? 'none' : `\`${String(written)}\``,
    allowed.replaceAll('|', String.raw`\|`),
    description,
  ];
}
