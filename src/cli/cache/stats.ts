/** `evalgate cache stats`: what the cache holds and what it has done. */
import type { Command } from 'commander';
import { z } from 'zod';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, makeCommand } from '../command.ts';
import { columns } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { bytesText, entriesText, shortDuration } from './view.ts';

const count = z.number();
const usageSchema = z.looseObject({ entries: count, bytes: count });
/** Null where nothing was read. */
const percentilesSchema = z.looseObject({ p50: count, p90: count, p99: count }).nullable();
const rowSchema = z.looseObject({
  class: z.string(),
  reads: count,
  outcomes: z.looseObject({
    hit: count,
    'stale-while-revalidate': count,
    'stale-if-error': count,
    collapsed: count,
    miss: count,
    failed: count,
  }),
  misses: z.record(z.string(), count),
  storeCalls: count,
  ageMs: percentilesSchema,
  latencyMs: percentilesSchema,
  memory: usageSchema,
});
const statsSchema = z.looseObject({
  since: z.string(),
  memory: z.looseObject({ entries: count, bytes: count, maxBytes: count }),
  classes: z.array(rowSchema),
});

type Stats = z.output<typeof statsSchema>;
type Row = z.output<typeof rowSchema>;

export function cacheStatsCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'stats',
      summary: 'show what the cache holds and what it has done since the gateway began',
      details: [
        'HIT RATIO is 1 less the calls to the store for each read. A read that failed counts like a call.',
        "Misses are all reads that the cache could not answer at once; some of them waited for another's call, or got an older copy because the store failed.",
      ].join('\n'),
      examples: ['evalgate cache stats', "evalgate cache stats --json | jq '.classes[] | {class, storeCalls}'"],
    },
    terminal,
  );
  return withAdminOption(command, terminal).action(async () => {
    const client = adminClientOf(command, terminal);
    const stats = await client.call({ method: 'GET', path: '/api/cache', answer: statsSchema });
    answer(terminal, command, { document: stats, text: statsText(stats) });
  });
}

function statsText({ since, memory, classes }: Stats): string {
  const held = `${entriesText(memory.entries)}, ${bytesText(memory.bytes)} of ${bytesText(memory.maxBytes)}`;
  return [
    `Since ${since}. In memory: ${held}.`,
    `Reads by how they were answered\n${columns([READ_HEADING, ...classes.map(readCells)])}`,
    `Misses by why\n${missTable(classes)}`,
    `Age when served, and time of a read: half, nine in ten and all but one in a hundred are within it\n${spreadTable(classes)}`,
  ].join('\n\n');
}

const READ_HEADING = [
  'CLASS',
  'READS',
  'HIT',
  'STALE',
  'ON ERROR',
  'COLLAPSED',
  'MISS',
  'FAILED',
  'STORE CALLS',
  'HIT RATIO',
  'ENTRIES',
  'BYTES',
];

function readCells({ class: cacheClass, reads, outcomes, storeCalls, memory }: Row): string[] {
  const counts = [
    reads,
    outcomes.hit,
    outcomes['stale-while-revalidate'],
    outcomes['stale-if-error'],
    outcomes.collapsed,
    outcomes.miss,
    outcomes.failed,
    storeCalls,
  ];
  return [
    cacheClass,
    ...counts.map(String),
    hitRatio(reads, storeCalls, outcomes),
    String(memory.entries),
    bytesText(memory.bytes),
  ];
}

/**
 * A read that failed is no hit, although it may have cost the store nothing. More calls than reads are possible: a read
 * that a purge overtakes asks again.
 */
function hitRatio(reads: number, storeCalls: number, { miss, failed }: Row['outcomes']): string {
  if (reads === 0) return '-';
  const missed = Math.min(reads, Math.max(storeCalls, miss + failed));
  return `${((1 - missed / reads) * 100).toFixed(1)} %`;
}

/** A column a reason, as the listener has them. */
function missTable(classes: readonly Row[]): string {
  const reasons = [...new Set(classes.flatMap(({ misses }) => Object.keys(misses)))];
  return columns([
    ['CLASS', ...reasons.map((reason) => reason.toUpperCase())],
    ...classes.map(({ class: cacheClass, misses }) => [
      cacheClass,
      ...reasons.map((reason) => String(misses[reason] ?? 0)),
    ]),
  ]);
}

const SPREAD_HEADING = ['CLASS', 'AGE P50', 'AGE P90', 'AGE P99', 'TIME P50', 'TIME P90', 'TIME P99'];

function spreadTable(classes: readonly Row[]): string {
  return columns([
    SPREAD_HEADING,
    ...classes.map(({ class: cacheClass, ageMs, latencyMs }) => [
      cacheClass,
      ...spreadCells(ageMs),
      ...spreadCells(latencyMs),
    ]),
  ]);
}

function spreadCells(percentiles: Row['ageMs']): string[] {
  if (percentiles === null) return ['-', '-', '-'];
  return [percentiles.p50, percentiles.p90, percentiles.p99].map(shortDuration);
}
