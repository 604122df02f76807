/** The text of a WebVTT cue: tags dropped, voices named, character references decoded. */
import { decodeHTML } from 'entities/decode';
import { contentStart, Finder, LineScanner } from './lines.ts';
import { Pace, STRIDE, type Steps } from './steps.ts';

/** What a text run may be cut before without cutting a character reference in two. */
const AMPERSAND = '&';
const VOICE_TAG = /^v(?:\.[^\t\n\f\r ]*)?[\t\n\f\r ]/;

/**
 * The words of a cue's payload (WebVTT: "cue text parsing rules"). A voice span becomes `Name: words`; one that follows
 * other words begins a line of its own, so that two voices in one cue can be told apart. A `<` that no `>` closes, or
 * that white space follows, is taken for what somebody said.
 */
export function* cueTextSteps(payload: string): Steps<string> {
  const text = yield* withLineFeeds(payload);
  const openings = new Finder(text, '<');
  const closings = new Finder(text, '>');
  const pace = new Pace();
  const pieces: string[] = [];
  let runStart = 0;
  let position = 0;
  for (;;) {
    if (pace.isDue(position)) yield;
    const opening = openings.next(position);
    const closing = closings.next(opening);
    if (closing === text.length) break;
    position = opening + 1;
    if (isSpace(text[position])) continue;
    yield* addDecoded(pieces, text, runStart, opening);
    addVoice(pieces, text, position, closing);
    position = closing + 1;
    runStart = position;
  }
  yield* addDecoded(pieces, text, runStart, text.length);
  return pieces.join('');
}

/** The payload with every line ending made one line feed. */
function* withLineFeeds(payload: string): Steps<string> {
  if (!payload.includes('\r')) return payload;
  const pace = new Pace();
  const lines = new LineScanner(payload);
  const found = [payload.slice(0, contentStart(payload))];
  while (lines.advance()) {
    if (pace.isDue(lines.start)) yield;
    found.push(payload.slice(lines.start, lines.end), '\n');
  }
  found.pop();
  return found.join('');
}

/** Adds a run of text without tags. A long run is decoded in parts that begin at an ampersand. */
function* addDecoded(pieces: string[], text: string, start: number, end: number): Steps<void> {
  if (start === end) return;
  const run = text.slice(start, end);
  if (!run.includes(AMPERSAND)) {
    pieces.push(run);
    return;
  }
  let position = 0;
  while (position < run.length) {
    const found = run.indexOf(AMPERSAND, position + STRIDE);
    const partEnd = found === -1 ? run.length : found;
    pieces.push(decodeHTML(run.slice(position, partEnd)));
    position = partEnd;
    if (position < run.length) yield;
  }
}

/** Adds `Name: ` where the tag between the two positions opens a voice span with a name; other tags add nothing. */
function addVoice(pieces: string[], text: string, start: number, end: number): void {
  if (text[start] !== 'v') return;
  const tag = text.slice(start, end);
  const opening = VOICE_TAG.exec(tag);
  if (opening === null) return;
  const name = decodeHTML(tag.slice(opening[0].length))
    .split(/[\t\n\f\r ]+/)
    .filter((word) => word !== '')
    .join(' ');
  if (name === '') return;
  trimLineEnd(pieces);
  const last = pieces.at(-1);
  if (last !== undefined && !last.endsWith('\n')) pieces.push('\n');
  pieces.push(`${name}: `);
}

/** Takes spaces and tabs off the end of what the pieces make up. */
function trimLineEnd(pieces: string[]): void {
  for (let last = pieces.pop(); last !== undefined; last = pieces.pop()) {
    let end = last.length;
    while (end > 0 && (last[end - 1] === ' ' || last[end - 1] === '\t')) end -= 1;
    if (end === 0) continue;
    pieces.push(last.slice(0, end));
    return;
  }
}

function isSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\t' || character === '\n' || character === '\f';
}
