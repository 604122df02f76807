/** `evalgate cache maintenance`: keeping every call from the store for a while. */
import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { LONGEST_MAINTENANCE_MS } from '../../admin/api.ts';
import { formatDuration } from '../../duration.ts';
import { type AdminRequest, adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, durationBetween, makeCommand, makeGroup } from '../command.ts';
import { CliError, EXIT_CODES } from '../errors.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shortDuration } from './view.ts';

const PATH = '/api/cache/maintenance';

const stateSchema = z.looseObject({
  active: z.boolean(),
  until: z.string().nullable(),
  leftMs: z.number(),
  by: z.string().nullable(),
  since: z.string().nullable(),
});

type State = z.output<typeof stateSchema>;

export function maintenanceCommand(terminal: Terminal): Command {
  const texts = {
    name: 'maintenance',
    summary: 'keep every call from the store for a while, in all gateways',
    details: [
      'While it is on nothing is sent to the store. Copies are served as long as they are usable on error, with no',
      'refresh behind; what has no copy fails with 500 and Retry-After. It ends by itself. Without a command it shows',
      'whether it is on.',
    ].join('\n'),
    examples: [
      'evalgate cache maintenance',
      'evalgate cache maintenance on --for 30m',
      'evalgate cache maintenance off',
    ],
  };
  return makeGroup(texts, terminal)
    .addCommand(statusCommand(terminal), { isDefault: true })
    .addCommand(onCommand(terminal))
    .addCommand(offCommand(terminal));
}

function statusCommand(terminal: Terminal): Command {
  const texts = {
    name: 'status',
    summary: 'show whether it is on, until when, and who began it',
    examples: ['evalgate cache maintenance status', 'evalgate cache maintenance status --json | jq .active'],
  };
  const command = withAdminOption(makeCommand(texts, terminal), terminal);
  return command.action(() => call(command, terminal, { method: 'GET', path: PATH }));
}

function onCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'on',
      summary: 'begin it, or move the end of the one that is on',
      details: `At most ${formatDuration(LONGEST_MAINTENANCE_MS)}. Give one of --for and --until.`,
      examples: [
        'evalgate cache maintenance on --for 30m',
        'evalgate cache maintenance on --until 2026-01-15T12:30:00Z',
      ],
    },
    terminal,
  );
  return withAdminOption(command, terminal)
    .option('--for <duration>', 'how long from now', durationBetween(1, LONGEST_MAINTENANCE_MS))
    .option('--until <time>', 'until when, in ISO 8601', time)
    .action(() => {
      const { for: forMs, until } = command.opts<{ for?: number; until?: string }>();
      if ((forMs === undefined) === (until === undefined)) {
        throw new CliError('Nothing was changed. Give one of --for and --until.', EXIT_CODES.usage);
      }
      const body = forMs === undefined ? { until } : { for: formatDuration(forMs) };
      return call(command, terminal, { method: 'PUT', path: PATH, body });
    });
}

function offCommand(terminal: Terminal): Command {
  const texts = {
    name: 'off',
    summary: 'let the store be asked again',
    examples: ['evalgate cache maintenance off'],
  };
  const command = withAdminOption(makeCommand(texts, terminal), terminal);
  return command.action(() => call(command, terminal, { method: 'DELETE', path: PATH }));
}

/** Whether it is within the next day is the gateway's to say, by its clock. */
function time(text: string): string {
  if (z.iso.datetime({ offset: true }).safeParse(text).success) return text;
  throw new InvalidArgumentError('Allowed: a time in ISO 8601, such as 2026-01-15T12:30:00Z.');
}

async function call(command: Command, terminal: Terminal, request: Omit<AdminRequest<State>, 'answer'>): Promise<void> {
  const state = await adminClientOf(command, terminal).call({ ...request, answer: stateSchema });
  answer(terminal, command, { document: state, text: stateText(state) });
}

function stateText({ active, until, leftMs, by, since }: State): string {
  if (!active) return 'Maintenance is off: the store is asked as usual.';
  return [
    `Maintenance is on until ${printable(until ?? '?')}, ${shortDuration(leftMs)} from now: the store is asked nothing.`,
    `Since ${printable(since ?? '?')}, said by ${printable(by ?? '?')}.`,
  ].join('\n');
}
