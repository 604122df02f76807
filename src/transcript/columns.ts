/**
 * Columns: rows of cells, one of which holds the words, and another a time or a speaker. A header says which, or the cells
 * show it: times that do not go back, names that are few and recur.
 */
import { asciiDigits } from './digits.ts';
import { type Body, explainsMost, Measure, type Reading } from './form.ts';
import { Lines, skipFormatCharacters } from './lines.ts';
import { looksLikeName, Names } from './names.ts';
import { Pace, type Slices } from './slices.ts';
import { type Delimiter, Rows } from './table.ts';
import { secondsOf, timeAt } from './times.ts';
import { TurnWriter } from './turn-writer.ts';

const DELIMITERS: readonly Delimiter[] = ['\t', ',', ';', '|'];
/** So many rows show the columns. */
const SAMPLE_ROWS = 200;
const MAX_COLUMNS = 30;
const MAX_HEADER_UNITS = 1000;
/** No column has a longer name. */
const MAX_NAME_UNITS = 40;

/** Which column holds what; -1 if none does. */
interface Layout {
  readonly delimiter: Delimiter;
  readonly columns: number;
  readonly words: number;
  readonly speaker: number;
  readonly hasHeader: boolean;
}

type Role = 'words' | 'speaker' | 'time' | 'other';

/** Names of columns, in small letters without signs; the first that fits wins. */
const ROLES: readonly (readonly [Role, ReadonlySet<string>])[] = [
  [
    'words',
    new Set(
      'text|transcript|words|content|sentence|sentences|utterance|message|body|caption|captions|subtitle|subtitles|dialogue|dialog|speech|transcription|line|spoken text|texte|texto|testo|wortlaut|内容|文本|发言|テキスト|発言'.split(
        '|',
      ),
    ),
  ],
  [
    'speaker',
    new Set(
      'speaker|speaker name|speaker label|speaker id|name|participant|participant name|user|username|user name|who|role|author|agent|from|sprecher|sprecherin|redner|locuteur|orateur|intervenant|hablante|orador|parlante|说话人|发言人|話者'.split(
        '|',
      ),
    ),
  ],
  [
    'time',
    new Set(
      'time|timestamp|start|start time|starttime|start timestamp|begin|begin time|offset|end|end time|endtime|in|out|timecode|tc|tc in|tc out|in point|out point|time in|start sec|start ms|start s|end sec|end ms|duration|date|zeit|uhrzeit|zeitstempel|beginn|anfang|ende|temps|début|fin|hora|inicio|tempo|inizio|fine|时间|時間'.split(
        '|',
      ),
    ),
  ],
];

/** So many lines may stand above the header. */
const MAX_LINES_ABOVE = 12;
const MAX_UNITS_ABOVE = 50_000;

/** How the body reads as a table; null if it is none. */
export function* readColumns({ text }: Body): Slices<Reading | null> {
  const lines = new Lines(text);
  for (let above = 0; above < MAX_LINES_ABOVE && lines.start < MAX_UNITS_ABOVE && lines.advance();) {
    if (lines.isBlank) continue;
    const start = skipFormatCharacters(text, lines.start, lines.end);
    const line = text.slice(start, Math.min(lines.end, start + MAX_HEADER_UNITS));
    for (const delimiter of DELIMITERS.filter((sign) => line.includes(sign))) {
      // Below other lines only a header shows that a table begins.
      const layout = above === 0 || namesColumns(line.split(delimiter)) ? layoutOf(text, start, delimiter) : null;
      yield;
      if (layout === null) continue;
      const reading = yield* readRows(text, start, layout);
      if (explainsMost(reading)) return reading;
    }
    above += 1;
  }
  return null;
}

function namesColumns(cells: readonly string[]): boolean {
  if (cells.some((cell) => cell.length > MAX_NAME_UNITS || cell.includes(':'))) return false;
  const roles = cells.map(roleOfName);
  return roles.includes('words') && (roles.includes('speaker') || roles.includes('time'));
}

function layoutOf(text: string, start: number, delimiter: Delimiter): Layout | null {
  const rows = new Rows(text, delimiter, start);
  const sample: string[][] = [];
  while (sample.length < SAMPLE_ROWS && rows.advance()) {
    const cells = rows.cells.map((_, i) => rows.textOf(i));
    if (!isRule(cells)) sample.push(cells);
  }
  const [first = []] = sample;
  if (sample.length < 2 || first.length < 2 || first.length > MAX_COLUMNS) return null;
  if (namesColumns(first)) {
    const roles = first.map(roleOfName);
    const words = roles.indexOf('words');
    if (!areEven(sample.slice(1), first.length, words)) return null;
    return { delimiter, columns: first.length, words, speaker: roles.indexOf('speaker'), hasHeader: true };
  }
  return layoutByCells(sample, delimiter);
}

/** The line below the header of a table between bars. */
function isRule(cells: readonly string[]): boolean {
  return cells.every((cell) => /^:?-{1,99}:?$/.test(cell));
}

function roleOfName(name: string): Role {
  const plain = name
    .toLowerCase()
    .replaceAll(/\(.{0,20}\)/g, ' ')
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
  return ROLES.find(([, names]) => names.has(plain))?.[0] ?? 'other';
}

/**
 * Whether nearly all rows have as many cells, lines that go on with the words aside; words in the last column may hold the
 * delimiter.
 */
function areEven(rows: readonly (readonly string[])[], columns: number, words: number): boolean {
  const full = rows.filter(({ length }) => length > 1);
  const even = full.filter(({ length }) => length === columns || (length > columns && words === columns - 1));
  return full.length * 2 > rows.length && even.length * 10 >= full.length * 9;
}

/** Without a header, every column must be understood: times, names, numbers that count, and one of words. */
function layoutByCells(rows: readonly (readonly string[])[], delimiter: Delimiter): Layout | null {
  // Commas stand in sentences too.
  if (delimiter !== '\t' && !rows[0]?.some(isTime)) return null;
  const full = rows.filter(({ length }) => length > 1);
  const columns = Math.min(...full.map(({ length }) => length));
  if (!areEven(rows, columns, columns - 1)) return null;
  const roles = Array.from({ length: columns }, (_, i) => roleOfCells(full.map((row) => row[i] ?? '')));
  const words = columns - 1;
  const isUnderstood = roles.slice(0, -1).every((role) => role !== 'words') && roles[words] !== 'time';
  const [speaker, time] = [roles.indexOf('speaker'), roles.indexOf('time')];
  if (!isUnderstood || speaker === words) return null;
  if (time === -1 && (delimiter !== '\t' || speaker === -1)) return null;
  // Lines of speech, with tabs between the time and the name.
  if (speaker === -1 && full.filter((row) => NAMED.test(row[words] ?? '')).length * 2 > full.length) return null;
  return { delimiter, columns, words, speaker, hasHeader: false };
}

function roleOfCells(cells: readonly string[]): Role {
  const times = cells.filter((cell) => isTime(cell));
  if (times.length * 10 >= cells.length * 9) {
    const seconds = times.map((time) => secondsOf(asciiDigits(time)));
    const backs = seconds.filter((value, i) => value < (seconds[i - 1] ?? 0)).length;
    return backs * 20 <= times.length ? 'time' : 'other';
  }
  if (cells.every((cell) => /^\d{0,9}$/.test(cell))) return 'other';
  const names = new Names();
  for (const cell of cells) names.add(cell);
  const likely = cells.filter((cell) => cell.length <= 60 && looksLikeName(cell) && !/[.?!]$|:/.test(cell));
  return likely.length === cells.length && names.repeats > 0 && names.size * 2 <= cells.length + 1
    ? 'speaker'
    : 'words';
}

const NAMED = /^[^:]{1,60}:\s/;
const PLAIN_SECONDS = /^\d{1,6}[.,]\d{1,9}$/;

function isTime(cell: string): boolean {
  const digits = asciiDigits(cell);
  return timeAt(digits, 0, digits.length)?.end === digits.length || PLAIN_SECONDS.test(digits);
}

/** Such as `name<tab>words`, the other columns left out. */
function shapeOf({ delimiter, words, speaker }: Layout): string {
  const cells = speaker === -1 ? ['words'] : words < speaker ? ['words', 'name'] : ['name', 'words'];
  return cells.join(delimiter === '\t' ? '<tab>' : delimiter);
}

function* readRows(text: string, start: number, layout: Layout): Slices<Reading> {
  const { delimiter, columns, words, speaker, hasHeader } = layout;
  const rows = new Rows(text, delimiter, start);
  const writer = new TurnWriter(text);
  const measure = new Measure();
  const pace = new Pace();
  let isHeader = hasHeader;
  const above = new Lines(text.slice(0, start));
  while (above.advance()) {
    if (above.isBlank) writer.blank(above.start, above.end);
    else {
      measure.mark();
      writer.words(above.start, above.end);
    }
  }
  while (rows.advance()) {
    if (pace.isDue(rows.end)) yield;
    const { cells } = rows;
    const isRow = cells.length >= columns;
    if (isHeader || (isRow && isRule(cells.map((_, i) => rows.textOf(i))))) measure.mark();
    else if (!isRow) {
      measure.words();
      writer.words(rows.start, rows.end);
    } else {
      measure.turn(false);
      writer.beginTurn(rows.start);
      const name = speaker === -1 ? '' : rows.textOf(speaker);
      if (name !== '') writer.add(`${name}: `);
      const cell = cells[words];
      if (cell?.isQuoted === true) {
        writer.words(cell.start, cell.start);
        writer.add(rows.textOf(words));
      } else if (cell !== undefined) {
        const isRest = words === columns - 1 && cells.length > columns;
        writer.words(cell.start, isRest ? rows.end : cell.end);
      }
      if (cell?.isQuoted === true) for (const _ of text.slice(rows.start, rows.end).matchAll(/\n/g)) measure.mark();
    }
    isHeader = false;
  }
  const transcript = writer.finish('columns', shapeOf(layout));
  return { transcript, explained: measure.explained(true), lines: measure.lines };
}
