/** `evalgate keys create`: issues a key. */
import { Option, type Command } from 'commander';
import { UUID_PATTERN } from '../../domain/records.ts';
import { SCOPES } from '../../keys/key.ts';
import { answer, durationBetween, integerBetween, makeCommand, matching, repeated } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { useKeyAdmin, withKeyAdminOption } from './key-admin.ts';
import { issuedKeyDocument, issuedKeyText } from './view.ts';

const DAY_MS = 86_400_000;
/** Parsers of what `edit` takes as well. */
export const parseLimit = integerBetween(1, 1_000_000_000);
export const parseLife = durationBetween(1, 36_500 * DAY_MS);

interface CreateOptions {
  readonly workspace: readonly string[];
  readonly scope: readonly string[];
  readonly name: string;
  readonly perMinute?: number;
  readonly perHour?: number;
  readonly expires?: number;
}

export function createKeyCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'create',
      summary: 'issue a key and print it, once',
      details: 'Only the hash of the key is stored: who loses the key needs another.',
      examples: [
        'evalgate keys create --name "Acme export" --workspace 0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11 --scope reports.read',
        'evalgate keys create --name dashboard --workspace UUID1 --workspace UUID2 --scope calls.read --scope coaching.read --per-minute 30 --expires 90d --json',
      ],
    },
    terminal,
  );
  return withKeyAdminOption(command, terminal)
    .requiredOption('--name <text>', 'what the key is for', matching(/\S/, 'a text that is not blank'))
    .addOption(
      new Option('--workspace <uuid...>', 'a workspace that the key may see; repeat it for more, up to 50')
        .argParser(repeated(matching(UUID_PATTERN, 'a UUID')))
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--scope <scope...>', 'what the key may read; repeat it for more')
        .choices(SCOPES)
        .makeOptionMandatory(),
    )
    .option('--per-minute <n>', "requests in any 60 s, in place of the gateway's limit", parseLimit)
    .option('--per-hour <n>', "requests in any 3600 s, in place of the gateway's limit", parseLimit)
    .option('--expires <duration>', 'when it ends, from now, such as 90d; never by default', parseLife)
    .action(() => createKey(command, terminal));
}

async function createKey(command: Command, terminal: Terminal): Promise<void> {
  const { workspace, scope, name, perMinute, perHour, expires } = command.opts<CreateOptions>();
  const wanted = {
    name,
    workspaceIds: workspace,
    scopes: scope,
    ...(perMinute === undefined ? {} : { perMinute }),
    ...(perHour === undefined ? {} : { perHour }),
    ...(expires === undefined ? {} : { expiresAt: new Date(Date.now() + expires).toISOString() }),
  };
  const { key, token } = await useKeyAdmin(command, terminal, (admin) => admin.create(wanted));
  answer(terminal, command, { document: issuedKeyDocument(key, token), text: issuedKeyText(key, token) });
}
