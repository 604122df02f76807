/** Writes the turns of a call down in each of the forms that recorders use. */
import type { DealFigures } from './facts.ts';
import type { SpokenTurn } from './conversation.ts';
import type { Random } from './random.ts';
import { fill } from './vocabulary/grammar.ts';
import type { Facts } from './vocabulary/grammar.ts';

export type TurnWriter = (turns: readonly SpokenTurn[], random: Random) => string;

/** One turn a line, with or without times; now and then a turn goes on in a second line that names no speaker. */
export const writeSpeakerText: TurnWriter = (turns, random) => {
  const hasTimes = random.chance(0.6);
  return turns
    .map(({ speaker, text, startMs }) => {
      const words = random.chance(0.05) ? text.replace(/([.?]) (?=[A-Z])/, '$1\n') : text;
      return `${hasTimes ? `[${clock(startMs)}] ` : ''}${speaker}: ${words}\n`;
    })
    .join('');
};

/** WebVTT (W3C): voice tags or plain prefixes, with or without cue identifiers, settings and notes. */
export const writeWebVtt: TurnWriter = (turns, random) => {
  const hasVoiceTags = random.chance(0.7);
  const hasIdentifiers = random.chance(0.5);
  const cues = turns.map(({ speaker, text, startMs, endMs }, index) => {
    const settings = random.chance(0.03) ? ' align:start position:10%' : '';
    const note = random.chance(0.01) ? 'NOTE The recorder lost the connection here and found it again.\n\n' : '';
    const words = escapeVtt(random.chance(0.02) ? text.replace(/^(\w+)/, '<i>$1</i>') : text);
    const payload = hasVoiceTags ? `<v ${escapeVtt(speaker)}>${words}` : `${escapeVtt(speaker)}: ${words}`;
    const times = `${clock(startMs)}${millis('.', startMs)} --> ${clock(endMs)}${millis('.', endMs)}${settings}`;
    return `${note}${hasIdentifiers ? `${index + 1}\n` : ''}${times}\n${payload}\n`;
  });
  return `WEBVTT${random.chance(0.3) ? ' - Recorded call' : ''}\n\n${cues.join('\n')}`;
};

/** SubRip: numbered cues with a comma before the milliseconds. */
export const writeSrt: TurnWriter = (turns) =>
  turns
    .map(({ speaker, text, startMs, endMs }, index) => {
      const times = `${clock(startMs)}${millis(',', startMs)} --> ${clock(endMs)}${millis(',', endMs)}`;
      return `${index + 1}\n${times}\n${speaker}: ${text}\n`;
    })
    .join('\n');

/** A JSON array of utterances; the recorder doesn't always know who spoke. */
export const writeUtterances: TurnWriter = (turns, random) => {
  const utterances = turns.map(({ speaker, startMs, text }) => ({
    speaker: random.chance(0.03) ? null : speaker,
    startMs,
    text,
  }));
  return random.chance(0.5) ? JSON.stringify(utterances) : JSON.stringify(utterances, null, 2);
};

/** Free prose, as people type it after a call without a recording: none of the supported formats. */
export function writeMinutes(facts: Facts, deal: DealFigures, random: Random): string {
  const paragraphs = [
    'Minutes of the call with {account}, typed up from memory as the recording failed.',
    'We spoke with {buyer} and {colleague} for about {25-55} minutes. The main point is that {pain}. They get by with {tool} for now and put the damage at {cost_low} to {cost_high} thousand a month.',
    '{buyer} liked {module} best. {colleague} asked about the audit log and whether data can be taken out again, which it can.',
    '{rival} is also in the running, somewhat cheaper on the licence. I offered a comparison of the whole first year.',
    `We talked about {seats} {unit} at {price} a month each, ${deal.discountPercent} percent off for prepayment, so {net} a year. They have {budget} in the plan.`,
    'Agreed next steps\n- working session on {weekday} at {time} about {system}\n- security pack and comparison to both of them today\n- {buyer} sends the figures of last quarter',
    'My feeling is that it happens if we are live by {month}, and not otherwise.',
  ];
  return paragraphs
    .filter((_, index) => index < 2 || random.chance(0.85))
    .map((paragraph) => fill(paragraph, facts, random))
    .join('\n\n');
}

/** `hh:mm:ss`. */
function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

function millis(separator: string, ms: number): string {
  return separator + String(ms % 1000).padStart(3, '0');
}

/** The three characters that a cue's text can't hold as they are; tags written by us stay. */
function escapeVtt(text: string): string {
  return text.replaceAll('&', '&amp;').replace(/<(?!\/?i>)/g, '&lt;');
}
