/** `evalgate keys import`: imports keys that are hashed already, all or none. */
import type { Command } from 'commander';
import { importedKeyBody } from '../../operations/bodies.ts';
import { check } from '../../operations/input.ts';
import { CliError, print } from '../command.ts';
import { countText } from '../format.ts';
import { type JsonLine, NOT_JSON, readJsonLines } from '../json-lines.ts';
import { keyCommand, useKeyAdmin } from './key-admin.ts';
import type { ImportLine } from './redis-key-admin.ts';

export function importKeysCommand(): Command {
  return keyCommand({
    name: 'import',
    summary: 'import hashed keys from a file of JSON lines, all or none',
    details: [
      'Each line is one JSON object: {"keyId", "hash", "name", "workspaceIds", "scopes"} and, if they differ from',
      'the defaults, "status", "expiresAt", "createdAt", "limits": {"perMinute", "perHour"} and "quotaId". The hash is the',
      'SHA-256 of the whole key in hexadecimal. A key that is there already, with the same id and hash, becomes what its line',
      'says; members that the line leaves out stay as they are, so a deprecated key stays deprecated.',
    ].join(' '),
    examples: ['evalgate keys import keys.jsonl', 'export-keys | evalgate keys import -'],
  })
    .argument('<file>', 'the file, or - for standard input')
    .action(async (file: string, _options, command: Command) => {
      const lines = parseKeys(await readJsonLines(file));
      const result = await useKeyAdmin(command, (admin) => admin.importKeys(lines)).catch((error: unknown) => {
        throw error instanceof CliError ? withLineNumbers(error, lines) : error;
      });
      const { added, replaced, unchanged } = result;
      print(command, result, `Imported: ${added} new, ${replaced} replaced, ${unchanged} unchanged.`);
    });
}

/** A registry names a refused key by its place in the import. */
function withLineNumbers(error: CliError, lines: readonly ImportLine[]): CliError {
  const message = error.message.replaceAll(
    /keys\[(\d+)\]/g,
    (_, index) => `line ${lines[Number(index)]?.number ?? '?'}`,
  );
  return new CliError(message, error.exitCode);
}

/** The keys of all lines. Throws CliError with every fault of every line. */
function parseKeys(lines: readonly JsonLine[]): readonly ImportLine[] {
  const lineOf = new Map<string, number>();
  const refused: string[][] = [];
  const keys: ImportLine[] = [];
  for (const { number, written } of lines) {
    const checked = written === undefined ? { faults: [NOT_JSON] } : check(importedKeyBody, written);
    const faults = [...(checked.faults ?? repeats(checked.value, number, lineOf))];
    if (faults.length > 0) refused.push(faults.map((fault) => `  line ${number}: ${fault}`));
    else if (checked.faults === null) keys.push({ number, written, key: checked.value });
  }
  if (refused.length > 0) {
    const count = `${refused.length} of ${countText(keys.length + refused.length, 'key')}`;
    throw new CliError([`Nothing was imported: ${count} refused:`, ...refused.flat()].join('\n'));
  }
  if (keys.length === 0) throw new CliError('Nothing was imported: the file holds no keys, only blank lines.');
  return keys;
}

/** A fault for the id and for the hash if an earlier line has the same. */
function repeats(key: { keyId: string; hash: string }, number: number, lineOf: Map<string, number>): string[] {
  return (['keyId', 'hash'] as const).flatMap((member) => {
    const identity = `${member} ${key[member]}`;
    const first = lineOf.get(identity);
    if (first === undefined) lineOf.set(identity, number);
    return first === undefined ? [] : [`${member}: the same as on line ${first}; allowed: each ${member} once`];
  });
}
