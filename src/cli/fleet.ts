/** `evalgate fleet`: the processes that serve together. */
import type { Command } from 'commander';
import { z } from 'zod';
import { adminClientOf, withAdminOption } from './admin-client.ts';
import { answer, makeCommand } from './command.ts';
import { columns } from './table.ts';
import type { Terminal } from './terminal.ts';

const fleetSchema = z.looseObject({
  members: z.array(
    z.looseObject({
      id: z.string(),
      host: z.string(),
      pid: z.int(),
      version: z.string(),
      startedAt: z.string(),
      status: z.string(),
      self: z.boolean(),
    }),
  ),
});

export function fleetCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'fleet',
      summary: 'list the gateway processes that serve together',
      details: 'Those that share a Redis. A process that was killed is listed for ten seconds more.',
      examples: ['evalgate fleet', "evalgate fleet --json | jq '.members[] | {host, status}'"],
    },
    terminal,
  );
  return withAdminOption(command, terminal).action(async () => {
    const client = adminClientOf(command, terminal);
    const fleet = await client.call({ method: 'GET', path: '/api/fleet', answer: fleetSchema });
    answer(terminal, command, { document: fleet, text: fleetText(fleet) });
  });
}

function fleetText({ members }: z.output<typeof fleetSchema>): string {
  return columns([
    ['HOST', 'PID', 'VERSION', 'STATUS', 'STARTED AT', 'ID', ''],
    ...members.map(({ id, host, pid, version, startedAt, status, self }) => [
      host,
      String(pid),
      version,
      status,
      startedAt,
      id,
      self ? 'asked' : '',
    ]),
  ]);
}
