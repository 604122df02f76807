/** `evalgate cache trial start`: what is tried, on how much, for how long, and when it goes back by itself. */
import { type Command, InvalidArgumentError } from 'commander';
import { LONGEST_TIME_MS } from '../../admin/cache-rules.ts';
import {
  LARGEST_SHARE,
  LEAST_ERRORS,
  LEAST_STORE_LOAD,
  LONGEST_TRIAL_MS,
  MOST_STORE_LOAD,
  SHORTEST_TRIAL_MS,
} from '../../admin/cache-trial-rules.ts';
import { formatDuration } from '../../duration.ts';
import { durationBetween } from '../command.ts';
import { changeTrial, oneClassCommand, TRIALS_PATH, type World } from './trial-change.ts';

interface StartOptions {
  readonly fresh: number;
  readonly share: number;
  readonly for: number;
  readonly maxStoreLoad?: number;
  readonly maxErrors?: number;
}

export function startCommand(world: World): Command {
  const command = oneClassCommand(
    {
      name: 'start',
      summary: 'begin a trial, in every process of the fleet',
      details: [
        'The keys are chosen by their hash, so that a key is in or out in every process alike. stale and error stay as',
        'they are. Store load: calls to the store per read, as a multiple of what the control has, or of what was',
        'predicted where a shorter time is tried. Errors: how much more of its store calls may fail than of the control.',
      ].join('\n'),
      examples: [
        'evalgate cache trial start list --fresh 60s --share 10% --for 1h',
        'evalgate cache trial start evaluation --fresh 1m --share 0.02 --for 30m --max-store-load 2 --max-errors 1%',
      ],
    },
    world,
  );
  return command
    .requiredOption('--fresh <duration>', 'the time to try', durationBetween(0, LONGEST_TIME_MS))
    .requiredOption('--share <share>', 'of how many keys of the class', shareBetween(0, LARGEST_SHARE))
    .requiredOption('--for <duration>', 'for how long', durationBetween(SHORTEST_TRIAL_MS, LONGEST_TRIAL_MS))
    .option('--max-store-load <factor>', 'go back above this multiple of the control (default 1.5)', factor)
    .option(
      '--max-errors <share>',
      'go back when this much more of its calls fail (default 5%)',
      shareBetween(LEAST_ERRORS, 1),
    )
    .action(async (cacheClass: string) => {
      const { fresh, share, for: forMs, ...limits } = command.opts<StartOptions>();
      const body = { class: cacheClass, fresh: formatDuration(fresh), share, for: formatDuration(forMs) };
      const { maxStoreLoad, maxErrors } = limits;
      await changeTrial(command, world, {
        method: 'POST',
        path: TRIALS_PATH,
        body: { ...body, maxStoreLoad, maxErrors },
      });
    });
}

/** A parser of a share as a ratio: `10%` and `0.1` are the same. A least of 0 is not allowed itself. */
function shareBetween(least: number, largest: number): (text: string) => number {
  return (text) => {
    const [, amount = '', percent] = /^(\d{1,3}(?:\.\d{1,6})?)(%)?$/.exec(text) ?? [];
    const share = amount === '' ? Number.NaN : Number(amount) / (percent === undefined ? 1 : 100);
    // Without what a division by 100 leaves behind: 0.07, not 0.07000000000000001.
    if (share > 0 && share >= least && share <= largest) return Number(share.toFixed(8));
    const from = least === 0 ? 'above 0 and up' : `from ${least * 100}%`;
    throw new InvalidArgumentError(`Allowed: a share ${from} to ${largest * 100}%, such as 10% or 0.1.`);
  };
}

function factor(text: string): number {
  const value = /^\d{1,3}(?:\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= LEAST_STORE_LOAD && value <= MOST_STORE_LOAD) return value;
  throw new InvalidArgumentError(`Allowed: a number from ${LEAST_STORE_LOAD} to ${MOST_STORE_LOAD}, such as 1.5.`);
}
