/** Statistics of running gateways: `evalgate cache stats`, `evalgate cache top` and `evalgate fleet`. */
import type { Command } from 'commander';
import type { Counted } from '../../admin/answers.ts';
import { type AnswerOf, ROUTES } from '../../admin/api.ts';
import { adminCommand, callAndPrint } from '../admin-client.ts';
import { integerBetween } from '../command.ts';
import { bytesText, columns, durationText, entriesText, percentText, printable } from '../format.ts';

type Stats = AnswerOf<typeof ROUTES.cacheStats>;
type ClassStats = Stats['classes'][number];

/** Whose counts they are, in a sentence. */
function countedText({ scope, since, processes, problem }: Counted): string {
  const all = processes === 1 ? '1 process' : `${processes} processes`;
  const of = scope === 'process' && problem !== null ? 'ONE PROCESS ONLY' : all;
  return printable(`Since ${since}, of ${of}${problem === null ? '' : `: ${problem}`}.`);
}

export function statsCommand(): Command {
  const command = adminCommand({
    name: 'stats',
    summary: 'show what the caches of all gateway processes did in the last hour',
    details: [
      'HIT RATIO is the share of reads that were served without waiting for the store; CALLS/READ are store calls per read.',
      "Misses are all reads that the cache could not answer at once; some of them waited for another's call, or got an older copy because the store failed.",
    ].join('\n'),
    examples: ['evalgate cache stats', "evalgate cache stats --json | jq '.classes[] | {class, storeCalls}'"],
  });
  return command.action(() => callAndPrint(command, ROUTES.cacheStats, statsText));
}

function statsText(stats: Stats): string {
  const { memory, classes } = stats;
  const held = `${entriesText(memory.entries)}, ${bytesText(memory.bytes)} of ${bytesText(memory.maxBytes)}`;
  return [
    `${countedText(stats)} In the memory of the process that answers: ${held}.`,
    `Reads by how they were answered\n${readTable(classes)}`,
    `Misses by why\n${missTable(classes)}`,
    `Age when served, and time of a read: half, nine in ten and all but one in a hundred are within it\n${percentileTable(classes)}`,
  ].join('\n\n');
}

function readTable(classes: readonly ClassStats[]): string {
  const outcomes = ['HIT', 'STALE', 'ON ERROR', 'COLLAPSED', 'MISS', 'FAILED'];
  return columns([
    ['CLASS', 'READS', ...outcomes, 'HIT RATIO', 'STORE CALLS', 'CALLS/READ', 'ENTRIES', 'BYTES'],
    ...classes.map(({ class: name, reads, outcomes: of, hitRatio, storeCalls, storeCallsPerRead, memory }) => [
      name,
      ...[reads, of.hit, of['stale-while-revalidate'], of['stale-if-error'], of.collapsed, of.miss, of.failed].map(
        String,
      ),
      hitRatio === null ? '-' : percentText(hitRatio),
      String(storeCalls),
      storeCallsPerRead?.toFixed(2) ?? '-',
      String(memory.entries),
      bytesText(memory.bytes),
    ]),
  ]);
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
      'It covers all gateway processes and the last hour. STORE MS is the time that calls to the store took,',
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

function topText(top: AnswerOf<typeof ROUTES.cacheTop>): string {
  const { keys, routes } = top;
  const heading = `Calls to the store. ${countedText(top)}`;
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
    details: 'They share a Redis, and each reports every two seconds. One that is silent for ten seconds is left out.',
    examples: ['evalgate fleet', "evalgate fleet --json | jq '.members[] | {host, status}'"],
  });
  return command.action(() => callAndPrint(command, ROUTES.fleet, fleetText));
}

function fleetText({ problem, members }: AnswerOf<typeof ROUTES.fleet>): string {
  const table = columns([
    ['HOST', 'PID', 'VERSION', 'STATUS', 'STARTED AT', 'HEARD', 'ID', ''],
    ...members.map(({ id, host, pid, version, startedAt, status, heardMsAgo, self }) => [
      host,
      String(pid),
      version,
      status,
      startedAt,
      self ? 'now' : `${(heardMsAgo / 1000).toFixed(1)}s ago`,
      id,
      self ? 'asked' : '',
    ]),
  ]);
  return problem === null ? table : `${printable(problem)}.\n\n${table}`;
}
