/** Commands that act on the cache of all gateways: `evalgate cache ttl`, `evalgate cache maintenance` and `evalgate cache purge`. */
import { createInterface } from 'node:readline/promises';
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { LONGEST_FOR_MS, LONGEST_MAINTENANCE_MS, LONGEST_TTL_MS, SHORTEST_FOR_MS, TAG_FORM } from '../../admin/api.ts';
import { parseTag, type Tag } from '../../cache/purge-log.ts';
import { CACHE_CLASSES } from '../../cache/ttl-policy.ts';
import { formatDuration } from '../../duration.ts';
import { callAdmin, callAndPrint, withAdminOption } from '../admin-client.ts';
import {
  CliError,
  type CommandTexts,
  durationBetween,
  EXIT_CODES,
  makeCommand,
  makeGroup,
  print,
  repeated,
} from '../command.ts';
import { bytesText, columns, durationText, entriesText, printable } from '../format.ts';

const TTL_PATH = '/api/cache/ttl';
const TTL_NAMES = ['fresh', 'stale', 'error'] as const;

/** Null for a TTL without an end. */
const end = z.string().nullable();
const ttlSchema = z.looseObject({
  class: z.string(),
  fresh: z.string(),
  stale: z.string(),
  error: z.string(),
  source: z.object({ fresh: z.string(), stale: z.string(), error: z.string() }),
  until: z.object({ fresh: end, stale: end, error: end }),
  afterwards: z.object({ fresh: end, stale: end, error: end }),
  setBy: z.string().nullable(),
  setAt: z.string().nullable(),
});

type ClassTtl = z.output<typeof ttlSchema>;

export function ttlCommand(): Command {
  return makeGroup({
    name: 'ttl',
    summary: 'show the times in force, set them, go back to the configuration',
    details: [
      'Without a command it shows them, and which of them are not the defaults; --admin and --json work there too.',
      'A time that is set applies at once, to stored answers too; with --for it ends by itself.',
    ].join('\n'),
    examples: [
      'evalgate cache ttl',
      "evalgate cache ttl --json | jq '.classes[] | {class, freshMs}'",
      'evalgate cache ttl set list --fresh 45s',
      'evalgate cache ttl set list --fresh 60s --for 1h',
      'evalgate cache ttl reset list',
    ],
  })
    .addCommand(showTtlCommand(), { isDefault: true, hidden: true })
    .addCommand(setTtlCommand())
    .addCommand(resetTtlCommand());
}

/** `ttl get` is an alias of `ttl` that the help does not list. */
function showTtlCommand(): Command {
  const command = makeCommand({ name: 'get', summary: 'the same as `ttl`', examples: ['evalgate cache ttl'] });
  const answer = z.looseObject({ classes: z.array(ttlSchema) });
  return withAdminOption(command).action(() =>
    callAndPrint(command, { method: 'GET', path: TTL_PATH, answer }, ({ classes }) => ttlTable(classes)),
  );
}

interface TtlOptions {
  readonly fresh?: number;
  readonly stale?: number;
  readonly error?: number;
  readonly for?: number;
}

function setTtlCommand(): Command {
  const ttl = durationBetween(0, LONGEST_TTL_MS);
  const command = classCommand({
    name: 'set',
    summary: 'set times of a class over the configuration; those left out stay as they are',
    details: [
      'stale and error both count from the end of fresh. A class of which all three are 0s is not cached.',
      'With --for the times given end by themselves, in every gateway at the same moment: then the time that was set',
      'without --for is in force again, else the configured one. Without --for they stay until they are reset.',
    ].join(' '),
    examples: [
      'evalgate cache ttl set list --fresh 45s',
      'evalgate cache ttl set list --fresh 60s --for 1h',
      'evalgate cache ttl set evaluation --fresh 2m --stale 30m --error 12h',
    ],
  });
  return command
    .option('--fresh <duration>', 'how long an answer is served as it is', ttl)
    .option('--stale <duration>', 'how long past that it is served while one refresh runs in the background', ttl)
    .option('--error <duration>', 'how long past that it is served when the store fails', ttl)
    .option(
      '--for <duration>',
      'for how long; then they end by themselves',
      durationBetween(SHORTEST_FOR_MS, LONGEST_FOR_MS),
    )
    .action((cacheClass: string) => {
      const options = command.opts<TtlOptions>();
      if (TTL_NAMES.every((name) => options[name] === undefined)) {
        throw new CliError('Nothing was set. Give at least one of --fresh, --stale and --error.', EXIT_CODES.usage);
      }
      const body = Object.fromEntries(
        [...TTL_NAMES, 'for' as const].flatMap((name) => {
          const durationMs = options[name];
          return durationMs === undefined ? [] : [[name, formatDuration(durationMs)]];
        }),
      );
      const request = { method: 'PUT', path: `${TTL_PATH}/${cacheClass}`, body, answer: ttlSchema } as const;
      return callAndPrint(command, request, (row) => ttlTable([row]));
    });
}

function resetTtlCommand(): Command {
  const command = classCommand({
    name: 'reset',
    summary: 'set all times of a class back to the configuration',
    examples: ['evalgate cache ttl reset list'],
  });
  return command.action((cacheClass: string) => {
    const request = { method: 'DELETE', path: `${TTL_PATH}/${cacheClass}`, answer: ttlSchema } as const;
    return callAndPrint(command, request, (row) => ttlTable([row]));
  });
}

function classCommand(texts: CommandTexts): Command {
  const argument = new Argument('<class>', 'the class of answers').choices(CACHE_CLASSES);
  return withAdminOption(makeCommand(texts)).addArgument(argument);
}

/** One line per class. A TTL that is not the default is shown with its source and its end. */
function ttlTable(rows: readonly ClassTtl[]): string {
  const cell = (row: ClassTtl, name: (typeof TTL_NAMES)[number]): string => {
    if (row.source[name] === 'default') return row[name];
    const until = row.until[name];
    const ends = until === null ? '' : ` until ${until}, then ${row.afterwards[name] ?? '?'}`;
    return `${row[name]} (${row.source[name]}${ends})`;
  };
  return columns([
    ['CLASS', 'FRESH', 'STALE', 'ERROR', 'SET BY', 'SET AT'],
    ...rows.map((row) => [row.class, ...TTL_NAMES.map((name) => cell(row, name)), row.setBy ?? '-', row.setAt ?? '-']),
  ]);
}

const maintenanceSchema = z.looseObject({
  active: z.boolean(),
  until: z.string().nullable(),
  leftMs: z.number(),
  by: z.string().nullable(),
  since: z.string().nullable(),
});

export function maintenanceCommand(): Command {
  return makeGroup({
    name: 'maintenance',
    summary: 'keep every call from the store for a while, in all gateways',
    details: [
      'While it is on, nothing is sent to the store. Copies are served as long as they are usable on error, without a',
      'refresh; a read without a copy fails with 500 and Retry-After. It ends by itself. Without a command it shows',
      'whether it is on, until when, and who began it; --admin and --json work there too.',
    ].join(' '),
    examples: [
      'evalgate cache maintenance',
      'evalgate cache maintenance --json | jq .active',
      'evalgate cache maintenance on --for 30m',
      'evalgate cache maintenance off',
    ],
  })
    .addCommand(showMaintenanceCommand(), { isDefault: true, hidden: true })
    .addCommand(beginMaintenanceCommand())
    .addCommand(endMaintenanceCommand());
}

/** `maintenance status` is an alias of `maintenance` that the help does not list. */
function showMaintenanceCommand(): Command {
  const examples = ['evalgate cache maintenance'];
  const command = withAdminOption(makeCommand({ name: 'status', summary: 'the same as `maintenance`', examples }));
  return command.action(() => callMaintenance(command, 'GET'));
}

function beginMaintenanceCommand(): Command {
  const command = makeCommand({
    name: 'on',
    summary: 'begin it, or move the end of the one that is on',
    details: `At most ${formatDuration(LONGEST_MAINTENANCE_MS)}. Give one of --for and --until.`,
    examples: ['evalgate cache maintenance on --for 30m', 'evalgate cache maintenance on --until 2026-01-15T12:30:00Z'],
  });
  return withAdminOption(command)
    .option('--for <duration>', 'how long from now', durationBetween(1, LONGEST_MAINTENANCE_MS))
    .option('--until <time>', 'until when, in ISO 8601', parseTime)
    .action(() => {
      const { for: forMs, until } = command.opts<{ for?: number; until?: string }>();
      if ((forMs === undefined) === (until === undefined)) {
        throw new CliError('Nothing was changed. Give one of --for and --until.', EXIT_CODES.usage);
      }
      return callMaintenance(command, 'PUT', forMs === undefined ? { until } : { for: formatDuration(forMs) });
    });
}

function endMaintenanceCommand(): Command {
  const examples = ['evalgate cache maintenance off'];
  const command = withAdminOption(makeCommand({ name: 'off', summary: 'end it: the store is called again', examples }));
  return command.action(() => callMaintenance(command, 'DELETE'));
}

/** The gateway decides by its own clock whether the time is within the next day. */
function parseTime(text: string): string {
  if (z.iso.datetime({ offset: true }).safeParse(text).success) return text;
  throw new InvalidArgumentError('Allowed: a time in ISO 8601, such as 2026-01-15T12:30:00Z.');
}

function callMaintenance(command: Command, method: 'GET' | 'PUT' | 'DELETE', body?: unknown): Promise<void> {
  const request = { method, path: '/api/cache/maintenance', body, answer: maintenanceSchema };
  return callAndPrint(command, request, ({ active, until, leftMs, by, since }) => {
    if (!active) return 'Maintenance is off: the store is asked as usual.';
    return [
      `Maintenance is on until ${printable(until ?? '?')}, ${durationText(leftMs)} from now: the store is asked nothing.`,
      `Since ${printable(since ?? '?')}, said by ${printable(by ?? '?')}.`,
    ].join('\n');
  });
}

const PURGE_MODES = ['hard', 'soft'] as const;

interface PurgeOptions {
  readonly tag: readonly Tag[];
  readonly mode: (typeof PURGE_MODES)[number];
  readonly exact?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const purgeSchema = z.looseObject({
  entries: z.number(),
  bytes: z.number(),
  complete: z.boolean(),
  lists: z.looseObject({ entries: z.number(), workspaces: z.number().nullable() }).nullable(),
  tags: z.array(z.string()),
  mode: z.enum(PURGE_MODES),
  dryRun: z.boolean(),
});

type PurgeResult = z.output<typeof purgeSchema>;

export function purgeCommand(): Command {
  const command = makeCommand({
    name: 'purge',
    summary: 'purge cached answers by tag',
    details: [
      `Tags: ${TAG_FORM}.`,
      'A purged evaluation takes along the lists that may hold it, and a purged workspace its not-found entries; with --exact nothing is taken along. A purge is in force in every gateway within a second; counting comes after it.',
      'Hard: the purged entries are gone, and the next reader waits for the store.',
      'Soft: they are stale, and served while one refresh runs in the background.',
      'A purge that empties a class is shown first, and needs a yes at the terminal or --yes.',
    ].join('\n'),
    examples: [
      'evalgate cache purge --tag evaluation:ev_1',
      'evalgate cache purge --tag evaluation:ev_1 --exact',
      'evalgate cache purge --tag workspace:2393e09e-a0b1-4849-8887-0fb942eae255 --tag scorecard:sc_1 --mode soft',
      'evalgate cache purge --tag class:list --dry-run',
      'evalgate cache purge --tag all --yes --json',
    ],
  });
  const tags = new Option('--tag <tag...>', 'what is purged; repeat it for more').argParser(repeated(tagOf));
  return withAdminOption(command)
    .addOption(tags.makeOptionMandatory())
    .addOption(new Option('--mode <mode>', 'how it is purged').choices(PURGE_MODES).default('hard'))
    .option('--exact', 'only these tags: without the lists that may hold a purged evaluation')
    .option('--dry-run', 'only show what would be purged')
    .option('--yes', 'purge without showing it first, whatever it empties')
    .action(() => purge(command));
}

function tagOf(text: string): Tag {
  const tag = parseTag(text);
  if (tag === null) throw new InvalidArgumentError(`Allowed: ${TAG_FORM}.`);
  return tag;
}

/** A purge that empties a class is shown as a dry run first, and needs a yes. */
async function purge(command: Command): Promise<void> {
  const { tag: tags, mode, exact = false, dryRun = false, yes = false } = command.opts<PurgeOptions>();
  const send = (isDryRun: boolean): Promise<PurgeResult> => {
    const body = { tags, mode, exact, dryRun: isDryRun };
    return callAdmin(command, { method: 'POST', path: '/api/cache/purge', body, answer: purgeSchema });
  };
  const emptiesClass = tags.some((tag) => tag === 'all' || tag.startsWith('class:'));
  if (emptiesClass && !dryRun && !yes) await confirmPurge(purgeText(await send(true)));
  const result = await send(dryRun);
  print(command, result, purgeText(result));
}

/** Throws CliError if the user declines, or nobody is at the terminal. */
async function confirmPurge(preview: string): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new CliError(`${preview}\nNothing was purged. To purge this, give --yes.`, EXIT_CODES.usage);
  }
  process.stderr.write(`${preview}\n`);
  if (!(await askYesOrNo('Purge this?'))) throw new CliError('Nothing was purged.');
}

/** Asks on standard error: standard output holds only the answer. Anything but a yes counts as no. */
async function askYesOrNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  // At the end of the input question() stays pending; Ctrl-C rejects it.
  terminal.once('close', () => resolve(''));
  try {
    const reply = await Promise.race([terminal.question(`${question} [y/N] `), closed]);
    return /^y(?:es)?$/i.test(reply.trim());
  } catch {
    return false;
  } finally {
    terminal.close();
  }
}

function purgeText({ entries, bytes, complete, lists, tags, mode, dryRun }: PurgeResult): string {
  const atLeast = complete ? '' : 'at least ';
  return [
    `${dryRun ? 'Would be purged' : 'Purged'}, ${mode}: ${atLeast}${entriesText(entries)}, ${bytesText(bytes)}.`,
    ...(complete ? [] : ['  (not all was counted: it takes too long, or the cache Redis does not answer)']),
    ...(lists === null ? [] : [`  of these, taken along: ${atLeast}${listsText(lists)}`]),
    ...tags.map((tag) => `  ${printable(tag)}`),
  ].join('\n');
}

function listsText({ entries, workspaces }: NonNullable<PurgeResult['lists']>): string {
  const lists = entries === 1 ? '1 list' : `${entries} lists`;
  if (workspaces === null) return `${lists} of all workspaces, since no copy tells whose the evaluation is`;
  return `${lists} of ${workspaces === 1 ? '1 workspace' : `${workspaces} workspaces`}`;
}
