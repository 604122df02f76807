/** Commands that act on the cache of all gateways: `evalgate cache ttl`, `evalgate cache maintenance` and `evalgate cache purge`. */
import { Argument, type Command, Option } from 'commander';
import { z } from 'zod';
import type { MaintenanceView, PurgeView, TtlView } from '../../admin/answers.ts';
import { ROUTES } from '../../admin/api.ts';
import {
  LONGEST_FOR_MS,
  LONGEST_MAINTENANCE_MS,
  LONGEST_TTL_MS,
  SHORTEST_FOR_MS,
  TAG_FORM,
} from '../../admin/bodies.ts';
import { parseTag, type Tag } from '../../cache/purge-log.ts';
import { CACHE_CLASSES } from '../../cache/ttl-policy.ts';
import { formatDuration } from '../../duration.ts';
import { adminCommand, callAdmin, callAndPrint } from '../admin-client.ts';
import { CliError, durationBetween, makeGroup, parser, print, repeated, wrongCall } from '../command.ts';
import {
  askYesOrNo,
  bytesText,
  columns,
  countText,
  durationText,
  entriesText,
  isAtTerminal,
  printable,
} from '../format.ts';

const TTL_NAMES = ['fresh', 'stale', 'error'] as const;

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
  const command = adminCommand({ name: 'get', summary: 'the same as `ttl`', examples: ['evalgate cache ttl'] });
  return command.action(() => callAndPrint(command, ROUTES.listTtls, ({ classes }) => ttlTable(classes)));
}

function setTtlCommand(): Command {
  const ttl = durationBetween(0, LONGEST_TTL_MS);
  const command = adminCommand({
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
    .addArgument(classArgument())
    .option('--fresh <duration>', 'how long an answer is served as it is', ttl)
    .option('--stale <duration>', 'how long past that it is served while one refresh runs in the background', ttl)
    .option('--error <duration>', 'how long past that it is served when the store fails', ttl)
    .option(
      '--for <duration>',
      'for how long; then they end by themselves',
      durationBetween(SHORTEST_FOR_MS, LONGEST_FOR_MS),
    )
    .action((cacheClass: string) => {
      const options = command.opts<Partial<Record<'fresh' | 'stale' | 'error' | 'for', number>>>();
      if (TTL_NAMES.every((name) => options[name] === undefined)) {
        throw wrongCall('Nothing was set. Give at least one of --fresh, --stale and --error.');
      }
      const body = Object.fromEntries(
        ([...TTL_NAMES, 'for'] as const).flatMap((name) => {
          const durationMs = options[name];
          return durationMs === undefined ? [] : [[name, formatDuration(durationMs)]];
        }),
      );
      return callAndPrint(command, ROUTES.setTtl, (row) => ttlTable([row]), { params: { class: cacheClass }, body });
    });
}

function resetTtlCommand(): Command {
  const command = adminCommand({
    name: 'reset',
    summary: 'set all times of a class back to the configuration',
    examples: ['evalgate cache ttl reset list'],
  });
  return command
    .addArgument(classArgument())
    .action((cacheClass: string) =>
      callAndPrint(command, ROUTES.resetTtl, (row) => ttlTable([row]), { params: { class: cacheClass } }),
    );
}

function classArgument(): Argument {
  return new Argument('<class>', 'the class of answers').choices(CACHE_CLASSES);
}

/** One line per class. A TTL that is not the default is shown with its source and its end. */
function ttlTable(rows: readonly TtlView[]): string {
  return columns([
    ['CLASS', 'FRESH', 'STALE', 'ERROR', 'SET BY', 'SET AT'],
    ...rows.map((row) => [
      row.class,
      ...TTL_NAMES.map((name) => ttlCell(row, name)),
      row.setBy ?? '-',
      row.setAt ?? '-',
    ]),
  ]);
}

function ttlCell({ source, until, afterwards, ...ttl }: TtlView, name: (typeof TTL_NAMES)[number]): string {
  if (source[name] === 'default') return ttl[name];
  const end = until[name];
  const ends = end === null ? '' : ` until ${end}, then ${afterwards[name] ?? '?'}`;
  return `${ttl[name]} (${source[name]}${ends})`;
}

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
  const command = adminCommand({ name: 'status', summary: 'the same as `maintenance`', examples });
  return command.action(() => callAndPrint(command, ROUTES.showMaintenance, maintenanceText));
}

function beginMaintenanceCommand(): Command {
  const command = adminCommand({
    name: 'on',
    summary: 'begin it, or move the end of the one that is on',
    details: `At most ${formatDuration(LONGEST_MAINTENANCE_MS)}. Give one of --for and --until.`,
    examples: ['evalgate cache maintenance on --for 30m', 'evalgate cache maintenance on --until 2026-01-15T12:30:00Z'],
  });
  return command
    .option('--for <duration>', 'how long from now', durationBetween(1, LONGEST_MAINTENANCE_MS))
    .option('--until <time>', 'until when, in ISO 8601', parseTime)
    .action(() => {
      const { for: forMs, until } = command.opts<{ for?: number; until?: string }>();
      if ((forMs === undefined) === (until === undefined)) {
        throw wrongCall('Nothing was changed. Give one of --for and --until.');
      }
      const body = forMs === undefined ? { until } : { for: formatDuration(forMs) };
      return callAndPrint(command, ROUTES.beginMaintenance, maintenanceText, { body });
    });
}

function endMaintenanceCommand(): Command {
  const examples = ['evalgate cache maintenance off'];
  const command = adminCommand({ name: 'off', summary: 'end it: the store is called again', examples });
  return command.action(() => callAndPrint(command, ROUTES.endMaintenance, maintenanceText));
}

/** The gateway decides by its own clock whether the time is within the next day. */
const parseTime = parser(
  (text) => (z.iso.datetime({ offset: true }).safeParse(text).success ? text : null),
  'a time in ISO 8601, such as 2026-01-15T12:30:00Z',
);

function maintenanceText({ active, until, leftMs, by, since }: MaintenanceView): string {
  if (!active) return 'Maintenance is off: the store is asked as usual.';
  return [
    `Maintenance is on until ${printable(until ?? '?')}, ${durationText(leftMs)} from now: the store is asked nothing.`,
    `Since ${printable(since ?? '?')}, set by ${printable(by ?? '?')}.`,
  ].join('\n');
}

interface PurgeOptions {
  readonly tag: readonly Tag[];
  readonly mode: 'hard' | 'soft';
  readonly exact?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** A purge that takes along more lists than these is worth a question. */
const MANY_LISTS = 100;

export function purgeCommand(): Command {
  const command = adminCommand({
    name: 'purge',
    summary: 'purge cached answers by tag',
    details: [
      `Tags: ${TAG_FORM}.`,
      'A purged evaluation takes along the lists that may hold it, and a purged workspace its not-found entries; with --exact nothing is taken along. A purge is in force in every gateway within a second; counting comes after it.',
      'Hard: the purged entries are gone, and the next reader waits for the store.',
      'Soft: they are stale, and served while one refresh runs in the background.',
      'A purge that empties a class is shown first, and needs a yes at the terminal or --yes.',
      `So is one that takes along more than ${MANY_LISTS} lists, if somebody is at the terminal.`,
    ].join('\n'),
    examples: [
      'evalgate cache purge --tag evaluation:ev_MOoXmKaIgRtSSEcIg4',
      'evalgate cache purge --tag evaluation:ev_MOoXmKaIgRtSSEcIg4 --exact',
      'evalgate cache purge --tag workspace:2393e09e-a0b1-4849-8887-0fb942eae255 --tag scorecard:sc_1 --mode soft',
      'evalgate cache purge --tag class:list --dry-run',
      'evalgate cache purge --tag all --yes --json',
    ],
  });
  const tags = new Option('--tag <tag...>', 'what is purged; repeat it for more');
  return command
    .addOption(tags.argParser(repeated(parser(parseTag, TAG_FORM))).makeOptionMandatory())
    .addOption(new Option('--mode <mode>', 'how it is purged').choices(['hard', 'soft']).default('hard'))
    .option('--exact', 'only these tags: without the lists that may hold a purged evaluation')
    .option('--dry-run', 'only show what would be purged')
    .option('--yes', 'purge without showing it first, whatever it takes')
    .action(() => purge(command));
}

async function purge(command: Command): Promise<void> {
  const { tag: tags, mode, exact = false, dryRun = false, yes = false } = command.opts<PurgeOptions>();
  const send = (isDryRun: boolean) =>
    callAdmin(command, ROUTES.purge, { body: { tags, mode, exact, dryRun: isDryRun } });
  const emptiesClass = tags.some((tag) => tag === 'all' || tag.startsWith('class:'));
  const mayTakeLists = !exact && tags.some((tag) => tag.startsWith('evaluation:'));
  if (!dryRun && !yes && (emptiesClass || (mayTakeLists && isAtTerminal()))) {
    const preview = await send(true);
    if (emptiesClass || (preview.lists?.entries ?? 0) > MANY_LISTS) await confirmPurge(purgeText(preview));
  }
  const result = await send(dryRun);
  print(command, result, purgeText(result));
}

/** Throws CliError if the user declines, or nobody is at the terminal. */
async function confirmPurge(preview: string): Promise<void> {
  if (!isAtTerminal()) throw wrongCall(`${preview}\nNothing was purged. To purge this, give --yes.`);
  process.stderr.write(`${preview}\n`);
  if (!(await askYesOrNo('Purge this?'))) throw new CliError('Nothing was purged.');
}

function purgeText({ entries, bytes, complete, lists, tags, mode, dryRun }: PurgeView): string {
  const atLeast = complete ? '' : 'at least ';
  return [
    `${dryRun ? 'Would be purged' : 'Purged'}, ${mode}: ${atLeast}${entriesText(entries)}, ${bytesText(bytes)}.`,
    ...(complete ? [] : ['  (not all was counted: it takes too long, or the cache Redis does not answer)']),
    ...(lists === null
      ? []
      : [`  ${atLeast}${entries - lists.entries} by their tags`, `  + ${atLeast}${listsText(lists)}`]),
    ...tags.map((tag) => `  ${printable(tag)}`),
  ].join('\n');
}

function listsText({ entries, workspaces, ownerKnown }: NonNullable<PurgeView['lists']>): string {
  const why = ownerKnown ? '' : ', because no copy tells whose it is';
  return `${countText(entries, 'list')} of ${countText(workspaces, 'workspace')}${why}`;
}
