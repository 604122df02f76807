/** The reference table of all settings, for the documentation. */
import { listSettings, type Setting } from './settings.ts';

const HEADINGS = ['In the file', 'Environment', 'Default', 'Allowed', 'What it does, and when to change it'];

/** A Markdown table, a row a setting, in the order of the file. */
export function describeConfig(): string {
  const rows = [HEADINGS, HEADINGS.map(() => '---'), ...listSettings().map(rowOf)];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function rowOf({ id, env, initial, secret, allowed, does }: Setting): string[] {
  const variable = env === null ? '' : code(env);
  return [
    code(id),
    secret && env !== null ? `${variable}, ${code(`${env}_FILE`)}` : variable,
    isNone(initial) ? 'none' : code(String(initial)),
    allowed.replaceAll('|', String.raw`\|`),
    does,
  ];
}

function isNone(initial: Setting['initial']): boolean {
  return initial === null || (Array.isArray(initial) && initial.length === 0);
}

function code(text: string): string {
  return `\`${text}\``;
}
