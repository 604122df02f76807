/** `evalgate cache explain PATH`: which entry answers a path, and what its next read would do. */
import { Argument, type Command } from 'commander';
import { UNKNOWN_KEY, VIEWER_NEEDED } from '../../admin/api.ts';
import { UUID_PATTERN } from '../../domain/records.ts';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, makeCommand, matching, repeated } from '../command.ts';
import { CliError, EXIT_CODES } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { explanationSchema, explanationText } from './explanation.ts';

interface ExplainOptions {
  readonly keyId?: string;
  readonly workspace?: readonly string[];
}

export function explainCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'explain',
      summary: 'show which cached entry answers a path of the API, and what the next read of it would do',
      details: [
        'What /v2/calls shows depends on who asks: name a key of the registry, or the workspaces of a key.',
        'What is in memory, what is under way and why the last read missed is what one gateway process knows.',
      ].join('\n'),
      examples: [
        'evalgate cache explain /v2/calls/ev_1/transcript?page=3',
        'evalgate cache explain "/v2/calls?page=2&pageSize=20" --key-id key_1',
        'evalgate cache explain /v2/calls --workspace 0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11 --json',
      ],
    },
    terminal,
  );
  return withAdminOption(command, terminal)
    .addArgument(
      new Argument('<path>', 'the path with its query, as a client of the API sends it').argParser(
        matching(/^\//, 'a path that begins with a slash, plain, such as "/v2/calls?page=2"'),
      ),
    )
    .option('--key-id <id>', 'explain what this key of the registry sees')
    .option(
      '--workspace <uuid...>',
      'explain what a key of these workspaces sees; repeat it for more',
      repeated(matching(UUID_PATTERN, 'a UUID')),
    )
    .action(async (path: string) => {
      const options = command.opts<ExplainOptions>();
      if (options.keyId !== undefined && options.workspace !== undefined) {
        throw new CliError('Give --key-id or --workspace, not both.', EXIT_CODES.usage);
      }
      const request = { method: 'GET', path: addressOf(path, options) } as const;
      const client = adminClientOf(command, terminal);
      const document = await client.call({ ...request, answer: explanationSchema }).catch((error: unknown) => {
        throw inOwnWords(error);
      });
      answer(terminal, command, { document, text: explanationText(document) });
    });
}

/** The listener's refusals name its query parameters; here there are options. */
function inOwnWords(error: unknown): unknown {
  if (!(error instanceof CliError)) return error;
  if (error.message.startsWith(VIEWER_NEEDED)) {
    return new CliError(
      `${VIEWER_NEEDED} Name a key of the registry with --key-id ID, or workspaces with --workspace UUID (repeat it for more).`,
    );
  }
  if (error.message.startsWith(UNKNOWN_KEY)) {
    return new CliError(
      'The registry has no key with the id of --key-id. `evalgate keys list` shows those that it has; for another key name its workspaces with --workspace UUID instead.',
    );
  }
  return error;
}

function addressOf(path: string, { keyId, workspace = [] }: ExplainOptions): string {
  const query = new URLSearchParams({ path });
  if (keyId !== undefined) query.append('keyId', keyId);
  for (const id of workspace) query.append('workspace', id);
  return `/api/cache/explain?${query.toString()}`;
}
