/** How a program of many parts is told which of them to run. */
import { Option } from 'commander';

/** `--only a b`, or `--only a --only b`; all where it isn't given. A name that isn't one is answered with those that are. */
export function only(names: readonly string[]): Option {
  return new Option('--only <name...>', 'these alone').choices(names).default(names, 'all');
}
