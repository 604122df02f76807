/**
 * JSON of the common vendors: a list of objects that each hold words and a speaker or a time. The list is the body itself,
 * or stands somewhere in an object under a name such as `utterances`.
 */
import { JsonScanner, type Token } from './json-scanner.ts';
import { Finder, skipFormatCharacters } from './lines.ts';
import { Pace, type Slices } from './slices.ts';
import { readParagraphs } from './paragraphs.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';

/** The name of a list that is the whole body, and of what is no member. */
const ROOT = '';
const NO_KEY = '[]';
/**
 * Names of lists, those that are most surely the utterances first: vendors give the same words several times over, by
 * turns, sentences and words.
 */
const LISTS: readonly string[] = (
  '|utterances|transcriptUtterances|audio_segments|segments|transcript|paragraphs|turns|monologues|sentences|entries' +
  '|captions|cues|messages|transcripts|transcription|conversation|data|items|results'
).split('|');
/** So many lists are tried. */
const MAX_TRIES = 4;
/** Members in order of preference. */
const WORDS: readonly string[] = 'text|transcript|body|content|spokenText|sentence|utterance'.split('|');
const SPEAKERS: readonly string[] =
  'speaker_name|speakerName|speaker|participant|user|name|speakerId|speaker_id|speaker_label'.split('|');
const NAMES: readonly string[] = 'name|display_name|displayName|id'.split('|');
/** `topic`, `tokens` and `sentiment` are no times. */
const TIME = /^(?:start|end|begin|offset|from|to|at|ts)(?:$|_|[A-Z])|^time|[^n]time|Time/;
/**
 * Lists of parts within an utterance, which are its words if it has no others: the member of a part that holds words, and
 * what joins them.
 */
const PARTS: ReadonlyMap<string, { readonly member: string; readonly joint: string }> = new Map([
  ['sentences', { member: 'text', joint: ' ' }],
  ['words', { member: 'text', joint: ' ' }],
  ['elements', { member: 'value', joint: '' }],
]);
/** So many of them are written at once. */
const MAX_PARTS = 1024;
/** A string of such characters only is what stands between its quotes, as it is. */
const PLAIN = /^[^\\\p{Cc}]*$/u;
/** So much of a string is decoded at once. */
const MAX_DECODED_UNITS = 32_768;

/** The utterances of a JSON text; null if it is none. JSON without utterances is in no form, whatever its lines look like. */
export function* readJson(text: string): Slices<ParsedTranscript | null> {
  const start = skipFormatCharacters(text, 0, text.length);
  const outline = yield* outlineOf(text, start);
  if (outline === null) return null;
  let empty: ParsedTranscript | null = null;
  for (const list of outline.lists.slice(0, MAX_TRIES)) {
    const parsed = yield* new UtteranceReader(text, start, list).read();
    if (parsed !== null && parsed.turnCount > 0) return parsed;
    empty ??= parsed;
  }
  // Without utterances, some vendors give all words as one text.
  return empty === null || outline.hasWords ? yield* readParagraphs(text) : empty;
}

interface Outline {
  /** The names of the lists in the text, the likeliest first. */
  readonly lists: readonly string[];
  /** Whether any member is one that may hold words, and does. */
  readonly hasWords: boolean;
}

/** Null if it is no array and no object of JSON. */
function* outlineOf(text: string, start: number): Slices<Outline | null> {
  const scanner = new JsonScanner(text, start);
  const pace = new Pace();
  const found = new Set<string>();
  let key = ROOT;
  let hasWords = false;
  for (let token = scanner.next(); token !== null; token = scanner.next()) {
    if (token === 'later' || pace.isDue(scanner.start)) yield;
    if (token === 'later') continue;
    if (scanner.depth === 0 && token !== 'close') return null;
    if (token === 'string' && WORDS.includes(key)) hasWords ||= scanner.end - scanner.start > '""'.length;
    if (token === 'open' && text[scanner.start] === '[' && LISTS.includes(key)) found.add(key);
    key = token === 'key' ? scanner.key : NO_KEY;
  }
  return scanner.isComplete ? { lists: LISTS.filter((list) => found.has(list)), hasWords } : null;
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** What an utterance has been found to hold so far. Ranks are places in the lists above; lower ones win. */
class Utterance {
  readonly start: number;
  words: Range | null = null;
  /** Whether a member for words says that there are none. */
  isWordless = false;
  speaker: Range | null = null;
  readonly parts: Range[] = [];
  joint = '';
  /** Whether it has a speaker or a time, or says that it has none. */
  isSpeech = false;
  #wordsRank = Infinity;
  #speakerRank = Infinity;

  constructor(start: number) {
    this.start = start;
  }

  /** A member whose value is a string or a scalar. `isNull`: the member is there, and holds nothing. */
  member(key: string, value: Range, isString: boolean, isNull: boolean): void {
    const wordsRank = WORDS.indexOf(key);
    if (wordsRank !== -1 && wordsRank < this.#wordsRank && isString) {
      this.words = value;
      this.#wordsRank = wordsRank;
    }
    if (wordsRank !== -1 && isNull) this.isWordless = true;
    if (SPEAKERS.includes(key)) this.name(key, 0, isNull ? null : value);
    if (!isNull && TIME.test(key)) this.isSpeech = true;
  }

  /** A string within a list of parts. */
  part(list: string, member: string, value: Range): void {
    const kind = PARTS.get(list);
    if (kind?.member !== member) return;
    this.parts.push(value);
    this.joint = kind.joint;
  }

  /** A name of the speaker, the given one of those that the member holds; null if it holds none. */
  name(key: string, rank: number, value: Range | null): void {
    this.isSpeech = true;
    const speakerRank = SPEAKERS.indexOf(key) + rank / NAMES.length;
    if (value === null || speakerRank >= this.#speakerRank) return;
    this.speaker = value;
    this.#speakerRank = speakerRank;
  }
}

/** Reads the utterances of all lists of one name. */
class UtteranceReader {
  readonly #text: string;
  readonly #list: string;
  readonly #scanner: JsonScanner;
  readonly #writer: TurnWriter;
  /** The depth of the list's elements; 0 outside of any. */
  #listDepth = 0;
  #utterance: Utterance | null = null;
  /** Names of the members around the position: outside of a list, of the utterance, and of what is within that. */
  #outerKey = ROOT;
  #key = '';
  #innerKey = '';

  constructor(text: string, start: number, list: string) {
    this.#text = text;
    this.#list = list;
    this.#scanner = new JsonScanner(text, start);
    this.#writer = new TurnWriter(text);
  }

  /** Null if the list holds anything but utterances. */
  *read(): Slices<ParsedTranscript | null> {
    const scanner = this.#scanner;
    const pace = new Pace();
    for (let token = scanner.next(); token !== null; token = scanner.next()) {
      if (token === 'later' || pace.isDue(scanner.start)) yield;
      if (token === 'later') continue;
      if (this.#listDepth === 0) this.#findList(token);
      else if (scanner.depth < this.#listDepth) this.#listDepth = 0;
      else if (this.#utterance === null) {
        if (token !== 'open' || this.#text[scanner.start] !== '{') return null;
        this.#utterance = new Utterance(scanner.start);
      } else if (scanner.depth > this.#listDepth) this.#addToken(this.#utterance, token);
      else if (!(yield* this.#endUtterance(this.#utterance))) return null;
    }
    return this.#writer.finish('json');
  }

  #findList(token: Token): void {
    if (token === 'open' && this.#outerKey === this.#list && this.#text[this.#scanner.start] === '[') {
      this.#listDepth = this.#scanner.depth;
    }
    this.#outerKey = token === 'key' ? this.#scanner.key : NO_KEY;
  }

  #addToken(utterance: Utterance, token: Token): void {
    const { depth, start, end } = this.#scanner;
    const level = depth - this.#listDepth;
    const isNull = token === 'scalar' && this.#text[start] === 'n';
    const value = token === 'string' ? { start: start + 1, end: end - 1 } : { start, end };
    const isEmpty = isNull || value.start === value.end;
    if (token === 'key') {
      if (level === 1) this.#key = this.#scanner.key;
      else this.#innerKey = this.#scanner.key;
    } else if (token === 'open') {
      this.#innerKey = '';
    } else if (level === 1 && token !== 'close') {
      utterance.member(this.#key, value, token === 'string', isNull);
    } else if (level === 2 && token !== 'close' && SPEAKERS.includes(this.#key)) {
      const rank = NAMES.indexOf(this.#innerKey);
      if (rank !== -1) utterance.name(this.#key, rank, isEmpty ? null : value);
    } else if (level === 3 && token === 'string' && utterance.words === null) {
      utterance.part(this.#key, this.#innerKey, value);
    }
  }

  /** Writes the utterance; false if it is none. */
  *#endUtterance(utterance: Utterance): Slices<boolean> {
    const { start, words, speaker, joint } = utterance;
    const parts = words === null ? utterance.parts : [words];
    if (!utterance.isSpeech || (parts.length === 0 && !utterance.isWordless)) return false;
    this.#writer.beginTurn(start);
    const name = speaker === null ? '' : yield* decoded(this.#text, speaker);
    if (name === null) return false;
    if (name.trim() !== '') this.#writer.add(`${name}: `);
    for (const [i, part] of parts.entries()) {
      if (i % MAX_PARTS === MAX_PARTS - 1) yield;
      const text = yield* decoded(this.#text, part);
      if (text === null) return false;
      this.#writer.add(i === 0 ? text : joint + text);
    }
    this.#utterance = null;
    return true;
  }
}

/** What stands between the quotes of a JSON string, a long one in parts; null if it is no JSON. */
function* decoded(text: string, { start, end }: Range): Slices<string | null> {
  const source = text.slice(start, end);
  if (source.length <= MAX_DECODED_UNITS) return parseString(source)?.toWellFormed() ?? null;
  const backslashes = new Finder(source, '\\');
  const parts: string[] = [];
  for (let from = 0; from < source.length;) {
    const limit = Math.min(source.length, from + MAX_DECODED_UNITS);
    let to = from;
    while (to < limit) {
      const escape = backslashes.next(to);
      to = escape < limit ? escape + (source[escape + 1] === 'u' ? 6 : 2) : limit;
    }
    const part = parseString(source.slice(from, to));
    if (part === null) return null;
    parts.push(part);
    from = to;
    yield;
  }
  return parts.join('').toWellFormed();
}

/** Escapes can make lone surrogates even in a well-formed body; `decoded` sees to those. */
function parseString(source: string): string | null {
  if (PLAIN.test(source)) return source;
  try {
    const value: unknown = JSON.parse(`"${source}"`);
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}
