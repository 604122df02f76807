/** `evalgate state`: a backup of what is lost with the state Redis, and its way back. */
import type { Command } from 'commander';
import { z } from 'zod';
import type { StateCounts } from '../../operations/answers.ts';
import { ROUTES } from '../../operations/api.ts';
import { check } from '../../operations/input.ts';
import { readRecords } from '../../operations/state.ts';
import { callAdmin, operatorOf } from '../admin-client.ts';
import { CliError, makeGroup, print } from '../command.ts';
import { columns, countText } from '../format.ts';
import { type JsonLine, NOT_JSON, readJsonLines } from '../json-lines.ts';
import { keyCommand, redisUrlOf } from '../keys/key-admin.ts';
import { writeJson } from '../output.ts';
import type { StateAdmin } from './redis-state.ts';

export function stateCommand(): Command {
  return makeGroup({
    name: 'state',
    summary: 'back up keys, times set by operators, maintenance and the audit',
    details: 'The file has the hashes of keys, as Redis has them, and no key itself. Keep it as safe as Redis.',
    examples: ['evalgate state export > state.jsonl', 'evalgate state import state.jsonl'],
  })
    .addCommand(exportCommand())
    .addCommand(importCommand());
}

async function useState<T>(command: Command, act: (admin: StateAdmin) => Promise<T>): Promise<T> {
  const url = redisUrlOf(command);
  if (url === null) return act(listenerState(command));
  const { useRedisState } = await import('./redis-state.ts');
  return useRedisState({ url, operator: operatorOf(command) }, act);
}

function listenerState(command: Command): StateAdmin {
  return {
    pages: async function* () {
      const query = new URLSearchParams();
      for (;;) {
        const { records, nextCursor } = await callAdmin(command, ROUTES.exportState, { query });
        yield records;
        if (nextCursor === null) return;
        query.set('cursor', nextCursor);
      }
    },
    import: (records, dryRun) => callAdmin(command, ROUTES.importState, { body: { records: [...records], dryRun } }),
  };
}

const VERSION = 1;
const END = { kind: 'end' } as const;
const headSchema = z.strictObject({
  kind: z.literal('state').describe('state'),
  version: z.literal(VERSION).describe(String(VERSION)),
  at: z.iso.datetime().describe('a time in ISO 8601 in UTC'),
});

function exportCommand(): Command {
  return keyCommand({
    name: 'export',
    summary: 'print the state as the JSON lines that `import` takes',
    details: [
      'The first line has the time of the export, the last says that it is whole. Each line between is a record with its',
      'kind: key, time, maintenance or audit. Not among them: requests counted for limits, times of last use, purges, and cached answers.',
    ].join(' '),
    examples: ['evalgate state export > state.jsonl'],
  }).action(async ({ json }: { json?: boolean }, command: Command) => {
    const head = { kind: 'state', version: VERSION, at: new Date().toISOString() };
    await useState(command, async (admin) => {
      const all: object[] = [];
      if (json !== true) writeJson(head);
      for await (const page of admin.pages()) {
        if (json === true) all.push(...page);
        else for (const record of page) writeJson(record);
      }
      if (json === true) print(command, { version: head.version, at: head.at, records: all }, '');
      else writeJson(END);
    });
  });
}

function importCommand(): Command {
  return keyCommand({
    name: 'import',
    summary: 'add an exported state to what is there',
    details: [
      'All lines are checked before anything is changed. What is there already is replaced; a revoked key stays revoked. A time or',
      'a maintenance whose end has passed is not brought back. If the import breaks off, repeat it: it adds nothing twice.',
    ].join(' '),
    examples: ['evalgate state import state.jsonl --dry-run', 'evalgate state import - < state.jsonl'],
  })
    .argument('<file>', 'the file, or - for standard input')
    .option('--dry-run', 'only check it, and count what would change')
    .action(async (file: string, { dryRun = false }: { dryRun?: boolean }, command: Command) => {
      const { at, records } = parseState(await readJsonLines(file), Date.now());
      const counts = await useState(command, async (admin) => {
        // Counted as a whole first: a key that is refused on the last page leaves the first ones unchanged too.
        const counted = await importPages(admin, records, true);
        return dryRun ? counted : importPages(admin, records, false);
      });
      print(command, { exportedAt: at, dryRun, ...counts }, countsText(at, dryRun, counts));
    });
}

/** Below the limit of the listener, 1 MB and 5000 records; small enough that Redis stores a page within its time for an answer. */
const PAGE_BYTES = 500_000;
const PAGE_RECORDS = 250;

async function importPages(admin: StateAdmin, records: readonly JsonLine[], isDryRun: boolean): Promise<StateCounts> {
  let sums: StateCounts | null = null;
  for (const page of pagesOf(records)) {
    const written = page.map((line) => line.written);
    const counts = await admin.import(written, isDryRun).catch((error: unknown) => {
      throw error instanceof CliError ? withLineNumbers(error, page) : error;
    });
    sums = sums === null ? counts : sumOf(sums, counts);
  }
  if (sums === null) throw new CliError('Nothing was imported: the file has no records.');
  return sums;
}

function* pagesOf(records: readonly JsonLine[]): Generator<readonly JsonLine[]> {
  let page: JsonLine[] = [];
  let bytes = 0;
  for (const record of records) {
    const size = Buffer.byteLength(JSON.stringify(record.written)) + 1;
    if (page.length === PAGE_RECORDS || (page.length > 0 && bytes + size > PAGE_BYTES)) {
      yield page;
      [page, bytes] = [[], 0];
    }
    page.push(record);
    bytes += size;
  }
  if (page.length > 0) yield page;
}

/** A refused record is named by its place on the page. */
function withLineNumbers(error: CliError, page: readonly JsonLine[]): CliError {
  const lineOf = (_: string, index: string): string => `line ${page[Number(index)]?.number ?? '?'}`;
  return new CliError(error.message.replaceAll(/records\[(\d+)\]/g, lineOf), error.exitCode);
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
    ...(isAnyLeftOut ? ['Left out: what has ended since, and audit entries older than those that are kept.'] : []),
  ].join('\n');
}

const endSchema = z.looseObject({ kind: z.literal(END.kind) });
const isEnd = ({ written }: JsonLine): boolean => endSchema.safeParse(written).success;
const END_LINE = JSON.stringify(END);
const place = (line: JsonLine | undefined): string => `line ${line?.number ?? 1}`;

/** The records between the first line and the last. Throws CliError with every fault of every line. */
function parseState(
  lines: readonly JsonLine[],
  nowMs: number,
): { readonly at: string; readonly records: readonly JsonLine[] } {
  const [first, ...rest] = lines;
  const last = rest.at(-1);
  const isWhole = check(z.strictObject({ kind: z.literal(END.kind) }), last?.written).faults === null;
  const misplaced = rest.slice(0, isWhole ? -1 : undefined).filter(isEnd);
  const records = rest.filter((line) => !isEnd(line));
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
    ...(isWhole || (last !== undefined && isEnd(last))
      ? []
      : [`${place(last ?? first)}: the last, but not the end: the file was cut off; allowed at its end: ${END_LINE}`]),
  ];
  if (head.faults === null && all.length === 0) return { at: head.value.at, records };
  throw new CliError(
    [`Nothing was imported: ${countText(all.length, 'fault')}:`, ...all.map((fault) => `  ${fault}`)].join('\n'),
  );
}
