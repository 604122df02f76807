/** `evalgate keys import`: imports keys that are hashed already. */
import type { Command } from 'commander';
import { adminCommand, callAdmin } from '../admin-client.ts';
import { CliError, print } from '../command.ts';
import { countText } from '../format.ts';
import { importInPages } from '../import-pages.ts';
import { type JsonLine, NOT_JSON, readJsonLines } from '../json-lines.ts';

export function importKeysCommand(): Command {
  return adminCommand({
    name: 'import',
    summary: 'import hashed keys from a file of JSON lines',
    details: [
      'Each line is one JSON object: {"keyId", "hash", "name", "workspaceIds", "scopes"} and, if they differ from',
      'the defaults, "status", "expiresAt", "createdAt", "limits": {"perMinute", "perHour"}, "from" and "quotaId". The hash is the',
      'SHA-256 of the whole key in hexadecimal. A key that is there already, with the same id and hash, becomes what its line',
      'says; members that the line leaves out stay as they are, so a deprecated key stays deprecated. A revoked key stays',
      'revoked: a line that says otherwise is left out. All lines are checked before anything is changed. If the import breaks off, repeat it: it adds nothing twice.',
    ].join(' '),
    examples: ['evalgate keys import keys.jsonl', 'export-keys | evalgate keys import -'],
  })
    .argument('<file>', 'the file, or - for standard input')
    .action(async (file: string, _options, command: Command) => {
      const result = await importInPages(await checkKeys(await readJsonLines(file)), false, {
        send: (keys, dryRun) =>
          callAdmin(command, (routes) => routes.importKeys, { body: { keys: [...keys], dryRun } }),
        word: 'keys',
        sum: (a, b) => ({
          added: a.added + b.added,
          replaced: a.replaced + b.replaced,
          unchanged: a.unchanged + b.unchanged,
          leftOut: a.leftOut + b.leftOut,
        }),
      });
      const { added, replaced, unchanged, leftOut } = result;
      const revoked = leftOut === 0 ? '' : ` Left out, because they are revoked: ${leftOut}.`;
      print(command, result, `Imported: ${added} new, ${replaced} replaced, ${unchanged} unchanged.${revoked}`);
    });
}

/** The lines, if each holds a key. Throws CliError with every fault of every line. */
async function checkKeys(lines: readonly JsonLine[]): Promise<readonly JsonLine[]> {
  const { importedKeyBody } = await import('../../operations/bodies.ts');
  const { check } = await import('../../operations/input.ts');
  const lineOf = new Map<string, number>();
  const refused: string[][] = [];
  for (const { number, written } of lines) {
    const checked = written === undefined ? { faults: [NOT_JSON] } : check(importedKeyBody, written);
    const faults = [...(checked.faults ?? repeats(checked.value, number, lineOf))];
    if (faults.length > 0) refused.push(faults.map((fault) => `  line ${number}: ${fault}`));
  }
  if (refused.length > 0) {
    const count = `${refused.length} of ${countText(lines.length, 'key')}`;
    throw new CliError([`Nothing was imported: ${count} refused:`, ...refused.flat()].join('\n'));
  }
  if (lines.length === 0) throw new CliError('Nothing was imported: the file holds no keys, only blank lines.');
  return lines;
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
