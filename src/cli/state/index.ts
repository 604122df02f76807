/** `evalgate state`: a backup of what is lost with the state Redis, and its way back. */
import type { Command } from 'commander';
import { z } from 'zod';
import type { StateCounts } from '../../operations/answers.ts';
import { check } from '../../operations/input.ts';
import { readRecords, STATE_END, STATE_VERSION } from '../../operations/state.ts';
import { adminCommand, callAdmin, callForLines } from '../admin-client.ts';
import { CliError, makeGroup, print } from '../command.ts';
import { columns, countText } from '../format.ts';
import { importInPages } from '../import-pages.ts';
import { type JsonLine, NOT_JSON, readJsonLines } from '../json-lines.ts';
import { writeJson } from '../output.ts';
import { SUMMARIES } from '../summaries.ts';

export function stateCommand(): Command {
  return makeGroup({
    name: 'state',
    summary: SUMMARIES.state,
    details: 'The file has the hashes of keys, as Redis has them, and no key itself. Keep it as safe as Redis.',
    examples: ['evalgate state export > state.jsonl', 'evalgate state import state.jsonl'],
  })
    .addCommand(exportCommand())
    .addCommand(importCommand());
}

const headSchema = z.strictObject({
  kind: z.literal('state').describe('state'),
  version: z.literal(STATE_VERSION).describe(String(STATE_VERSION)),
  at: z.iso.datetime().describe('a time in ISO 8601 in UTC'),
});

function exportCommand(): Command {
  return adminCommand({
    name: 'export',
    summary: 'print the state as the JSON lines that `import` takes',
    details: [
      'The first line has the time of the export, the last says that it is whole. Each line between is a record with its',
      'kind: key, time, maintenance or audit. Not among them: requests counted for limits, times of last use, purges, and cached answers.',
    ].join(' '),
    examples: ['evalgate state export > state.jsonl'],
  }).action(async ({ json }: { json?: boolean }, command: Command) => {
    const records: unknown[] = [];
    let head: z.output<typeof headSchema> | null = null;
    let last: unknown = null;
    for await (const line of callForLines(command, (routes) => routes.exportState)) {
      if (head === null) head = headSchema.safeParse(line).data ?? notWhole('no head');
      else if (json === true) records.push(line);
      if (json !== true) writeJson(line);
      last = line;
    }
    if (head === null || !isEnd(last)) notWhole('no end');
    if (json === true) print(command, { version: head.version, at: head.at, records: records.slice(0, -1) }, '');
  });
}

function notWhole(lacks: string): never {
  throw new CliError(`The export is not whole: it has ${lacks}. Is the gateway of the same version as this command?`);
}

function importCommand(): Command {
  return adminCommand({
    name: 'import',
    summary: 'add an exported state to what is there',
    details: [
      'All lines are checked before anything is changed. What is there already is replaced; a revoked key stays revoked: it is left out. A time or',
      'a maintenance whose end has passed is not brought back. If the import breaks off, repeat it: it adds nothing twice.',
    ].join(' '),
    examples: ['evalgate state import state.jsonl --dry-run', 'evalgate state import - < state.jsonl'],
  })
    .argument('<file>', 'the file, or - for standard input')
    .option('--dry-run', 'only check it, and count what would change')
    .action(async (file: string, { dryRun = false }: { dryRun?: boolean }, command: Command) => {
      const { at, records } = parseState(await readJsonLines(file), Date.now());
      const counts = await importInPages(records, dryRun, {
        send: (written, isDryRun) =>
          callAdmin(command, (routes) => routes.importState, { body: { records: [...written], dryRun: isDryRun } }),
        word: 'records',
        sum: sumOf,
      });
      print(command, { exportedAt: at, dryRun, ...counts }, countsText(at, dryRun, counts));
    });
}

const KINDS = ['keys', 'times', 'maintenance', 'audit'] as const;

function sumOf(a: StateCounts, b: StateCounts): StateCounts {
  const sum = (kind: (typeof KINDS)[number]): StateCounts['keys'] => ({
    added: a[kind].added + b[kind].added,
    replaced: a[kind].replaced + b[kind].replaced,
    unchanged: a[kind].unchanged + b[kind].unchanged,
    leftOut: a[kind].leftOut + b[kind].leftOut,
  });
  return { keys: sum('keys'), times: sum('times'), maintenance: sum('maintenance'), audit: sum('audit') };
}

function countsText(at: string, isDryRun: boolean, counts: StateCounts): string {
  const rows = KINDS.map((kind) => {
    const { added, replaced, unchanged, leftOut } = counts[kind];
    return [kind, added, replaced, unchanged, leftOut];
  });
  const isAnyLeftOut = KINDS.some((kind) => counts[kind].leftOut > 0);
  return [
    `${isDryRun ? 'Nothing was changed. An import would bring' : 'Imported'} the state of ${at}:`,
    columns([['', 'new', 'replaced', 'unchanged', 'left out'], ...rows]),
    ...(isAnyLeftOut
      ? [
          'Left out: keys that were revoked since, what has ended since, and audit entries older than those that are kept.',
        ]
      : []),
  ].join('\n');
}

const endSchema = z.looseObject({ kind: z.literal(STATE_END.kind) });
const isEnd = (written: unknown): boolean => endSchema.safeParse(written).success;
const isEndLine = ({ written }: JsonLine): boolean => isEnd(written);
const END_LINE = JSON.stringify(STATE_END);
const place = (line: JsonLine | undefined): string => `line ${line?.number ?? 1}`;

/** The records between the first line and the last. Throws CliError with every fault of every line. */
function parseState(
  lines: readonly JsonLine[],
  nowMs: number,
): { readonly at: string; readonly records: readonly JsonLine[] } {
  const [first, ...rest] = lines;
  const last = rest.at(-1);
  const isWhole = check(z.strictObject({ kind: z.literal(STATE_END.kind) }), last?.written).faults === null;
  const misplaced = rest.slice(0, isWhole ? -1 : undefined).filter(isEndLine);
  const records = rest.filter((line) => !isEndLine(line));
  const head = check(headSchema, first?.written);
  const readable = records.filter(({ written }) => written !== undefined);
  const { faults } = readRecords(
    readable.map(({ written }) => written),
    nowMs,
    (index) => place(readable[index]),
  );
  const all = [
    ...(head.faults ?? []).map((fault) => `${place(first)}: ${fault}`),
    ...records.filter(({ written }) => written === undefined).map((line) => `${place(line)}: ${NOT_JSON}`),
    ...faults,
    ...misplaced.map(
      (line) => `${place(line)}: the end, too early or with more members; allowed: ${END_LINE} as the last line`,
    ),
    ...(isWhole || (last !== undefined && isEndLine(last))
      ? []
      : [`${place(last ?? first)}: the last, but not the end: the file was cut off; allowed at its end: ${END_LINE}`]),
  ];
  if (head.faults === null && all.length === 0) return { at: head.value.at, records };
  throw new CliError(
    [`Nothing was imported: ${countText(all.length, 'fault')}:`, ...all.map((fault) => `  ${fault}`)].join('\n'),
  );
}
