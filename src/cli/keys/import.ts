/** `evalgate keys import`: takes over keys that are hashed already, all or none. */
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { importedKeyRules } from '../../admin/api.ts';
import { check } from '../../admin/input.ts';
import { reasonOf } from '../../config/layer.ts';
import { answer, makeCommand } from '../command.ts';
import { CliError } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { useKeyAdmin, withKeyAdminOption } from './key-admin.ts';
import type { ImportLine } from './key-admin.ts';

export function importKeysCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'import',
      summary: 'take over hashed keys from a file of JSON lines, all or none',
      details: [
        'Each line is one JSON object: {"keyId", "hash", "name", "workspaceIds", "scopes"} and, where they differ from',
        'the defaults, "status", "expiresAt", "createdAt", "limits": {"perMinute", "perHour"} and "quotaId". The hash is the',
        'SHA-256 of the whole key in hexadecimal. A key that is there already, with the same id and hash, is replaced.',
      ].join('\n'),
      examples: ['evalgate keys import keys.jsonl', 'export-keys | evalgate keys import -'],
    },
    terminal,
  );
  return withKeyAdminOption(command, terminal)
    .argument('<file>', 'the file, or - for standard input')
    .action(async (file: string) => {
      const lines = readKeys(await readText(file, terminal), Date.now());
      const result = await useKeyAdmin(command, terminal, (admin) => admin.importKeys(lines));
      answer(terminal, command, {
        document: result,
        text: `Imported: ${result.added} new, ${result.replaced} replaced.`,
      });
    });
}

async function readText(file: string, terminal: Terminal): Promise<string> {
  try {
    return file === '-' ? await terminal.readInput() : await readFile(file, 'utf8');
  } catch (error) {
    throw new CliError(
      `${JSON.stringify(file)}: ${reasonOf(error)}. Give a file of JSON lines, or - for standard input.`,
    );
  }
}

/** Some editors and exports begin a file with one. */
const BYTE_ORDER_MARK = /^\u{FEFF}/u;

/** The keys of all lines. Throws CliError with every fault of every line. Blank lines are ignored. */
function readKeys(text: string, nowMs: number): readonly ImportLine[] {
  const rules = importedKeyRules(nowMs);
  const lineOf = new Map<string, number>();
  const faults: string[] = [];
  const keys: ImportLine[] = [];
  for (const [index, line] of text.replace(BYTE_ORDER_MARK, '').split(/\r?\n/).entries()) {
    if (line.trim() === '') continue;
    const number = index + 1;
    const parsed = parseLine(line);
    const checked =
      parsed === null ? { faults: ['not JSON; allowed: one JSON object a line'] } : check(rules, parsed.value);
    if (checked.faults === null) keys.push({ written: parsed?.value, key: checked.value });
    const found = checked.faults ?? repeats(checked.value, number, lineOf);
    faults.push(...found.map((fault) => `line ${number}: ${fault}`));
  }
  if (faults.length > 0)
    throw new CliError(['Nothing was imported:', ...faults.map((fault) => `  ${fault}`)].join('\n'));
  if (keys.length === 0) throw new CliError('Nothing was imported: the file holds no keys, only blank lines.');
  return keys;
}

function parseLine(line: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(line) };
  } catch {
    return null;
  }
}

/** Each id and each hash may stand in the file once. */
function repeats(key: { keyId: string; hash: string }, number: number, lineOf: Map<string, number>): string[] {
  return (['keyId', 'hash'] as const).flatMap((member) => {
    const identity = `${member} ${key[member]}`;
    const first = lineOf.get(identity);
    if (first === undefined) lineOf.set(identity, number);
    return first === undefined ? [] : [`${member}: the same as on line ${first}; allowed: each ${member} once`];
  });
}
