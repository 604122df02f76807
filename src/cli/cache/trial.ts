/** `evalgate cache trial`: a new fresh time for a share of a class's keys, beside the one in force. */
import { Argument, type Command } from 'commander';
import { z } from 'zod';
import { CACHE_CLASSES } from '../../cache/times.ts';
import { adminClientOf, adminPart, withAdminOption } from '../admin-client.ts';
import { answer, makeCommand, makeGroup } from '../command.ts';
import { CliError, EXIT_CODES } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { type Live, processLive, watchLive } from './live.ts';
import { changeTrial, inCommands, oneClassCommand, TRIALS_PATH, type World } from './trial-change.ts';
import { startCommand } from './trial-start.ts';
import { isRunning, trialSchema, trialsText, trialText } from './trial-view.ts';

/** `live`: the process's own, but for tests. */
export function trialCommand(terminal: Terminal, live: Live = processLive()): Command {
  const texts = {
    name: 'trial',
    summary: 'try another fresh time on a share of the keys of a class, measured beside the rest',
    details: [
      'A trial ends by itself, and goes back by itself when its keys cost the store too much or their calls fail more',
      'often than those of the rest, the control. There is at most one for each class at a time. Without a command it',
      'shows those that run, and the last that are over.',
    ].join('\n'),
    examples: [
      'evalgate cache trial',
      'evalgate cache trial start list --fresh 60s --share 10% --for 1h',
      'evalgate cache trial show list --watch',
      'evalgate cache trial adopt list',
    ],
  };
  const world = { terminal, live };
  return makeGroup(texts, terminal)
    .addCommand(showCommand(world), { isDefault: true })
    .addCommand(startCommand(world))
    .addCommand(stopCommand(world))
    .addCommand(adoptCommand(world));
}

function showCommand({ terminal, live }: World): Command {
  const command = makeCommand(
    {
      name: 'show',
      summary: 'show what was measured, beside what was predicted',
      details: [
        'Of all processes together, since the trial began. HIT RATIO is the share of reads that cost the store nothing,',
        'STORE CALLS/READ what a read cost it. PREDICTED is what `cache advice` works out, as soon as it can.',
        '--watch shows the figures of each second until no trial that is shown runs any more; Ctrl-C ends it before.',
      ].join('\n'),
      examples: [
        'evalgate cache trial show',
        'evalgate cache trial show list --watch',
        "evalgate cache trial show list --json | jq '.arms | map_values(.storeCallsPerRead)'",
      ],
    },
    terminal,
  );
  return withAdminOption(command, terminal)
    .addArgument(new Argument('[class]', 'only the one of this class, or its last one').choices(CACHE_CLASSES))
    .option('--watch', 'show it again each second until it is over')
    .action(async (cacheClass: string | undefined) => {
      const { watch = false, json = false } = command.opts<{ watch?: boolean; json?: boolean }>();
      if (watch && json) throw new CliError('Give --watch or --json, not both.', EXIT_CODES.usage);
      const look = lookOf(command, { terminal, live }, cacheClass);
      if (watch) await watchLive(terminal, live, look);
      else answer(terminal, command, await look());
    });
}

/** A look at the trial of a class, or at all. */
function lookOf(command: Command, { terminal, live }: World, cacheClass: string | undefined) {
  const client = adminClientOf(command, terminal);
  const showing = () => ({ nowMs: live.clock.nowMs(), admin: adminPart(command) });
  const all = z.looseObject({ trials: z.array(trialSchema) });
  return async () => {
    if (cacheClass !== undefined) {
      const request = { method: 'GET', path: `${TRIALS_PATH}/${cacheClass}` } as const;
      const trial = await client.call({ ...request, answer: trialSchema }).catch((error: unknown) => {
        const line = `evalgate cache trial start ${cacheClass} --fresh 60s --share 10% --for 1h${adminPart(command)}`;
        throw inCommands(error, `To begin one: ${line}`);
      });
      return { document: trial, text: trialText(trial, showing()), isOver: !isRunning(trial) };
    }
    const document = await client.call({ method: 'GET', path: TRIALS_PATH, answer: all });
    const { trials } = document;
    return { document, text: trialsText(trials, showing()), isOver: !trials.some(isRunning) };
  };
}

function stopCommand(world: World): Command {
  const texts = {
    name: 'stop',
    summary: 'end the trial of a class and go back at once',
    examples: ['evalgate cache trial stop list'],
  };
  const command = oneClassCommand(texts, world);
  return command.action((cacheClass: string) =>
    changeTrial(command, world, { method: 'DELETE', path: `${TRIALS_PATH}/${cacheClass}` }),
  );
}

function adoptCommand(world: World): Command {
  const texts = {
    name: 'adopt',
    summary: 'set the time that was tried for all keys of the class, and end the trial',
    details: 'It rules as if set by `cache ttl set`. One that has ended by its time may be adopted too.',
    examples: ['evalgate cache trial adopt list'],
  };
  const command = oneClassCommand(texts, world);
  return command.action((cacheClass: string) =>
    // A POST has to have a body of JSON, whatever it is.
    changeTrial(command, world, { method: 'POST', path: `${TRIALS_PATH}/${cacheClass}/adopt`, body: {} }),
  );
}
