/** Statistics of running gateways: `evalgate cache stats`, `evalgate cache top` and `evalgate fleet`. */
import type { Command } from 'commander';
import { type AnswerOf, ROUTES } from '../../admin/api.ts';
import { adminCommand, callAndPrint } from '../admin-client.ts';
import { integerBetween } from '../command.ts';
import { bytesText, columns, durationText, entriesText, percentText, printable } from '../format.ts';

type Stats = AnswerOf<typeof ROUTES.cacheStats>;
type ClassStats = Stats['classes'][number];

export function statsCommand(): Command {
  const command = adminCommand({
    name: 'stats',
    summary: 'show what the cache holds and what it has done since the gateway began',
    details: [
      'HIT RATIO is 1 less the calls to the store for each read. A read that failed counts like a call.',
      "Misses are all reads that the cache could not answer at once; some of them waited for another's call, or got an older copy because the store failed.",
    ].join('\n'),
    examples: ['evalgate cache stats', "evalgate cache stats --json | jq '.classes[] | {class, storeCalls}'"],
  });
  return command.action(() => callAndPrint(command, ROUTES.cacheStats, statsText));
}

function statsText({ since, memory, classes }: Stats): string {
  const held = `${entriesText(memory.entries)}, ${bytesText(memory.bytes)} of ${bytesText(memory.maxBytes)}`;
  return [
    `Since ${since}. In memory: ${held}.`,
    `Reads by how they were answered\n${readTable(classes)}`,
    `Misses by why\n${missTable(classes)}`,
    `Age when served, and time of a read: half, nine in ten and all but one in a hundred are within it\n${percentileTable(classes)}`,
  ].join('\n\n');
}

function readTable(classes: readonly ClassStats[]): string {
  const outcomes = ['HIT', 'STALE', 'ON ERROR', 'COLLAPSED', 'MISS', 'FAILED'];
  return columns([
    ['CLASS', 'READS', ...outcomes, 'STORE CALLS', 'HIT RATIO', 'ENTRIES', 'BYTES'],
    ...classes.map(({ class: cacheClass, reads, outcomes: of, storeCalls, memory }) => [
      cacheClass,
      ...[reads, of.hit, of['stale-while-revalidate'], of['stale-if-error'], of.collapsed, of.miss, of.failed].map(
        String,
      ),
      String(storeCalls),
      hitRatio(reads, storeCalls, of),
      String(memory.entries),
      bytesText(memory.bytes),
    ]),
  ]);
}

/**
 * A failed read is no hit, although it may have cost the store nothing. More calls than reads are possible: a read that
 * a purge overtakes fetches again.
 */
function hitRatio(reads: number, storeCalls: number, { miss, failed }: ClassStats['outcomes']): string {
  if (reads === 0) return '-';
  return percentText(1 - Math.min(reads, Math.max(storeCalls, miss + failed)) / reads);
}

/** One column per reason that the listener knows. */
function missTable(classes: readonly ClassStats[]): string {
  const reasons = [...new Set(classes.flatMap(({ misses }) => Object.keys(misses)))];
  return columns([
    ['CLASS', ...reasons.map((reason) => reason.toUpperCase())],
    ...classes.map(({ class: cacheClass, misses }) => [
      cacheClass,
      ...reasons.map((reason) => String(misses[reason] ?? 0)),
    ]),
  ]);
}

function percentileTable(classes: readonly ClassStats[]): string {
  const cells = (percentiles: ClassStats['ageMs']): string[] =>
    percentiles === null ? ['-', '-', '-'] : [percentiles.p50, percentiles.p90, percentiles.p99].map(durationText);
  return columns([
    ['CLASS', 'AGE P50', 'AGE P90', 'AGE P99', 'TIME P50', 'TIME P90', 'TIME P99'],
    ...classes.map(({ class: cacheClass, ageMs, latencyMs }) => [cacheClass, ...cells(ageMs), ...cells(latencyMs)]),
  ]);
}

export function topCommand(): Command {
  const command = adminCommand({
    name: 'top',
    summary: 'show the keys and routes for which the store had to work most',
    details: [
      'It covers one gateway process and the last 30 to 60 minutes. STORE MS is the time that its calls to the store took,',
      'all together. STORE CALLS counts requests to the store, each once however often it was retried; `cache stats`',
      'counts every call that was sent, with retries, so its numbers can be higher. A searched list is shown by its hash.',
    ].join(' '),
    examples: ['evalgate cache top', "evalgate cache top --limit 5 --json | jq '.keys[].key'"],
  });
  return command
    .option('--limit <number>', 'how many keys, and how many routes', integerBetween(1, 100), 20)
    .action(() => {
      const query = new URLSearchParams({ limit: String(command.opts<{ limit: number }>().limit) });
      return callAndPrint(command, ROUTES.cacheTop, topText, { query });
    });
}

function topText({ since, keys, routes }: AnswerOf<typeof ROUTES.cacheTop>): string {
  const heading = `Calls to the store since ${printable(since)}.`;
  if (keys.length === 0) return `${heading} There were none.`;
  const routeRows = routes.map(({ route, storeCalls, storeMs }) => [
    route ?? '(no request)',
    String(storeCalls),
    String(storeMs),
  ]);
  const keyRows = keys.map((row) => [row.key, row.class, String(row.storeCalls), String(row.storeMs)]);
  return [
    heading,
    columns([['ROUTE', 'STORE CALLS', 'STORE MS'], ...routeRows]),
    columns([['KEY', 'CLASS', 'STORE CALLS', 'STORE MS'], ...keyRows]),
  ].join('\n\n');
}

export function fleetCommand(): Command {
  const command = adminCommand({
    name: 'fleet',
    summary: 'list the gateway processes that serve together',
    details: 'They share a Redis. A process that was killed is listed for ten seconds more.',
    examples: ['evalgate fleet', "evalgate fleet --json | jq '.members[] | {host, status}'"],
  });
  return command.action(() =>
    callAndPrint(command, ROUTES.fleet, ({ members }) =>
      columns([
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
      ]),
    ),
  );
}
