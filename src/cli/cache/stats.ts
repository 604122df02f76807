/** Statistics of running gateways: `evalgate cache stats`, `evalgate cache top` and `evalgate fleet`. */
import { type Command, Option } from 'commander';
import type { Counted } from '../../operations/answers.ts';
import type { AnswerOf, ROUTES } from '../../operations/api.ts';
import { clockText, durationText } from '../../time/duration.ts';
import { adminCommand, callAndPrint, routeCommand } from '../admin-client.ts';
import { integerBetween } from '../command.ts';
import { bytesText, type Cell, columns, countText, percentText, rateText } from '../format.ts';
import { SUMMARIES } from '../summaries.ts';

type Stats = AnswerOf<typeof ROUTES.cacheStats>;

/** Since when, and by which processes, it was counted. */
function countedText({ scope, since, processes, problem }: Counted): string {
  const all = countText(processes, 'process', 'processes');
  const counting = scope === 'process' && problem !== null ? 'ONE PROCESS ONLY' : all;
  return `Since ${since}, in steps of 5 minutes, by ${counting}${problem === null ? '' : `: ${problem}`}.`;
}

export function statsCommand(): Command {
  const texts = {
    name: 'stats',
    summary: 'show the last hour of the caches of all gateway processes',
    details: [
      'HIT RATIO is the share of reads that were served without waiting for the store; CALLS/READ are store calls per read.',
      'Misses are all reads that the cache could not answer at once; some of them waited for the call of another read, or got an older copy because the store failed.',
    ].join('\n'),
    examples: ['evalgate cache stats', "evalgate cache stats --json | jq '.classes[] | {class, storeCalls}'"],
  };
  return routeCommand(texts, (routes) => routes.cacheStats, statsText);
}

const OUTCOMES = ['HIT', 'STALE', 'ON ERROR', 'CHANGED', 'COLLAPSED', 'MISS', 'FAILED'];

function statsText(stats: Stats): string {
  const { memory, classes } = stats;
  const held = `${countText(memory.entries, 'entry', 'entries')}, ${bytesText(memory.bytes)} of ${bytesText(memory.maxBytes)}`;
  const reasons = [...new Set(classes.flatMap(({ misses }) => Object.keys(misses)))];
  const reads = columns([
    [
      'CLASS',
      'READS',
      ...OUTCOMES,
      'HIT RATIO',
      'STORE CALLS',
      'EARLY',
      'CALLS/READ',
      'UNANNOUNCED',
      'ENTRIES',
      'BYTES',
    ],
    ...classes.map(({ outcomes: of, ...row }) => [
      row.class,
      row.reads,
      of.hit,
      of['stale-while-revalidate'],
      of['stale-if-error'],
      of.changed,
      of.collapsed,
      of.miss,
      of.failed,
      row.hitRatio === null ? null : percentText(row.hitRatio),
      row.storeCalls,
      row.earlyRenewals,
      row.storeCallsPerRead?.toFixed(2) ?? null,
      row.unannouncedRatio === null ? null : percentText(row.unannouncedRatio),
      row.memory.entries,
      bytesText(row.memory.bytes),
    ]),
  ]);
  const misses = columns([
    ['CLASS', ...reasons.map((reason) => reason.toUpperCase())],
    ...classes.map((row) => [row.class, ...reasons.map((reason) => row.misses[reason] ?? 0)]),
  ]);
  const percentiles = columns([
    ['CLASS', 'AGE P50', 'AGE P90', 'AGE P99', 'TIME P50', 'TIME P90', 'TIME P99'],
    ...classes.map((row) => [
      row.class,
      ...[row.ageMs, row.latencyMs].flatMap((of) =>
        of === null ? [null, null, null] : [of.p50, of.p90, of.p99].map(durationText),
      ),
    ]),
  ]);
  return [
    `${countedText(stats)} Memory of the answering process: ${held}.`,
    `Reads by outcome\n${reads}`,
    `Misses by reason\n${misses}`,
    `Age when served, and read time: percentiles\n${percentiles}`,
  ].join('\n\n');
}

type Top = AnswerOf<typeof ROUTES.cacheTop>;

const WORK = ['STORE CALLS', 'STORE MS'];
const workOf = ({ storeCalls, storeMs }: Pick<Top['routes'][number], 'storeCalls' | 'storeMs'>) => [
  storeCalls,
  storeMs,
];

const NAMES = ['key', 'workspace', 'route', 'record'] as const;
type TopName = (typeof NAMES)[number];
/** The tables of `cache top`, heading first. */
const TOPS: Readonly<Record<TopName, (top: Top) => readonly (readonly Cell[])[]>> = {
  key: ({ apiKeys }) => [['API KEY', ...WORK], ...apiKeys.map((one) => [one.keyId ?? '(no request)', ...workOf(one)])],
  workspace: ({ workspaces }) => [
    ['WORKSPACE', ...WORK],
    ...workspaces.map((one) => [one.workspaceId ?? '(several)', ...workOf(one)]),
  ],
  route: ({ routes }) => [['ROUTE', ...WORK], ...routes.map((one) => [one.route ?? '(no request)', ...workOf(one)])],
  record: ({ keys }) => [['KEY', 'CLASS', ...WORK], ...keys.map((one) => [one.key, one.class, ...workOf(one)])],
};

export function topCommand(): Command {
  return adminCommand({
    name: 'top',
    summary: 'show for whom the store had to work most: routes and records, API keys or workspaces',
    details: [
      'It covers all gateway processes and the last hour. STORE MS is the time that calls to the store took,',
      'all together. STORE CALLS counts requests to the store, each once however often it was retried; `cache stats`',
      'counts every call that was sent, with retries, so its numbers can be higher. A searched list is shown by its hash.',
      'A call counts for the API key whose request caused it; other keys may have used its answer. If copies were evicted while they',
      'were fresh, the last line says how many calls more memory would have saved.',
    ].join(' '),
    examples: [
      'evalgate cache top',
      'evalgate cache top --by key',
      "evalgate cache top --limit 5 --json | jq '.keys[].key'",
    ],
  })
    .addOption(new Option('--by <what>', 'by API key, workspace, route or record').choices(NAMES))
    .option('--limit <number>', 'how many of each', integerBetween(1, 100), 20)
    .action(({ limit, by }: { limit: number; by?: TopName }, command: Command) => {
      const query = new URLSearchParams({ limit: String(limit) });
      const text = (top: Top): string => topText(top, by === undefined ? ['route', 'record'] : [by]);
      return callAndPrint(command, (routes) => routes.cacheTop, text, { query });
    });
}

function topText(top: Top, tables: readonly TopName[]): string {
  const heading = `Calls to the store. ${countedText(top)}`;
  if (top.keys.length === 0) return `${heading} There were none.`;
  return [heading, ...tables.map((name) => columns(TOPS[name](top))), ...memoryText(top)].join('\n\n');
}

/** Nothing if no more memory would spare the store a call. */
function memoryText({ moreMemory: { evictedRatio, savings } }: Top): readonly string[] {
  if (savings.length === 0) return [];
  const steps = savings.map(({ bytes, storeRps }) => `${bytesText(bytes)} would save ${rateText(storeRps)} calls/s`);
  const seen = countText(savings.at(-1)?.seen ?? 0, 'read');
  return [
    `Evicted ${percentText(evictedRatio ?? 0)} of misses. More memory (cache.memory) per process: ${steps.join(', ')} (from ${seen} of one record in eight).`,
  ];
}

export function whoAmICommand(): Command {
  const texts = {
    name: 'whoami',
    summary: SUMMARIES.whoami,
    examples: ['evalgate whoami', 'evalgate whoami --as ann'],
  };
  return routeCommand(
    texts,
    (routes) => routes.whoAmI,
    ({ who, role }) => `${who} (${role})`,
  );
}

export function fleetCommand(): Command {
  const texts = {
    name: 'fleet',
    summary: SUMMARIES.fleet,
    details: 'They share a Redis, and each reports every two seconds. One that is silent for ten seconds is left out.',
    examples: ['evalgate fleet', "evalgate fleet --json | jq '.members[] | {host, status}'"],
  };
  return routeCommand(
    texts,
    (routes) => routes.fleet,
    ({ problem, members, changes }) => {
      const rows = members.map(({ id, host, pid, version, startedAt, status, heardMsAgo, clockAheadMs, self }) => {
        const reported = self ? 'now' : `${(heardMsAgo / 1000).toFixed(1)}s ago`;
        const notes = [
          self ? 'answers this' : '',
          clockAheadMs === 0 ? '' : `its clock is ${clockText(clockAheadMs)} that of Redis`,
        ];
        return [host, pid, version, status, startedAt, reported, id, notes.filter((note) => note !== '').join('; ')];
      });
      const table = columns([['HOST', 'PID', 'VERSION', 'STATUS', 'STARTED AT', 'REPORTED', 'ID', ''], ...rows]);
      const { last, inLastHour } = changes;
      const heard = `the gateway that answers heard of ${inLastHour} in the last hour`;
      const announced = last === null ? '' : `\n\nThe store announced a change last at ${last}; ${heard}.`;
      return `${problem === null ? '' : `${problem}.\n\n`}${table}${announced}`;
    },
  );
}
