/** `evalgate transcript`: shows how a file would be read, so that a store's team can try its own transcripts. */
import type { TranscriptFormat } from '../domain/vocabulary.ts';
import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { asciiDigits } from '../transcript/digits.ts';
import { JsonScanner } from '../transcript/json-scanner.ts';
import { skipFormatCharacters } from '../transcript/lines.ts';
import { type Evidence, type Explanation, explainSlices } from '../transcript/explain.ts';
import { runToEnd } from '../transcript/slices.ts';
import { LineHead } from '../transcript/line-head.ts';
import type { ParsedTranscript } from '../transcript/turn-writer.ts';
import { CliError, print } from './command.ts';
import { columns, countText } from './format.ts';
import { systemCode } from '../log/error.ts';

/** So much is shown; --json has all. */
const MAX_SHOWN_POINTS = 70;
const MAX_SHOWN_TURNS = 20;
const MAX_SHOWN_SPEAKERS = 20;
const MAX_LINE_UNITS = 400;

interface Turn {
  readonly index: number;
  readonly text: string;
}

interface Speaker {
  readonly name: string;
  readonly turns: number;
}

/** Prints how the file is read. Rejects with a CliError if it cannot be read or is not UTF-8. */
export async function showTranscript(command: Command, path: string, format: TranscriptFormat | null): Promise<void> {
  const explanation = runToEnd(explainSlices(await readBody(path), format));
  const { form, shape } = explanation.parsed;
  const turns = turnsOf(explanation.parsed);
  const speakers = speakersOf(turns);
  const { evidence, runnerUp } = explanation;
  const document = { form, isFormatSupported: form !== null, shape, evidence, runnerUp, turnCount: turns.length };
  print(command, { ...document, speakers, turns }, report(explanation, turns, speakers));
}

/** The file as text. Throws CliError if it cannot be read or is not UTF-8. */
async function readBody(path: string): Promise<string> {
  const bytes = path === '-' ? await buffer(process.stdin) : readFileOrThrow(path);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CliError(
      `${path}: it is not UTF-8, in which the store sends transcripts; convert it, for example with iconv`,
    );
  }
}

function readFileOrThrow(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const reason = systemCode(error) ?? 'unknown';
    throw new CliError(`${path}: it cannot be read (${reason}); give the path of a file, or - for standard input`);
  }
}

function turnsOf({ text, textStarts, turnCount }: ParsedTranscript): Turn[] {
  return Array.from({ length: turnCount }, (_, index) => {
    return { index, text: text.slice(textStarts.at(index), textStarts.at(index + 1) - 1) };
  });
}

/** Who speaks in how many turns, the most talkative first. Turns of nobody are not counted. */
function speakersOf(turns: readonly Turn[]): Speaker[] {
  const counts = new Map<string, number>();
  for (const { text } of turns) {
    const name = speakerOf(text);
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => ({ name, turns: count })).toSorted((a, b) => b.turns - a.turns);
}

/** The speaker that the text of a turn begins with. */
function speakerOf(text: string): string | null {
  const [line = ''] = text.slice(0, MAX_LINE_UNITS).split('\n', 1);
  const head = new LineHead({ text: line, timeText: asciiDigits(line) });
  head.read(0, line.length);
  return head.nameEnds === 'colon' ? head.name : null;
}

function report(explanation: Explanation, turns: readonly Turn[], speakers: readonly Speaker[]): string {
  const { form, body } = explanation.parsed;
  const counts = `${countText(turns.length, 'turn')} of ${countText(speakers.length, 'speaker')}, ${countText(body.length, 'character')}`;
  const why = reasons(explanation).map((line) => `${line}\n`);
  const sections = [
    `Form: ${body.trim() === '' ? 'none: it is empty' : (form ?? noForm(body))}\n${why.join('')}${counts}`,
  ];
  if (speakers.length > 0) {
    const rows = speakers.slice(0, MAX_SHOWN_SPEAKERS).map(({ name, turns: count }) => [shortened(name), count]);
    sections.push(columns([['SPEAKER', 'TURNS'], ...rows]) + more(speakers.length - MAX_SHOWN_SPEAKERS));
  }
  if (turns.length > 0) {
    const rows = turns.slice(0, MAX_SHOWN_TURNS).map(({ index, text }) => [index, shortened(text)]);
    sections.push(columns([['TURN', 'TEXT'], ...rows]) + more(turns.length - MAX_SHOWN_TURNS));
  }
  return sections.join('\n\n');
}

/** The shape that won, what speaks for it, and the runner-up. */
function reasons({ parsed: { shape }, evidence, runnerUp }: Explanation): string[] {
  const lines = shape === null ? [] : [`Shape: ${shape}`];
  if (evidence !== null) lines.push(`Evidence: ${evidenceText(evidence)}`);
  if (runnerUp !== null) {
    const refusal = runnerUp.refusal === null ? '' : `; no speech: ${runnerUp.refusal}`;
    lines.push(`Runner-up: ${runnerUp.shape}, ${evidenceText(runnerUp)}${refusal}`);
  }
  return lines;
}

function evidenceText({ turns, names, recurring, times, backs }: Evidence): string {
  const ofNames =
    names === 0 ? 'no names' : `${countText(names, 'name')}, ${recurring} of the turns by names that recur`;
  const ofTimes =
    times === 0 ? 'no times' : `${countText(times, 'time')}, ${backs} of them earlier than the one before`;
  return `${countText(turns, 'turn')}; ${ofNames}; ${ofTimes}`;
}

/** Why a text is in no form. `[Music]` is not the beginning of JSON, so there must be a string in it. */
function noForm(body: string): string {
  const scanner = new JsonScanner(body, skipFormatCharacters(body, 0, body.length));
  let isJson = false;
  for (let token = scanner.next(); token !== null; token = scanner.next())
    isJson ||= token === 'string' || token === 'key';
  const turns = 'paragraphs are the turns';
  if (!isJson) return `none that is known; ${turns}`;
  if (scanner.isComplete) return `none: JSON without a list of utterances (docs/transcripts.md); ${turns}`;
  return `none: it begins like JSON, and is none from character ${scanner.start} of ${body.length} on; ${turns}`;
}

/** The beginning of a text on one line. */
function shortened(text: string): string {
  const points = Array.from(text.slice(0, 2 * MAX_SHOWN_POINTS).replaceAll(/\s+/g, ' '));
  const shown = points.slice(0, MAX_SHOWN_POINTS).join('');
  return points.length > MAX_SHOWN_POINTS || text.length > 2 * MAX_SHOWN_POINTS ? `${shown}…` : shown;
}

function more(count: number): string {
  return count > 0 ? `\n... and ${count} more; --json has all` : '';
}
