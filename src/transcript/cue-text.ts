/** The text of a WebVTT cue: tags dropped, voices named, character references decoded. */
import { decodeHTML } from 'entities/decode';
import { Finder } from './lines.ts';
import { Pace, STRIDE, type Steps } from './steps.ts';

const VOICE_TAG = /^v(?:\.[^\t\n\f\r ]*)?[\t\n\f\r ]/;
const WHITE_SPACE = /[\t\n\f\r ]+/;

/**
 * The words of a cue's payload (WebVTT: "cue text parsing rules"), with every line ending made one line feed. A voice
 * span becomes `Name: words`; one that follows other words begins a line of its own, so that two voices in one cue can be
 * told apart. A `<` that no `>` closes, or that white space follows, is taken for what somebody said.
 */
export function* cueTextSteps(payload: string): Steps<string> {
  const openings = new Finder(payload, '<');
  const closings = new Finder(payload, '>');
  const pace = new Pace();
  const pieces: string[] = [];
  let runStart = 0;
  let position = 0;
  for (;;) {
    if (pace.isDue(position)) yield;
    const opening = openings.next(position);
    const closing = closings.next(opening);
    if (closing === payload.length) break;
    position = opening + 1;
    if (WHITE_SPACE.test(payload.charAt(position))) continue;
    yield* addDecoded(pieces, payload.slice(runStart, opening));
    addVoice(pieces, payload, position, closing);
    position = closing + 1;
    runStart = position;
  }
  yield* addDecoded(pieces, payload.slice(runStart));
  return pieces.join('');
}

/** Adds a run of text without tags. A long run is decoded in parts, which cut no reference and no CR LF in two. */
function* addDecoded(pieces: string[], run: string): Steps<void> {
  const encoded = /[&\r]/g;
  for (let start = 0; start < run.length;) {
    encoded.lastIndex = start;
    const isPlain = !encoded.test(run);
    encoded.lastIndex = start + STRIDE;
    const end = isPlain ? run.length : (encoded.exec(run)?.index ?? run.length);
    const part = run.slice(start, end);
    pieces.push(isPlain ? part : decodeHTML(part.replaceAll(/\r\n?/g, '\n')));
    start = end;
    if (start < run.length) yield;
  }
}

/** Adds `Name: ` if the tag between the two positions opens a voice span with a name; other tags add nothing. */
function addVoice(pieces: string[], text: string, start: number, end: number): void {
  if (text[start] !== 'v') return;
  const tag = text.slice(start, end);
  const opening = VOICE_TAG.exec(tag);
  if (opening === null) return;
  const words = decodeHTML(tag.slice(opening[0].length)).split(WHITE_SPACE);
  const name = words.filter((word) => word !== '').join(' ');
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
