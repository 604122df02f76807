/** `evalgate health`: the exit status says whether a gateway is live. Without options it runs faster, from run.ts. */
import type { Command } from 'commander';
import { CliError, makeCommand, print } from './command.ts';
import { findLiveness } from './liveness.ts';
import { SUMMARIES } from './summaries.ts';

export function healthCommand(): Command {
  return makeCommand({
    name: 'health',
    summary: SUMMARIES.health,
    details:
      'It asks /livez of the admin listener, by ADMIN_HOST and ADMIN_PORT or the file of CONFIG_FILE. It needs no token.\n' +
      'A gateway that starts or drains is live; /readyz says whether it takes requests.',
    examples: ['evalgate health', 'evalgate health --json'],
  }).action(async (_options, command: Command) => {
    const { isLive, url, text } = await findLiveness(process.env);
    if (!isLive) throw new CliError(text);
    print(command, { status: 'alive', url }, text);
  });
}
