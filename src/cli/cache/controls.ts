/** Commands that act on the cache of all gateways: `evalgate cache ttl`, `evalgate cache maintenance` and `evalgate cache purge`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Argument, type Command, Option } from 'commander';
import { z } from 'zod';
import type { DeletionView, MaintenanceView, PurgeView, TtlView } from '../../operations/answers.ts';
import { MAX_FOR_MS, MAX_MAINTENANCE_MS, MAX_TTL_MS, SHORTEST_FOR_MS, TAG_FORM } from '../../operations/bodies.ts';
import { parseTag, type Tag } from '../../cache/purge-log.ts';
import { CACHE_CLASSES } from '../../cache/ttl-policy.ts';
import { durationText, formatDuration } from '../../time/duration.ts';
import { adminCommand, callAdmin, callAndPrint, routeCommand } from '../admin-client.ts';
import { CliError, durationBetween, makeGroup, parser, print, repeated, wrongCall } from '../command.ts';
import { bytesText, columns, countText } from '../format.ts';
import { askYesOrNo, isAtTerminal, write } from '../output.ts';

const TTL_NAMES = ['fresh', 'stale', 'error'] as const;

export function ttlCommand(): Command {
  const get = { name: 'get', summary: 'the same as `ttl`', examples: ['evalgate cache ttl'] };
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
      'evalgate cache ttl set list --fresh 60s --for 1h',
      'evalgate cache ttl reset list',
    ],
  })
    .addCommand(
      routeCommand(
        get,
        (routes) => routes.listTtls,
        ({ classes }) => ttlTable(classes),
      ),
      { isDefault: true, hidden: true },
    )
    .addCommand(setTtlCommand())
    .addCommand(resetTtlCommand());
}

function setTtlCommand(): Command {
  const ttl = durationBetween(0, MAX_TTL_MS);
  return adminCommand({
    name: 'set',
    summary: 'set times of a class over the configuration; those left out stay as they are',
    details: [
      'stale and error both count from the end of fresh. A class whose three times are all 0s is not cached.',
      'With --for the times given end by themselves, in every gateway at the same moment: then the time that was set',
      'without --for is in force again, else the configured one. Without --for they stay until they are reset.',
    ].join(' '),
    examples: [
      'evalgate cache ttl set list --fresh 45s',
      'evalgate cache ttl set list --fresh 60s --for 1h',
      'evalgate cache ttl set evaluation --fresh 2m --stale 30m --error 12h',
    ],
  })
    .addArgument(classArgument())
    .option('--fresh <duration>', 'how long an answer is served as it is', ttl)
    .option('--stale <duration>', 'how long past that it is served while one refresh runs in the background', ttl)
    .option('--error <duration>', 'how long past that it is served when the store fails', ttl)
    .option('--for <duration>', 'end the times given after this', durationBetween(SHORTEST_FOR_MS, MAX_FOR_MS))
    .action((cacheClass: string, options: Partial<Record<string, number>>, command: Command) => {
      if (TTL_NAMES.every((name) => options[name] === undefined)) {
        throw wrongCall('Nothing was set. Give at least one of --fresh, --stale and --error.');
      }
      const given = [...TTL_NAMES, 'for'].flatMap((name) => {
        const durationMs = options[name];
        return durationMs === undefined ? [] : [[name, formatDuration(durationMs)] as const];
      });
      const parts = { params: { class: cacheClass }, body: Object.fromEntries(given) };
      return callAndPrint(command, (routes) => routes.setTtl, oneRow, parts);
    });
}

function resetTtlCommand(): Command {
  return adminCommand({
    name: 'reset',
    summary: 'set all times of a class back to the configuration',
    examples: ['evalgate cache ttl reset list'],
  })
    .addArgument(classArgument())
    .action((cacheClass: string, _options, command: Command) =>
      callAndPrint(command, (routes) => routes.resetTtl, oneRow, { params: { class: cacheClass } }),
    );
}

function oneRow(row: TtlView): string {
  return ttlTable([row]);
}

function classArgument(): Argument {
  return new Argument('<class>', 'the class of answers').choices(CACHE_CLASSES);
}

/** One line per class. A TTL that is not the default is shown with its source and its end. */
function ttlTable(rows: readonly TtlView[]): string {
  return columns([
    ['CLASS', 'FRESH', 'STALE', 'ERROR', 'SET BY', 'SET AT'],
    ...rows.map((row) => [row.class, ...TTL_NAMES.map((name) => ttlCell(row, name)), row.setBy, row.setAt]),
  ]);
}

function ttlCell({ source, until, afterwards, ...ttl }: TtlView, name: (typeof TTL_NAMES)[number]): string {
  if (source[name] === 'default') return ttl[name];
  const end = until[name];
  const ends = end === null ? '' : ` until ${end}, then ${afterwards[name] ?? '?'}`;
  return `${ttl[name]} (${source[name]}${ends})`;
}

export function maintenanceCommand(): Command {
  const on = adminCommand({
    name: 'on',
    summary: 'begin it, or move the end of the one that is on',
    details: `At most ${formatDuration(MAX_MAINTENANCE_MS)}. Give one of --for and --until.`,
    examples: ['evalgate cache maintenance on --for 30m', 'evalgate cache maintenance on --until 2026-01-15T12:30:00Z'],
  })
    .option('--for <duration>', 'how long from now', durationBetween(1, MAX_MAINTENANCE_MS))
    .option('--until <time>', 'until when, in ISO 8601', parseTime)
    .action(({ for: forMs, until }: { for?: number; until?: string }, command: Command) => {
      if ((forMs === undefined) === (until === undefined)) {
        throw wrongCall('Nothing was changed. Give one of --for and --until.');
      }
      const body = forMs === undefined ? { until } : { for: formatDuration(forMs) };
      return callAndPrint(command, (routes) => routes.beginMaintenance, maintenanceText, { body });
    });
  const example = 'evalgate cache maintenance';
  const status = { name: 'status', summary: 'the same as `maintenance`', examples: [example] };
  const off = { name: 'off', summary: 'end it: the store is called again', examples: [`${example} off`] };
  return makeGroup({
    name: 'maintenance',
    summary: 'keep every call from the store for a while, in all gateways',
    details: [
      'While it is on, nothing is sent to the store. Copies are served, without a refresh, until their error time ends;',
      'a read without a copy fails with 500 and Retry-After. It ends by itself. Without a command it shows',
      'whether it is on, until when, and who began it; --admin and --json work there too.',
    ].join(' '),
    examples: [example, `${example} --json | jq .active`, `${example} on --for 30m`, `${example} off`],
  })
    .addCommand(
      routeCommand(status, (routes) => routes.showMaintenance, maintenanceText),
      { isDefault: true, hidden: true },
    )
    .addCommand(on)
    .addCommand(routeCommand(off, (routes) => routes.endMaintenance, maintenanceText));
}

/** The gateway decides by its own clock whether the time is within the next day. */
const parseTime = parser(
  (text) => (z.iso.datetime({ offset: true }).safeParse(text).success ? text : null),
  'a time in ISO 8601, such as 2026-01-15T12:30:00Z',
);

function maintenanceText({ active, until, leftMs, by, since }: MaintenanceView): string {
  if (!active) return 'Maintenance is off: the store is called as usual.';
  return `Maintenance is on until ${until}, ${durationText(leftMs)} from now: nothing is sent to the store. Set by ${by} at ${since}.`;
}

interface PurgeOptions {
  readonly tag: readonly Tag[];
  readonly mode: 'hard' | 'soft';
  readonly exact?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly wait?: boolean;
}

/** A purge that takes along more lists than these is worth a question. */
const MANY_LISTS = 100;

export function purgeCommand(): Command {
  const tags = new Option('--tag <tag...>', 'tag to purge; repeat it for more');
  return adminCommand({
    name: 'purge',
    summary: 'purge cached answers by tag',
    details: [
      `Tags: ${TAG_FORM}.`,
      'Purging an evaluation also purges the lists that may hold it, and purging a workspace its not-found entries; with --exact only the tags given are purged. If no copy shows the workspace of an evaluation, as with a mistyped id, its purge takes along all lists of all workspaces. A purge is in force in every gateway within a second; the entries are counted afterwards.',
      'Hard: the purged entries are removed, and the next reader waits for the store. The bytes of many are deleted from Redis in the background; --wait waits for that, and shows on stderr how far it is.',
      'Soft: they are stale, and served while one refresh runs in the background.',
      'A purge that empties a class is shown first, and needs a yes at the terminal or --yes.',
      `So is one that also purges all lists, or more than ${MANY_LISTS}, if somebody is at the terminal.`,
    ].join('\n'),
    examples: [
      'evalgate cache purge --tag evaluation:ev_MOoXmKaIgRtSSEcIg4 --exact',
      'evalgate cache purge --tag workspace:2393e09e-a0b1-4849-8887-0fb942eae255 --tag scorecard:sc_1 --mode soft',
      'evalgate cache purge --tag class:list --dry-run',
      'evalgate cache purge --tag all --yes --json',
    ],
  })
    .addOption(tags.argParser(repeated(parser(parseTag, TAG_FORM))).makeOptionMandatory())
    .addOption(new Option('--mode <mode>', 'how it is purged').choices(['hard', 'soft']).default('hard'))
    .option('--exact', 'only these tags: without the lists that may hold a purged evaluation')
    .option('--dry-run', 'only show what would be purged')
    .option('--yes', 'purge without asking')
    .option('--wait', 'wait until the bytes are deleted')
    .action(purge);
}

async function purge(options: PurgeOptions, command: Command): Promise<void> {
  const { tag: tags, mode, exact = false, dryRun = false, yes = false, wait = false } = options;
  const send = (isDryRun: boolean) =>
    callAdmin(command, (routes) => routes.purge, { body: { tags, mode, exact, dryRun: isDryRun } });
  const emptiesClass = tags.some((tag) => tag === 'all' || tag.startsWith('class:'));
  const mayTakeLists = !exact && tags.some((tag) => tag.startsWith('evaluation:'));
  if (!dryRun && !yes && (emptiesClass || (mayTakeLists && isAtTerminal()))) {
    const preview = await send(true);
    const { entries = 0, ownerKnown = true } = preview.lists ?? {};
    const takesMany = entries > (ownerKnown ? MANY_LISTS : 0);
    if (emptiesClass || takesMany) await confirmPurge(purgeText(preview));
  }
  const result = await send(dryRun);
  const isToDelete = wait && result.deleted === false && result.problem === null;
  if (isToDelete) await deletionOf(command, result.purge);
  const answer = isToDelete ? { ...result, deleted: true } : result;
  print(command, answer, purgeText(answer));
  // In force, but its bytes are still there.
  if (answer.problem !== null && answer.deleted === false) process.exitCode = 1;
}

const ASK_EVERY_MS = 500;

/** Resolves when the bytes of that purge are deleted. If Redis has lost its data meanwhile, there are none. */
async function deletionOf(command: Command, number: number): Promise<void> {
  let shown = '';
  for (;;) {
    const { purges, deletedUpTo, passed, of }: DeletionView = await callAdmin(command, (routes) => routes.showDeletion);
    if (deletedUpTo >= number || purges < number) return;
    const progress = `deleting: ${of === 0 ? 0 : Math.floor((100 * passed) / of)} %\n`;
    if (progress !== shown) write('stderr', progress);
    shown = progress;
    await sleep(ASK_EVERY_MS);
  }
}

/** Throws CliError if the user declines, or nobody is at the terminal. */
async function confirmPurge(preview: string): Promise<void> {
  if (!isAtTerminal()) throw wrongCall(`${preview}\nNothing was purged. To purge this, give --yes.`);
  write('stderr', `${preview}\n`);
  if (!(await askYesOrNo('Purge this?'))) throw new CliError('Nothing was purged.');
}

function purgeText({ entries, bytes, complete, lists, tags, mode, dryRun, deleted, problem }: PurgeView): string {
  const atLeast = complete ? '' : 'at least ';
  const lines = [
    `${dryRun ? 'Would be purged' : 'Purged'}, ${mode}: ${atLeast}${countText(entries, 'entry', 'entries')}, ${bytesText(bytes)}.`,
  ];
  if (!complete)
    lines.push(`  (not all was counted: ${problem ?? 'it takes too long, or the cache Redis does not answer'})`);
  if (deleted === false && problem === null)
    lines.push('  (none is served any more; the bytes are being deleted from Redis)');
  if (deleted === false && problem !== null)
    lines.push('  IN FORCE, BYTES NOT DELETED: none is served any more, and the gateways go on trying to delete them');
  if (lists !== null) {
    lines.push(`  ${atLeast}${entries - lists.entries} by their tags`);
    const found = `${atLeast}${countText(lists.entries, 'list')} of ${countText(lists.workspaces, 'workspace')}`;
    lines.push(lists.ownerKnown ? `  + ${found}` : `  + all lists (${found}), because no copy shows its workspace`);
  }
  return [...lines, ...tags.map((tag) => `  ${tag}`)].join('\n');
}
