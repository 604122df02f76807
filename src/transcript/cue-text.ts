/** The words of a cue: tags dropped, voices named, character references decoded. */
import { decodeHTML } from 'entities/decode';
import { Finder } from './lines.ts';
import { Pieces } from './pieces.ts';
import { STRIDE, type Slices } from './slices.ts';
import { matchEnd } from './times.ts';

/** A longer tag is no tag: nobody's name is as long, and reading it would block the event loop. */
const MAX_TAG_UNITS = 1000;
const ATTRIBUTES = String.raw`(?:[.\t\n\f\r ][^<>]{0,${MAX_TAG_UNITS}})?`;
/**
 * Tags that mark text in cues of any kind (T2: marks are not words), and those that WebVTT has besides. Other `<words>` are
 * words.
 */
const COMMON_TAG = new RegExp(String.raw`</?(?:[ibuvc]|font)${ATTRIBUTES}>`, 'iy');
const WEBVTT_TAG = new RegExp(String.raw`<(?:/?(?:[ibuvc]|font|ruby|rt|lang)${ATTRIBUTES}|\d+:[\d:.]{1,20})>`, 'iy');
const OVERRIDE = /\{\\[^{}\r\n]{0,200}\}/y;
const VOICE_TAG = new RegExp(String.raw`<v(?:\.[^\t\n\f\r ]{0,${MAX_TAG_UNITS}})?[\t\n\f\r ]`, 'iy');
const WHITE_SPACE = /[\t\n\f\r ]+/g;

/** Whether character references are decoded and all tags of WebVTT known, or only the tags that all cues share. */
export type Markup = 'webvtt' | 'common';

/** Reads the words of the cues of a body, one after another. */
export class CueText {
  readonly #text: string;
  readonly #markup: Markup;
  readonly #tags: Finder;
  readonly #overrides: Finder;

  constructor(text: string, markup: Markup) {
    this.#text = text;
    this.#markup = markup;
    this.#tags = new Finder(text, '<');
    this.#overrides = new Finder(text, '{\\');
  }

  /**
   * The words of the payload between two positions, with every line ending made one line feed. A voice span becomes
   * `Name: words`; one that follows other words begins a line of its own, so that two voices in one cue can be told apart.
   */
  *read(start: number, end: number): Slices<string> {
    const text = this.#text;
    const markup = this.#markup;
    const tag = markup === 'webvtt' ? WEBVTT_TAG : COMMON_TAG;
    const pieces = new Pieces();
    let runStart = start;
    let position = start;
    for (let due = start + STRIDE; ;) {
      if (position >= due) {
        due = position + STRIDE;
        yield;
      }
      const mark = Math.min(this.#tags.next(position), this.#overrides.next(position));
      if (mark >= end) break;
      const isTag = text[mark] === '<';
      const tagEnd = matchEnd(isTag ? tag : OVERRIDE, text, mark, end);
      position = tagEnd ?? mark + 1;
      if (tagEnd === null) continue;
      if (mark - runStart > STRIDE) yield* addLong(pieces, text.slice(runStart, mark), markup);
      else if (runStart < mark) pieces.add(decode(text.slice(runStart, mark), markup));
      const name = isTag ? voiceOf(text, mark, tagEnd, markup) : '';
      if (name !== '') {
        pieces.endLine();
        pieces.add(`${name}: `);
      }
      runStart = tagEnd;
    }
    if (end - runStart > STRIDE) yield* addLong(pieces, text.slice(runStart, end), markup);
    else pieces.add(decode(text.slice(runStart, end), markup));
    return pieces.toString();
  }
}

/** Adds a run of text without tags, decoded in parts, which cut no reference and no CR LF in two. */
function* addLong(pieces: Pieces, run: string, markup: Markup): Slices<void> {
  const encoded = markup === 'webvtt' ? /[&\r]/g : /\r/g;
  for (let start = 0; start < run.length;) {
    encoded.lastIndex = start + STRIDE;
    const end = encoded.exec(run)?.index ?? run.length;
    pieces.add(decode(run.slice(start, end), markup));
    start = end;
    if (start < run.length) yield;
  }
}

function decode(text: string, markup: Markup): string {
  const lines = text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text;
  return markup === 'webvtt' && lines.includes('&') ? decodeHTML(lines) : lines;
}

/** The name in a tag that opens a voice span; empty if it has none. */
function voiceOf(payload: string, start: number, end: number, markup: Markup): string {
  const nameStart = matchEnd(VOICE_TAG, payload, start, end - 1);
  if (nameStart === null) return '';
  return decode(payload.slice(nameStart, end - 1), markup)
    .replaceAll(WHITE_SPACE, ' ')
    .trim();
}
