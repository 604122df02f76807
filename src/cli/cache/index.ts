/** `evalgate cache`: what the cache holds and does, the TTLs in force, maintenance and purging. */
import type { Command } from 'commander';
import { makeGroup, makeRemoved } from '../command.ts';
import { adviceCommand } from './advice.ts';
import { eraseCommand } from './erase.ts';
import { maintenanceCommand, purgeCommand, ttlCommand } from './controls.ts';
import { explainCommand } from './explain.ts';
import { statsCommand, topCommand } from './stats.ts';
import { SUMMARIES } from '../summaries.ts';

const TRIAL_REMOVED = [
  '`evalgate cache trial` was removed in evalgate 0.2.',
  'See what another fresh time would do with `evalgate cache advice`, set it for a while with',
  '`evalgate cache ttl set <class> --fresh <duration> --for <duration>`, watch it with `evalgate cache stats`, and go back',
  'earlier with `evalgate cache ttl reset <class>`.',
].join(' ');

export function cacheCommand(): Command {
  return makeGroup({
    name: 'cache',
    summary: SUMMARIES.cache,
    details: 'The commands act on a running gateway through its admin listener.',
    examples: ['evalgate cache stats', 'evalgate cache ttl', 'evalgate cache purge --tag class:list --dry-run'],
  })
    .addCommand(statsCommand())
    .addCommand(topCommand())
    .addCommand(explainCommand())
    .addCommand(maintenanceCommand())
    .addCommand(adviceCommand())
    .addCommand(ttlCommand())
    .addCommand(purgeCommand())
    .addCommand(eraseCommand())
    .addCommand(makeRemoved('trial', TRIAL_REMOVED), { hidden: true });
}
