/** Writes the turns of a conversation in each of the forms. */
import type { TranscriptFormat } from '../../src/domain/vocabulary.ts';
import type { FormName } from '../../src/transcript/turn-writer.ts';

export interface SpokenTurn {
  readonly speaker: string | null;
  /** Lines are parted by LF. */
  readonly text: string;
}

interface RenderOptions {
  readonly lineEnding: '\n' | '\r\n' | '\r';
  /** The small freedoms that a form leaves: timestamps, identifiers, notes, voice tags, white space. */
  readonly isVerbose: boolean;
}

/** Names and times above the words are spoken lines of another shape. */
export type RenderedForm = Exclude<FormName, 'columns'> | 'headed turns';

/** The store's name for a form; null if it has none. */
export const DECLARED: Readonly<Record<RenderedForm, TranscriptFormat | null>> = {
  json: 'utterances_json',
  webvtt: 'webvtt',
  subrip: 'srt',
  sbv: null,
  'headed turns': 'speaker_text',
  'spoken lines': 'speaker_text',
};

/** The form that the demo store's formats are rendered in. */
export const FORM_OF: Readonly<Record<TranscriptFormat, RenderedForm>> = {
  speaker_text: 'spoken lines',
  webvtt: 'webvtt',
  srt: 'subrip',
  utterances_json: 'json',
};

export function segmentText(turn: SpokenTurn): string {
  return turn.speaker === null ? turn.text : `${turn.speaker}: ${turn.text}`;
}

export function renderTranscript(
  turns: readonly SpokenTurn[],
  format: TranscriptFormat | RenderedForm,
  options: RenderOptions = { lineEnding: '\n', isVerbose: true },
): string {
  const form = isFormat(format) ? FORM_OF[format] : format;
  if (form === 'json') return renderUtterances(turns, options);
  const lines = RENDERERS[form](turns, options.isVerbose);
  return lines.map((line) => line.replaceAll('\n', options.lineEnding) + options.lineEnding).join('');
}

function isFormat(format: TranscriptFormat | RenderedForm): format is TranscriptFormat {
  return Object.hasOwn(FORM_OF, format);
}

const RENDERERS = {
  'spoken lines': spokenLines,
  'headed turns': headedLines,
  webvtt: webvttLines,
  subrip: subripLines,
  sbv: sbvLines,
};

function spokenLines(turns: readonly SpokenTurn[], isVerbose: boolean): string[] {
  return turns.map((turn, i) => (isVerbose ? `[${clock(i)}] ` : '') + segmentText(turn));
}

function headedLines(turns: readonly SpokenTurn[], isVerbose: boolean): string[] {
  return turns.flatMap((turn, i) => {
    const header = isVerbose ? `${turn.speaker ?? ''}  ${clock(i)}` : `${turn.speaker ?? ''} (${clock(i)}):`;
    return [header, turn.text, ...(isVerbose ? [''] : [])];
  });
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

function subripLines(turns: readonly SpokenTurn[], isVerbose: boolean): string[] {
  return turns.flatMap((turn, i) => {
    const text = segmentText(turn);
    const counter = isVerbose ? [String(i + 1)] : [];
    return [...counter, `${clock(i)},000 --> ${clock(i + 1)},000`, ...(text === '' ? [] : [text]), ''];
  });
}

function sbvLines(turns: readonly SpokenTurn[]): string[] {
  return turns.flatMap((turn, i) => {
    const text = segmentText(turn);
    return [`${clock(i)}.000,${clock(i + 1)}.000`, ...(text === '' ? [] : [text]), ''];
  });
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
