/** What the commands that change a trial have in common. */
import { Argument, type Command } from 'commander';
import { CACHE_CLASSES } from '../../cache/times.ts';
import { AdminCallError, type AdminRequest, adminClientOf, adminPart, withAdminOption } from '../admin-client.ts';
import { answer, type CommandTexts, makeCommand } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import type { Live } from './live.ts';
import { type Trial, trialSchema, trialText } from './trial-view.ts';

export const TRIALS_PATH = '/api/cache/trials';

/** What a command of trials runs in. */
export interface World {
  readonly terminal: Terminal;
  readonly live: Live;
}

/** A command about the trial of one class. */
export function oneClassCommand(texts: CommandTexts, { terminal }: World): Command {
  return withAdminOption(makeCommand(texts, terminal), terminal).addArgument(
    new Argument('<class>', 'the class of answers').choices(CACHE_CLASSES),
  );
}

/** Asks for a change of the trial of a class, and answers with the trial as it is then. */
export async function changeTrial(
  command: Command,
  { terminal, live }: World,
  request: Omit<AdminRequest<Trial>, 'answer'>,
): Promise<void> {
  const client = adminClientOf(command, terminal);
  const trial = await client.call({ ...request, answer: trialSchema }).catch((error: unknown) => {
    throw inCommands(error, adviceFor(command));
  });
  const showing = { nowMs: live.clock.nowMs(), admin: adminPart(command) };
  answer(terminal, command, { document: trial, text: trialText(trial, showing) });
}

/** What to do where a change is refused because of how the trials stand. */
function adviceFor(command: Command): string {
  const [cacheClass = ''] = command.args;
  const admin = adminPart(command);
  if (command.name() === 'start') return `To stop it: evalgate cache trial stop ${cacheClass}${admin}`;
  return `To see all that there were: evalgate cache trial${admin}`;
}

/** A refusal by the listener names its endpoints; whoever is here has commands, which `advice` names. */
export function inCommands(error: unknown, advice: string): unknown {
  if (!(error instanceof AdminCallError) || (error.status !== 404 && error.status !== 409)) return error;
  const sentences = error.finding.split(/(?<=[.;]) /);
  const told = sentences.filter((sentence) => !/^(?:GET|POST|PUT|DELETE) \//.test(sentence));
  return new AdminCallError(told.join(' '), advice, error.status);
}
