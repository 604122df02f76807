/** Spoken lines: `Name: words`, with a time before the name or not; other lines go on with the turn above them. */
import { type Body, type Form, Measure, type Reading } from './form.ts';
import { Lines } from './lines.ts';
import type { Slices } from './slices.ts';
import { SpeakerCounts, type SpokenLine, spokenLine } from './speakers.ts';
import { isOnlyTime } from './times.ts';
import { TurnWriter } from './turn-writer.ts';

/** What stands before a colon in mails, notes and headers, and is nobody's name (T11: a key of prose is no speaker). */
const KEYS: ReadonlySet<string> = new Set(
  `from|to|cc|bcc|subject|date|sent|reply-to|message-id|mime-version|content-type|re|fwd|fw
von|betreff|datum|gesendet|objet|envoyé|asunto|para|fecha|enviado
title|meeting|topic|agenda|attendees|participants|present|absent|location|place|where|when
time|start|end|start time|end time|duration|length|language|kind|description|keywords|tags
recorded|recording|recorded on|recorded by|transcript|transcription|transcribed by|source
url|link|file|filename|id|call id|meeting id|passcode
note|notes|nb|n.b.|ps|p.s.|todo|to do|summary|action items|next steps|outcome
titel|thema|teilnehmer|ort|zeit|dauer|sprache|notiz|hinweis|titre|durée|título`.split(/[|\n]/),
);
/** The first line that opens a block of front matter, and the one that closes it. */
const FRONT_MATTER = /^(?:---|\+\+\+)[ \t]*$/;

export const spokenLines: Form = {
  name: 'spoken lines',
  *read({ text, lineCount, declared }: Body): Slices<Reading | null> {
    const speakers = yield* findSpeakers(text);
    const { speechStart, hasPreamble } = yield* findSpeech(text, speakers);
    const measure = new Measure();
    const writer = new TurnWriter(text);
    const lines = new Lines(text);
    while (lines.advance()) {
      const { start, end } = lines;
      if (lines.isDue) yield;
      if (lines.isBlank) {
        measure.blank();
        writer.blank(start, end);
        continue;
      }
      const line = start < speechStart ? null : spokenLine(text, start, end);
      if (line !== null) {
        // A key among speakers begins a turn like their lines do, but is no evidence of a conversation.
        if (isKey(nameOf(text, line))) measure.words();
        else measure.turn(false);
        writer.beginTurn(start);
        writer.words(line.nameStart, line.nameEnd);
        writer.addRange(line.colon, line.colon + 1);
        writer.addRange(line.wordsStart, end);
      } else if (isOnlyTime(text, start, end)) {
        measure.mark();
      } else {
        measure.words();
        writer.words(start, end);
      }
    }
    // In a call speakers speak again; the colons of a manual or of minutes follow ever new words.
    const isRecurrent = speakers.repeats * 2 > speakers.once;
    if (!isRecurrent && hasPreamble && measure.turns * 2 <= lineCount) return null;
    // In doubt the store's word counts, and so does it that speakers recur.
    const distant = declared === 'speaker_text' || (isRecurrent ? undefined : false);
    return { transcript: writer.finish('spoken lines'), explained: measure.explained(distant) };
  },
};

function isKey(name: string): boolean {
  return KEYS.has(name.toLowerCase());
}

function nameOf(text: string, { nameStart, nameEnd }: SpokenLine): string {
  return text.slice(nameStart, nameEnd).trim();
}

function* findSpeakers(text: string): Slices<SpeakerCounts> {
  const speakers = new SpeakerCounts();
  const lines = new Lines(text);
  while (lines.advance()) {
    if (lines.isDue) yield;
    const line = spokenLine(text, lines.start, lines.end);
    const name = line === null ? '' : nameOf(text, line);
    if (line !== null && !isKey(name)) speakers.add(name);
  }
  return speakers;
}

/**
 * Where the first turn begins: at the first line with a speaker that is neither within front matter, nor a key such as
 * `Title`, nor in a paragraph of `Key: value` lines above a conversation of others.
 */
function* findSpeech(text: string, speakers: SpeakerCounts): Slices<{ speechStart: number; hasPreamble: boolean }> {
  const lines = new Lines(text);
  let [isInFrontMatter, hasPreamble, isFirstLine] = [false, false, true];
  /** The first speaker of a paragraph that consists of speakers who are named nowhere else, and how many there are. */
  let [start, keys] = [-1, 0];
  while (lines.advance()) {
    if (lines.isDue) yield;
    const { isBlank } = lines;
    if (isBlank && start !== -1) {
      if (!isHeader(keys, speakers)) break;
      [start, keys, hasPreamble] = [-1, 0, true];
    }
    if (isBlank) continue;
    const isFence = lines.end - lines.start < MAX_FENCE_UNITS && FRONT_MATTER.test(text.slice(lines.start, lines.end));
    if (isFence && (isFirstLine || isInFrontMatter)) {
      isInFrontMatter = isFirstLine;
      hasPreamble = true;
    } else if (!isInFrontMatter) {
      const line = spokenLine(text, lines.start, lines.end);
      const name = line === null ? null : nameOf(text, line);
      const isSpeaker = name !== null && !isKey(name);
      if (isSpeaker && start === -1) start = lines.start;
      if (start === -1) hasPreamble ||= !isOnlyTime(text, lines.start, lines.end);
      else if (!isSpeaker || speakers.of(name) > 1) break;
      keys += 1;
    }
    isFirstLine = false;
  }
  return { speechStart: start === -1 ? text.length : start, hasPreamble };
}

const MAX_FENCE_UNITS = 20;

/** Whether a paragraph of so many names that occur once is a header: all other speakers speak repeatedly. */
function isHeader(keys: number, speakers: SpeakerCounts): boolean {
  return keys > 1 && speakers.repeats > 1 && speakers.once === keys;
}
