/** Writes the turns of a conversation in each of the four upstream formats. */
import type { TranscriptFormat } from '../../src/domain/records.ts';

export interface SpokenTurn {
  readonly speaker: string | null;
  /** Lines are parted by LF. */
  readonly text: string;
}

interface RenderOptions {
  readonly lineEnding: '\n' | '\r\n' | '\r';
  /** The small freedoms that a format leaves: timestamps, identifiers, notes, voice tags, white space. */
  readonly isVerbose: boolean;
}

export function segmentText(turn: SpokenTurn): string {
  return turn.speaker === null ? turn.text : `${turn.speaker}: ${turn.text}`;
}

export function renderTranscript(
  turns: readonly SpokenTurn[],
  format: TranscriptFormat,
  options: RenderOptions = { lineEnding: '\n', isVerbose: true },
): string {
  if (format === 'utterances_json') return renderUtterances(turns, options);
  const lines = RENDERERS[format](turns, options.isVerbose);
  return lines.map((line) => line.replaceAll('\n', options.lineEnding) + options.lineEnding).join('');
}

const RENDERERS = { speaker_text: speakerLines, webvtt: webvttLines, srt: srtLines };

function speakerLines(turns: readonly SpokenTurn[], isVerbose: boolean): string[] {
  return turns.map((turn, i) => (isVerbose ? `[${clock(i)}] ` : '') + segmentText(turn));
}

function webvttLines(turns: readonly SpokenTurn[], isVerbose: boolean): string[] {
  const lines = [isVerbose ? 'WEBVTT - a call\nKind: captions\n' : 'WEBVTT\n'];
  for (const [i, turn] of turns.entries()) {
    if (isVerbose && i % 3 === 0) lines.push('NOTE said by <v Nobody> &amp; nobody\nelse\n');
    if (isVerbose) lines.push(`cue ${i}`);
    lines.push(`${clock(i)}.000 --> ${clock(i + 1)}.000${isVerbose ? ' align:start' : ''}`);
    const words = escapeCueText(turn.text);
    if (turn.speaker === null) lines.push(...(words === '' ? [] : [words]));
    else if (isVerbose) lines.push(`<v.loud ${escapeCueText(turn.speaker)}>${words}</v>`);
    else lines.push(`${escapeCueText(turn.speaker)}: ${words}`);
    lines.push('');
  }
  return lines;
}

function srtLines(turns: readonly SpokenTurn[], isVerbose: boolean): string[] {
  const lines: string[] = [];
  for (const [i, turn] of turns.entries()) {
    if (isVerbose) lines.push(String(i + 1));
    const text = segmentText(turn);
    lines.push(`${clock(i)},000 --> ${clock(i + 1)},000`, ...(text === '' ? [] : [text]), '');
  }
  return lines;
}

function renderUtterances(turns: readonly SpokenTurn[], options: RenderOptions): string {
  const values = turns.map((turn, i) => ({ speaker: turn.speaker, startMs: i * 1000, text: turn.text }));
  if (!options.isVerbose) return JSON.stringify(values);
  const indented = JSON.stringify(
    values.map((value) => ({ ...value, words: [{ at: [1, 2], of: '}],["\\' }] })),
    null,
    1,
  );
  return indented.replaceAll('\n', options.lineEnding) + options.lineEnding;
}

function escapeCueText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function clock(second: number): string {
  const parts = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
}
