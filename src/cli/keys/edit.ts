/** `evalgate keys edit`: changes a key. */
import { type Command, Option } from 'commander';
import { UUID_PATTERN } from '../../domain/records.ts';
import { SCOPES } from '../../keys/key.ts';
import { answer, makeCommand, matching, repeated } from '../command.ts';
import { CliError, EXIT_CODES } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { parseLife, parseLimit } from './create.ts';
import { useKeyAdmin, type WantedEdit, withKeyAdminOption, withKeyId } from './key-admin.ts';
import { keyDetails } from './view.ts';

interface EditOptions {
  readonly name?: string;
  readonly workspace?: readonly string[];
  readonly scope?: readonly string[];
  readonly perMinute?: number | 'default';
  readonly perHour?: number | 'default';
  readonly expires?: number | 'never';
}

export function editKeyCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'edit',
      summary: 'change the name, workspaces, scopes, limits or expiry of a key',
      details: 'Options that are left out change nothing. Workspaces and scopes replace those that the key has.',
      examples: [
        'evalgate keys edit k_7Hq2 --name "Acme export" --expires never',
        'evalgate keys edit k_7Hq2 --workspace UUID1 --workspace UUID2 --per-minute 30 --per-hour default',
      ],
    },
    terminal,
  );
  return withKeyAdminOption(withKeyId(command), terminal)
    .option('--name <text>', 'what the key is for', matching(/\S/, 'a text that is not blank'))
    .addOption(
      new Option('--workspace <uuid...>', 'a workspace that the key may see; repeat it for more, up to 50').argParser(
        repeated(matching(UUID_PATTERN, 'a UUID')),
      ),
    )
    .addOption(new Option('--scope <scope...>', 'what the key may read; repeat it for more').choices(SCOPES))
    .option(
      '--per-minute <n>',
      "requests in any 60 s, or default for the gateway's limit",
      orWord('default', parseLimit),
    )
    .option(
      '--per-hour <n>',
      "requests in any 3600 s, or default for the gateway's limit",
      orWord('default', parseLimit),
    )
    .option('--expires <duration>', 'when it ends, from now, such as 90d; or never', orWord('never', parseLife))
    .action(async (id: string) => {
      const edit = editOf(command.opts<EditOptions>());
      if (Object.keys(edit).length === 0) {
        throw new CliError(
          'Nothing to change: give --name, --workspace, --scope, --per-minute, --per-hour or --expires.',
          EXIT_CODES.usage,
        );
      }
      const key = await useKeyAdmin(command, terminal, (admin) => admin.edit(id, edit));
      answer(terminal, command, { document: key, text: keyDetails(key) });
    });
}

/** A parser that also takes a word. */
function orWord<W extends string>(word: W, parse: (text: string) => number): (text: string) => number | W {
  return (text) => (text === word ? word : parse(text));
}

function editOf({ name, workspace, scope, perMinute, perHour, expires }: EditOptions): WantedEdit {
  return {
    ...(name === undefined ? {} : { name }),
    ...(workspace === undefined ? {} : { workspaceIds: workspace }),
    ...(scope === undefined ? {} : { scopes: scope }),
    ...(perMinute === undefined ? {} : { perMinute: perMinute === 'default' ? null : perMinute }),
    ...(perHour === undefined ? {} : { perHour: perHour === 'default' ? null : perHour }),
    ...(expires === undefined
      ? {}
      : { expiresAt: expires === 'never' ? null : new Date(Date.now() + expires).toISOString() }),
  };
}
