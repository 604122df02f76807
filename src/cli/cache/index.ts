/** `evalgate cache`: what the cache holds and does, its times in force, and purging. */
import type { Command } from 'commander';
import { makeGroup, makeRemoved } from '../command.ts';
import type { Terminal } from '../terminal.ts';
import { adviceCommand } from './advice.ts';
import { explainCommand } from './explain.ts';
import { maintenanceCommand } from './maintenance.ts';
import { purgeCacheCommand } from './purge.ts';
import { cacheStatsCommand } from './stats.ts';
import { topCommand } from './top.ts';
import { ttlCommand } from './ttl.ts';

const TRIAL_REMOVED = [
  '`evalgate cache trial` was removed in evalgate 0.2.',
  'See what another fresh time would do with `evalgate cache advice`, set it for a while with',
  '`evalgate cache ttl set <class> --fresh <duration> --for <duration>`, watch it with `evalgate cache stats`, and go back',
  'earlier with `evalgate cache ttl reset <class>`.',
].join(' ');

export function cacheCommand(terminal: Terminal): Command {
  const texts = {
    name: 'cache',
    summary: 'see what the cache does and why, set its times, purge it, keep it from the store',
    details: 'The commands act on a running gateway through its admin listener.',
    examples: ['evalgate cache stats', 'evalgate cache ttl', 'evalgate cache purge --tag class:list --dry-run'],
  };
  return makeGroup(texts, terminal)
    .addCommand(cacheStatsCommand(terminal))
    .addCommand(topCommand(terminal))
    .addCommand(explainCommand(terminal))
    .addCommand(maintenanceCommand(terminal))
    .addCommand(adviceCommand(terminal))
    .addCommand(ttlCommand(terminal))
    .addCommand(purgeCacheCommand(terminal))
    .addCommand(makeRemoved('trial', TRIAL_REMOVED, terminal), { hidden: true });
}
