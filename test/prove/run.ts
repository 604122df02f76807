/**
 * Runs what the gateway promises and prints one table, as Markdown, of what was measured. Exits with status 1 where a
 * promise isn't kept. Progress goes to stderr. Redis is found as the tests find it.
 * Usage: node test/prove/run.ts --help
 */
import { Command } from 'commander';
import { only } from '../support/only.ts';
import { describeMachine } from './machine.ts';
import type { Row, Scale } from './row.ts';
import { run as cacheFlights } from './rows/cache-flights.ts';
import { run as cacheLeaders } from './rows/cache-leaders.ts';
import { run as cachePurges } from './rows/cache-purges.ts';
import { run as containers } from './rows/containers.ts';
import { run as faultsEvil } from './rows/faults-evil.ts';
import { run as faultsInputs } from './rows/faults-inputs.ts';
import { run as faultsRedis } from './rows/faults-redis.ts';
import { run as faultsReplies } from './rows/faults-replies.ts';
import { run as faultsSlowClients } from './rows/faults-slow-clients.ts';
import { run as faultsStore } from './rows/faults-store.ts';
import { run as guard } from './rows/guard.ts';
import { run as isolation } from './rows/isolation.ts';
import { run as keys } from './rows/keys.ts';
import { run as observability } from './rows/observability.ts';
import { run as quota } from './rows/quota.ts';
import { run as redisTopologies } from './rows/redis-topologies.ts';
import { run as restarts } from './rows/restarts.ts';
import { run as soak } from './rows/soak.ts';
import { run as times } from './rows/times.ts';
import { run as transcripts } from './rows/transcripts.ts';
import { run as whatIfFleet } from './rows/what-if-fleet.ts';
import { run as whatIf } from './rows/what-if.ts';

const BARS: Readonly<Record<string, (scale: Scale) => Promise<readonly Row[]>>> = {
  'cache-flights': cacheFlights,
  'cache-leaders': cacheLeaders,
  'cache-purges': cachePurges,
  keys,
  quota,
  isolation,
  guard,
  'faults-store': faultsStore,
  'faults-redis': faultsRedis,
  'faults-replies': faultsReplies,
  'faults-evil': faultsEvil,
  'faults-slow-clients': faultsSlowClients,
  'faults-inputs': faultsInputs,
  'redis-topologies': redisTopologies,
  restarts,
  times,
  transcripts,
  'what-if': whatIf,
  'what-if-fleet': whatIfFleet,
  // Wants a Prometheus on the PATH.
  observability,
  // Wants docker with Compose, and a daemon.
  containers,
  // The longest by far.
  soak,
};
const PROGRESS_EVERY_MS = 10_000;

// Servers that were started are ended as the process exits, which a signal alone would not make it do.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const options = readOptions();
const machine = await describeMachine();
const startedMs = performance.now();
const rows: Row[] = [];
for (const name of Object.keys(BARS).filter((bar) => options.only.includes(bar))) rows.push(...(await runBar(name)));
process.stdout.write(`${machine}\n\n${markdown(rows)}\n`);
const missed = rows.filter(({ ok }) => !ok);
say(`${rows.length} bars in ${seconds(startedMs)}, ${missed.length} missed`);
process.exitCode = missed.length === 0 ? 0 : 1;

/** Says what is wrong with an argument, and ends the process with status 1. */
function readOptions(): { readonly only: readonly string[]; readonly short: boolean } {
  return new Command('npm run prove --')
    .description('Measures what the gateway promises, on real processes. Status 1: a promise is not kept.')
    .addOption(only(Object.keys(BARS)))
    .option('--short', 'at a fraction of their size', false)
    .allowExcessArguments(false)
    .parse()
    .opts<{ only: readonly string[]; short: boolean }>();
}

/** A bar that can't be measured is one that is missed. */
async function runBar(name: string): Promise<readonly Row[]> {
  const beganMs = performance.now();
  say(`${name} ...`);
  const progress = setInterval(() => say(`${name} ... ${seconds(beganMs)}`), PROGRESS_EVERY_MS);
  try {
    const found = (await BARS[name]?.(options.short ? 'short' : 'whole')) ?? [];
    for (const { name: what, measured, ok } of found) say(`  ${ok ? 'ok' : 'MISSED'}  ${what}: ${measured}`);
    return found;
  } catch (error) {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    say(`  FAILED  ${name}: ${reason}`);
    return [{ name, bar: '', measured: `failed: ${reason.split('\n')[0]}`, ok: false }];
  } finally {
    clearInterval(progress);
    say(`${name}: ${seconds(beganMs)}`);
  }
}

function markdown(table: readonly Row[]): string {
  const lines = table.map(({ name, bar, measured, ok }) => line([name, bar, measured, ok ? 'yes' : '**no**']));
  return ['| what | bar | measured | ok |', '|---|---|---|---|', ...lines].join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')).join(' | ')} |`;
}

function seconds(sinceMs: number): string {
  return `${Math.round((performance.now() - sinceMs) / 1000)} s`;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
