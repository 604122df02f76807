/** `evalgate cache ttl`: the times in force, setting them, going back to the configuration. */
import { Argument, type Command } from 'commander';
import { z } from 'zod';
import { LONGEST_FOR_MS, LONGEST_TTL_MS, SHORTEST_FOR_MS } from '../../admin/api.ts';
import { CACHE_CLASSES } from '../../cache/ttl-policy.ts';
import { formatDuration } from '../../duration.ts';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, type CommandTexts, durationBetween, makeCommand, makeGroup } from '../command.ts';
import { CliError, EXIT_CODES } from '../errors.ts';
import { columns, printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

/** Null for a time without an end. */
const ended = z.string().nullable();
const rowSchema = z.looseObject({
  class: z.string(),
  fresh: z.string(),
  stale: z.string(),
  error: z.string(),
  source: z.object({ fresh: z.string(), stale: z.string(), error: z.string() }),
  until: z.object({ fresh: ended, stale: ended, error: ended }),
  afterwards: z.object({ fresh: ended, stale: ended, error: ended }),
  setBy: z.string().nullable(),
  setAt: z.string().nullable(),
});

type Row = z.output<typeof rowSchema>;

export function ttlCommand(terminal: Terminal): Command {
  const texts = {
    name: 'ttl',
    summary: 'show the times in force, set them, go back to the configuration',
    details:
      'Without a command it shows them. What is set rules at once, for stored answers too; with --for it ends by itself.',
    examples: [
      'evalgate cache ttl',
      'evalgate cache ttl set list --fresh 45s',
      'evalgate cache ttl set list --fresh 60s --for 1h',
      'evalgate cache ttl reset list',
    ],
  };
  return makeGroup(texts, terminal)
    .addCommand(getCommand(terminal), { isDefault: true })
    .addCommand(setCommand(terminal))
    .addCommand(resetCommand(terminal));
}

function getCommand(terminal: Terminal): Command {
  const texts = {
    name: 'get',
    summary: 'show the times in force, and which of them are not the defaults',
    examples: ['evalgate cache ttl get', "evalgate cache ttl get --json | jq '.classes[] | {class, freshMs}'"],
  };
  const command = makeCommand(texts, terminal);
  return withAdminOption(command, terminal).action(async () => {
    const { classes } = await adminClientOf(command, terminal).call({
      method: 'GET',
      path: '/api/cache/ttl',
      answer: z.object({ classes: z.array(rowSchema) }),
    });
    answer(terminal, command, { document: { classes }, text: table(classes) });
  });
}

interface SetOptions {
  readonly fresh?: number;
  readonly stale?: number;
  readonly error?: number;
  readonly for?: number;
}

function setCommand(terminal: Terminal): Command {
  const command = oneClassCommand(
    {
      name: 'set',
      summary: 'set times of a class over the configuration; those left out stay as they are',
      details: [
        'stale and error both count from the end of fresh. A class of which all three are 0s is not cached.',
        'With --for the times given end by themselves, in every gateway at the same moment: then the time that was set',
        'without --for is in force again, else the configured one. Without --for they stay until they are reset.',
      ].join('\n'),
      examples: [
        'evalgate cache ttl set list --fresh 45s',
        'evalgate cache ttl set list --fresh 60s --for 1h',
        'evalgate cache ttl set evaluation --fresh 2m --stale 30m --error 12h',
      ],
    },
    terminal,
  );
  const duration = durationBetween(0, LONGEST_TTL_MS);
  return command
    .option('--fresh <duration>', 'how long an answer is served as it is', duration)
    .option('--stale <duration>', 'how long past that it is served at once while one refresh runs behind', duration)
    .option('--error <duration>', 'how long past that it is served when the store fails', duration)
    .option(
      '--for <duration>',
      'for how long; then they end by themselves',
      durationBetween(SHORTEST_FOR_MS, LONGEST_FOR_MS),
    )
    .action(async (cacheClass: string) => {
      const { fresh, stale, error, for: forMs } = command.opts<SetOptions>();
      const times = Object.entries({ fresh, stale, error }).flatMap(([name, ms]): [string, string][] =>
        ms === undefined ? [] : [[name, formatDuration(ms)]],
      );
      if (times.length === 0) {
        throw new CliError('Nothing was set. Give at least one of --fresh, --stale and --error.', EXIT_CODES.usage);
      }
      const spell = forMs === undefined ? {} : { for: formatDuration(forMs) };
      const act = { method: 'PUT', body: { ...Object.fromEntries(times), ...spell } } as const;
      await change(command, terminal, { ...act, path: pathOf(cacheClass) });
    });
}

function resetCommand(terminal: Terminal): Command {
  const texts = {
    name: 'reset',
    summary: 'let all times of a class be those of the configuration again',
    examples: ['evalgate cache ttl reset list'],
  };
  const command = oneClassCommand(texts, terminal);
  return command.action((cacheClass: string) =>
    change(command, terminal, { method: 'DELETE', path: pathOf(cacheClass) }),
  );
}

function oneClassCommand(texts: CommandTexts, terminal: Terminal): Command {
  return withAdminOption(makeCommand(texts, terminal), terminal).addArgument(
    new Argument('<class>', 'the class of answers').choices(CACHE_CLASSES),
  );
}

function pathOf(cacheClass: string): string {
  return `/api/cache/ttl/${cacheClass}`;
}

async function change(
  command: Command,
  terminal: Terminal,
  act: { readonly method: 'PUT' | 'DELETE'; readonly path: string; readonly body?: unknown },
): Promise<void> {
  const row = await adminClientOf(command, terminal).call({ ...act, answer: rowSchema });
  answer(terminal, command, { document: row, text: table([row]) });
}

/** One line per class; a time that is not a default says where it comes from and until when it is in force. */
function table(rows: readonly Row[]): string {
  const heading = ['CLASS', 'FRESH', 'STALE', 'ERROR', 'SET BY', 'SET AT'];
  return columns([
    heading,
    ...rows.map((row) => [
      row.class,
      ...(['fresh', 'stale', 'error'] as const).map((name) => timeText(row, name)),
      row.setBy ?? '-',
      row.setAt ?? '-',
    ]),
  ]);
}

function timeText({ source, until, afterwards, ...row }: Row, name: 'fresh' | 'stale' | 'error'): string {
  if (source[name] === 'default') return row[name];
  const end = until[name] === null ? '' : ` until ${printable(until[name])}, then ${afterwards[name] ?? '?'}`;
  return `${row[name]} (${source[name]}${end})`;
}
