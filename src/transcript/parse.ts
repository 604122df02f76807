/** From an upstream body to its turns (T1, T2, T9). */
import type { TranscriptFormat } from '../domain/records.ts';
import { isBlank, LineScanner } from './lines.ts';
import { speakerTextSteps } from './speaker-text.ts';
import { Pace, type Steps } from './steps.ts';
import { srtSteps, webvttSteps } from './subtitles.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';
import { utterancesSteps } from './utterances.ts';

/** The order in which formats are tried: the one that is hardest to take for another comes first. */
const DETECTION_ORDER: readonly TranscriptFormat[] = ['utterances_json', 'webvtt', 'srt', 'speaker_text'];

type Parser = (body: string) => Steps<ParsedTranscript | null>;

const PARSERS: Readonly<Record<TranscriptFormat, Parser>> = {
  speaker_text: (body) => speakerTextSteps(body, 'strict'),
  webvtt: webvttSteps,
  srt: (body) => srtSteps(body, 'strict'),
  utterances_json: utterancesSteps,
};

/** For a body that fits no format, if the store names one that can be read with less to ask of it. */
const LENIENT_PARSERS: Readonly<Partial<Record<TranscriptFormat, Parser>>> = {
  speaker_text: (body) => speakerTextSteps(body, 'lenient'),
  srt: (body) => srtSteps(body, 'lenient'),
};

/**
 * Parses a body of any content; never throws. `declared` is what the store says; null if it doesn't know. The declared
 * format is tried first, then the others, then the declared one with less to ask of the body. In steps, for `runSteps`,
 * because 2 MB take some tens of milliseconds.
 */
export function* parseSteps(body: string, declared: TranscriptFormat | null): Steps<ParsedTranscript> {
  const wellFormed = body.toWellFormed();
  // Nothing was said, which any format can say.
  if (isBlank(wellFormed, 0, wellFormed.length)) return new TurnWriter(wellFormed).finish(declared ?? 'speaker_text');
  const others = DETECTION_ORDER.filter((format) => format !== declared);
  for (const format of declared === null ? others : [declared, ...others]) {
    const parsed = yield* PARSERS[format](wellFormed);
    if (parsed !== null) return parsed;
  }
  const lenient = declared === null ? undefined : LENIENT_PARSERS[declared];
  const parsed = lenient === undefined ? null : yield* lenient(wellFormed);
  if (parsed !== null) return parsed;
  // In none of the formats: paragraphs are the turns if blank lines part at least two, otherwise the lines are (T9).
  const paragraphs = yield* plainSteps(wellFormed, 'paragraphs');
  return paragraphs.turnCount > 1 ? paragraphs : yield* plainSteps(wellFormed, 'lines');
}

function* plainSteps(body: string, turns: 'paragraphs' | 'lines'): Steps<ParsedTranscript> {
  const lines = new LineScanner(body);
  const writer = new TurnWriter(body);
  const pace = new Pace();
  let isFirstLine = true;
  while (lines.advance()) {
    if (pace.isDue(lines.start)) yield;
    if (isBlank(body, lines.start, lines.end)) {
      isFirstLine = true;
      continue;
    }
    if (isFirstLine || turns === 'lines') writer.beginTurn(lines.start);
    writer.addLine(lines.start, lines.end);
    isFirstLine = false;
  }
  return writer.finish(null);
}
