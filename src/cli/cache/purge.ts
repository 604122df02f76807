/** `evalgate cache purge`: purges by tag. What empties a class is shown first and wants a yes. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { TAG_FORM } from '../../admin/api.ts';
import { parseTag, type Tag } from '../../cache/tags.ts';
import { type AdminClient, adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, makeCommand, repeated } from '../command.ts';
import { CliError, EXIT_CODES } from '../errors.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { bytesText, entriesText } from './view.ts';

const MODES = ['hard', 'soft'] as const;

interface PurgeOptions {
  readonly tag: readonly Tag[];
  readonly mode: (typeof MODES)[number];
  readonly exact?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const resultSchema = z.looseObject({
  entries: z.number(),
  bytes: z.number(),
  complete: z.boolean(),
  lists: z.looseObject({ entries: z.number(), workspaces: z.number().nullable() }).nullable(),
  tags: z.array(z.string()),
  mode: z.enum(MODES),
  dryRun: z.boolean(),
});

type PurgeResult = z.output<typeof resultSchema>;

export function purgeCacheCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'purge',
      summary: 'purge cached answers by tag',
      details: [
        `Tags: ${TAG_FORM}.`,
        'A purged evaluation takes along the lists that may hold it, and a purged workspace what is known to be absent;',
        'with --exact nothing is taken along. It is in force in every gateway within a second; counting comes after it.',
        'Hard: what is purged is gone, and the next reader waits for the store.',
        'Soft: it is stale, and served while one refresh runs behind.',
        'What empties a class is shown first, and purged after a yes at the terminal or with --yes.',
      ].join('\n'),
      examples: [
        'evalgate cache purge --tag evaluation:ev_1',
        'evalgate cache purge --tag evaluation:ev_1 --exact',
        'evalgate cache purge --tag workspace:0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11 --tag scorecard:sc_1 --mode soft',
        'evalgate cache purge --tag class:list --dry-run',
        'evalgate cache purge --tag all --yes --json',
      ],
    },
    terminal,
  );
  return withAdminOption(command, terminal)
    .addOption(
      new Option('--tag <tag...>', 'what is purged; repeat it for more').argParser(repeated(tag)).makeOptionMandatory(),
    )
    .addOption(new Option('--mode <mode>', 'how it is purged').choices(MODES).default('hard'))
    .option('--exact', 'only these tags: without the lists that may hold a purged evaluation')
    .option('--dry-run', 'only tell what would be purged')
    .option('--yes', 'purge without showing it first, whatever it empties')
    .action(() => purgeCache(command, terminal));
}

function tag(text: string): Tag {
  const parsed = parseTag(text);
  if (parsed === null) throw new InvalidArgumentError(`Allowed: ${TAG_FORM}.`);
  return parsed;
}

async function purgeCache(command: Command, terminal: Terminal): Promise<void> {
  const options = command.opts<PurgeOptions>();
  const { tag: tags, dryRun = false, yes = false } = options;
  const client = adminClientOf(command, terminal);
  if (!dryRun && !yes && tags.some(emptiesClass)) await confirm(await send(client, options, true), terminal);
  const result = await send(client, options, dryRun);
  answer(terminal, command, { document: result, text: resultText(result) });
}

function send(
  client: AdminClient,
  { tag: tags, mode, exact = false }: PurgeOptions,
  dryRun: boolean,
): Promise<PurgeResult> {
  const body = { tags, mode, exact, dryRun };
  return client.call({ method: 'POST', path: '/api/cache/purge', body, answer: resultSchema });
}

function emptiesClass(wanted: Tag): boolean {
  return wanted === 'all' || wanted.startsWith('class:');
}

/** Throws CliError where that is not wanted, or nobody is there to say so. */
async function confirm(wouldBe: PurgeResult, terminal: Terminal): Promise<void> {
  const text = resultText(wouldBe);
  const confirmed = await terminal.confirm(text, 'Purge this?');
  if (confirmed === true) return;
  if (confirmed === false) throw new CliError('Nothing was purged.');
  throw new CliError(`${text}\nNothing was purged. To purge this, give --yes.`, EXIT_CODES.usage);
}

function resultText({ entries, bytes, complete, lists, tags, mode, dryRun }: PurgeResult): string {
  const atLeast = complete ? '' : 'at least ';
  const heading = `${dryRun ? 'Would be purged' : 'Purged'}, ${mode}: ${atLeast}${entriesText(entries)}, ${bytesText(bytes)}.`;
  return [
    heading,
    ...(complete ? [] : ['  (not all was counted: it takes too long, or the cache Redis does not answer)']),
    ...(lists === null ? [] : [`  of these, taken along: ${atLeast}${listsText(lists)}`]),
    ...tags.map((purged) => `  ${printable(purged)}`),
  ].join('\n');
}

function listsText({ entries, workspaces }: NonNullable<PurgeResult['lists']>): string {
  const lists = entries === 1 ? '1 list' : `${entries} lists`;
  if (workspaces === null) return `${lists} of all workspaces, since no copy tells whose the evaluation is`;
  return `${lists} of ${workspaces === 1 ? '1 workspace' : `${workspaces} workspaces`}`;
}
