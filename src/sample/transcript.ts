/** The transcript of a call: what is said, turn by turn, and how recorders write it down. */
import type { TranscriptRecord } from '../domain/records.ts';
import { type Call, createFacts } from './call.ts';
import type { Random } from './random.ts';
import { DIALOGUE, fill } from './vocabulary.ts';

/** The interface allows no more, and the one huge transcript comes close to it. */
const HUGE_BODY_BYTES = 2_000_000;

/** The same record for the same call. */
export function createTranscript(call: Call): TranscriptRecord {
  const { written, declared, crlf } = call.transcript;
  const body = writeBody(call);
  // The line ends inside JSON are white space between values: a recorder that writes CR LF leaves them alone.
  const hasCrlf = crlf && written !== 'utterances_json';
  return {
    evaluationId: call.id,
    workspaceId: call.workspace.id,
    format: declared,
    body: hasCrlf ? body.replaceAll('\n', '\r\n') : body,
  };
}

function writeBody(call: Call): string {
  const { written } = call.transcript;
  const random = call.random('transcript');
  if (written === 'empty') return '';
  if (written === 'minutes') return fill(MINUTES, createFacts(call).facts);
  if (written === 'huge') return writeHuge(() => writeSpeakerText(converse(call, random), random));
  return WRITERS[written](converse(call, random), random);
}

interface SpokenTurn {
  readonly speaker: string;
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
}

const MS_PER_CHARACTER = 62;
const PAUSE_MS = 400;

/** Makes exactly as many turns as the call's shape says, ending with a goodbye. */
function converse(call: Call, random: Random): readonly SpokenTurn[] {
  const { facts } = createFacts(call);
  const { turnCount, isOdd } = call.transcript;
  const asides = isOdd ? [...DIALOGUE.asides, ...DIALOGUE.oddAsides] : DIALOGUE.asides;
  const budget = turnCount - DIALOGUE.closing.length;
  const lines = [...DIALOGUE.opening];
  let told = 0;
  while (lines.length < budget) {
    // Every exchange comes once before any comes again.
    const exchange = DIALOGUE.exchanges[told % DIALOGUE.exchanges.length] ?? [];
    const isAside = random.chance(0.14) || lines.length + exchange.length > budget;
    lines.push(...(isAside ? [random.pick(asides)] : exchange));
    if (!isAside) told += 1;
  }
  const speakers: Readonly<Record<string, string>> = {
    S: call.seller.name,
    B: call.buyers[0].name,
    C: call.buyers[1].name,
  };
  const spoken = [...lines, ...DIALOGUE.closing].map((line) => ({
    speaker: speakers[line.charAt(0)] ?? '',
    text: fill(line.slice(2), facts),
  }));
  return timed(spoken, call.durationSeconds);
}

/** Gives every turn the time that its length takes, stretched so that the last one ends with the recording. */
function timed(
  spoken: readonly Pick<SpokenTurn, 'speaker' | 'text'>[],
  durationSeconds: number | null,
): readonly SpokenTurn[] {
  const naturalMs = spoken.reduce((sum, { text }) => sum + PAUSE_MS + text.length * MS_PER_CHARACTER, 0);
  const stretch = durationSeconds === null ? 1 : (durationSeconds * 1000) / naturalMs;
  let atMs = 0;
  return spoken.map(({ speaker, text }) => {
    const startMs = atMs;
    atMs += (PAUSE_MS + text.length * MS_PER_CHARACTER) * stretch;
    return { speaker, text, startMs: Math.round(startMs), endMs: Math.round(atMs - (PAUSE_MS / 2) * stretch) };
  });
}

type Writer = (turns: readonly SpokenTurn[], random: Random) => string;

/** One turn per line, with or without times; now and then a turn goes on in a second line that names no speaker. */
const writeSpeakerText: Writer = (turns, random) => {
  const hasTimes = random.chance(0.6);
  return turns
    .map(({ speaker, text, startMs }) => {
      const words = random.chance(0.05) ? text.replace(/([.?]) (?=[A-Z])/, '$1\n') : text;
      return `${hasTimes ? `[${clock(startMs)}] ` : ''}${speaker}: ${words}\n`;
    })
    .join('');
};

const WRITERS = {
  speaker_text: writeSpeakerText,
  /** WebVTT (W3C): voice tags or plain prefixes, with or without cue identifiers. */
  webvtt: (turns, random) => {
    const hasVoiceTags = random.chance(0.7);
    const hasIdentifiers = random.chance(0.5);
    const cues = turns.map(({ speaker, text, startMs, endMs }, index) => {
      const identifier = hasIdentifiers ? `${index + 1}\n` : '';
      const [name, words] = [escapeVtt(speaker), escapeVtt(text)];
      const payload = hasVoiceTags ? `<v ${name}>${words}` : `${name}: ${words}`;
      return `${identifier}${clock(startMs, '.')} --> ${clock(endMs, '.')}\n${payload}\n`;
    });
    return `WEBVTT\n\n${cues.join('\n')}`;
  },
  /** SubRip: numbered cues with a comma before the milliseconds. */
  srt: (turns) =>
    turns
      .map(({ speaker, text, startMs, endMs }, index) => {
        return `${index + 1}\n${clock(startMs, ',')} --> ${clock(endMs, ',')}\n${speaker}: ${text}\n`;
      })
      .join('\n'),
  /** A JSON array of utterances; the recorder doesn't always know who spoke. */
  utterances_json: (turns, random) => {
    const utterances = turns.map(({ speaker, startMs, text }) => ({
      speaker: random.chance(0.03) ? null : speaker,
      startMs,
      text,
    }));
    return random.chance(0.5) ? JSON.stringify(utterances) : JSON.stringify(utterances, null, 2);
  },
} as const satisfies Readonly<Record<string, Writer>>;

/** Free prose, as people type it after a call without a recording: none of the supported formats. */
const MINUTES = `Minutes of the call with {account}, typed up from memory as the recording failed.

We spoke with {buyer} and {colleague} for about forty minutes. The main point is that {pain}. They get by with {tool} for now and put the damage at {cost} thousand a month.

We talked about {seats} {unit} at {price} a month each, {discount} percent off for prepayment, so {net} a year. They have {budget} in the plan.

Agreed next steps
- working session on {weekday} at {time} about {system}
- {buyer} sends the figures of last quarter`;

/** Sessions one after the other, cut at the last whole line within the size. */
function writeHuge(writeSession: () => string): string {
  const sessions: string[] = [];
  let bytes = 0;
  while (bytes < HUGE_BODY_BYTES) {
    const session = writeSession();
    sessions.push(session);
    bytes += Buffer.byteLength(session);
  }
  const body = Buffer.from(sessions.join('')).subarray(0, HUGE_BODY_BYTES);
  return body.subarray(0, body.lastIndexOf('\n') + 1).toString();
}

/** `hh:mm:ss`, with milliseconds behind the separator if there is one. */
function clock(ms: number, separator?: '.' | ','): string {
  // No call lasts a day.
  const time = new Date(ms).toISOString().slice(11, -1);
  return separator === undefined ? time.slice(0, 8) : time.replace('.', separator);
}

/** Escapes the characters that a cue's text can't hold as they are. */
function escapeVtt(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
