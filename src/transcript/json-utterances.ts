/**
 * JSON: a list of objects that hold words and a speaker or a time. If there are several, the richest is the transcript:
 * vendors give the same words several times over, by turns, sentences and words, and translated.
 */
import { JsonElements } from './json-elements.ts';
import { JSON_LINES, type JsonList, JsonLists } from './json-lists.ts';
import { skipFormatCharacters } from './lines.ts';
import { readParagraphs } from './paragraphs.ts';
import { Pace, type Slices } from './slices.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';
import { ALTERNATIVES, plainKey, type Utterance } from './utterance.ts';

/** So many elements of a list are looked at before one is chosen, and so much of all lists. */
const MAX_SAMPLES = 24;
const MAX_SAMPLED_UNITS = 1_500_000;
/** An object this large, in UTF-16 units, is no utterance; and JSON.parse cannot be interrupted. */
const MAX_ELEMENT_UNITS = 500_000;
/** A list that has at least so much of the words of the largest may hold all of them, in fewer characters. */
const SAME_WORDS = 0.4;
const WORD_LISTS: ReadonlySet<string> = new Set(['words', 'tokens', 'items', 'wordsegments', 'wordtimings']);

/** A list that may be the transcript, by its first elements. */
interface Candidate {
  readonly list: JsonList;
  readonly isTranscript: boolean;
  readonly hasSpeakers: boolean;
  /** Whether its elements are single words. */
  readonly isOfWords: boolean;
  /** The text between two words of it. */
  readonly joint: '' | ' ';
  /** UTF-16 units of words in all of it, about. */
  readonly words: number;
  /** Whether some of its elements say that they are transcript, so that others are not. */
  readonly isTyped: boolean;
}

/** The utterances of a JSON text; null if it is none. JSON without utterances is in no form, whatever its lines look like. */
export function* readJson(text: string): Slices<ParsedTranscript | null> {
  const start = skipFormatCharacters(text, 0, text.length);
  if (!'[{'.includes(text.trimStart().charAt(0) || '-')) return null;
  const lists = new JsonLists(text, start);
  if (!(yield* lists.walk())) return null;
  const candidates: Candidate[] = [];
  let sampled = 0;
  for (const list of [...lists.lists.values()].toSorted((a, b) => b.units - a.units)) {
    if (sampled > MAX_SAMPLED_UNITS) break;
    const samples = samplesOf(text, list);
    sampled += samples.reduce((units, { length }) => units + length, 0);
    const candidate = candidateOf(list, samples);
    if (candidate !== null) candidates.push(candidate);
    yield;
  }
  const chosen = choose(candidates.filter(({ isTranscript }) => isTranscript));
  if (chosen !== null) {
    const labels = chosen.hasSpeakers ? null : candidates.find(isOfLabels)?.list;
    return (yield* new UtteranceReader(text, chosen).read(labels ?? null)) ?? (yield* readParagraphs(text));
  }
  const all = [...lists.lists.values()];
  const isEmpty =
    !lists.hasWords && all.every(({ path, starts, others }) => path === JSON_LINES || starts.length + others === 0);
  const isSilent = isEmpty && all.some(({ key, path }) => path === '' || LISTS.has(plainKey(key)));
  return isSilent ? new TurnWriter(text).finish('json', null) : yield* readParagraphs(text);
}

/** The first elements of a list, those that are too large left out. */
function samplesOf(text: string, { starts, ends }: JsonList): string[] {
  const length = Math.min(MAX_SAMPLES, starts.length);
  const samples = Array.from({ length }, (_, i) => text.slice(starts.at(i), ends.at(i)));
  return samples.filter((sample) => sample.length <= MAX_ELEMENT_UNITS);
}

/** Null if its elements hold neither words nor speakers. */
function candidateOf(list: JsonList, samples: readonly string[]): Candidate | null {
  if ((list.path === JSON_LINES && list.starts.length < 2) || ALTERNATIVES.has(plainKey(list.key))) return null;
  const elements = samples.flatMap((sample) => new JsonElements(sample).at(0) ?? []);
  if (elements.length === 0) return null;
  const count = (isIt: (element: Utterance) => boolean): number => elements.filter(isIt).length;
  const isMost = (number: number): boolean => number * 2 >= elements.length;
  const isKnown = LISTS.has(plainKey(list.key)) || list.path === '' || list.path === JSON_LINES;
  const isSure = isKnown || elements.some(({ isTimed, speakerMember }) => isTimed || speakerMember === 'sure');
  const isWordList = WORD_LISTS.has(plainKey(list.key));
  const isOfWords = count(({ isWord, words }) => isWord || (isWordList && words !== null)) * 2 > elements.length;
  const spoken = count(({ words, isTimed, speakerMember }) => words !== null && (isTimed || speakerMember !== 'none'));
  const units = elements.reduce((sum, { words }) => sum + (words?.length ?? 0), 0);
  return {
    list,
    isTranscript: isOfWords || (isSure && isMost(spoken) && !isMost(count(({ isForeign }) => isForeign))),
    hasSpeakers: isMost(count(({ speaker }) => speaker !== '')),
    isOfWords,
    joint: elements.some(({ words }) => words !== null && SPACE_AT_END.test(words)) ? '' : ' ',
    words: (units / elements.length) * list.starts.length,
    isTyped: elements.some(({ type }) => TRANSCRIPT_TYPE.test(type)),
  };
}

/** Words that bring their own spaces. */
const SPACE_AT_END = /^\s\S|\S\s$/;
const TRANSCRIPT_TYPE = /^transcript/;
/** Names that lists of utterances have. */
const LISTS: ReadonlySet<string> = new Set(
  'utterances|transcriptutterances|audiosegments|segments|transcript|transcripts|paragraphs|turns|monologues|sentences|entries|transcriptentries|captions|cues|messages|transcription|conversation|dialogue|dialog|timeline|lines|data|items|results|recognizedphrases|phrases|chunks|tokens|words'.split(
    '|',
  ),
);

/** Who speaks when, and no words: for words that do not say who speaks. */
function isOfLabels({ hasSpeakers, words }: Candidate): boolean {
  return hasSpeakers && words === 0;
}

/** The list with speakers, of whole utterances, of most words; of two that may hold the same words the first. */
function choose(candidates: readonly Candidate[]): Candidate | null {
  const most = Math.max(0, ...candidates.map(({ words }) => words));
  const whole = candidates.filter(({ words }) => words >= most * SAME_WORDS);
  const ranked = whole.toSorted(
    (a, b) =>
      Number(b.hasSpeakers) - Number(a.hasSpeakers) ||
      Number(a.isOfWords) - Number(b.isOfWords) ||
      a.list.starts.at(0) - b.list.starts.at(0),
  );
  return ranked[0] ?? null;
}

/** Such as `results.utterances[] { speaker, words }`. */
function shapeOf({ list, hasSpeakers, isOfWords }: Candidate): string {
  return `${list.path}[] { ${hasSpeakers ? 'speaker, ' : ''}${isOfWords ? 'word' : 'words'} }`;
}

/** Writes the elements of one list as turns. */
class UtteranceReader {
  readonly #text: string;
  readonly #list: Candidate;
  readonly #writer: TurnWriter;
  /** Who speaks from when on, in order. */
  readonly #labels: Utterance[] = [];
  #label = 0;
  #speaker = '';
  #turns = 0;
  #events = 0;

  constructor(text: string, list: Candidate) {
    this.#text = text;
    this.#list = list;
    this.#writer = new TurnWriter(text);
  }

  /** Null if elements are no JSON, or most are no utterances. */
  *read(labels: JsonList | null): Slices<ParsedTranscript | null> {
    if (labels !== null && !(yield* this.#readAll(labels, (label) => this.#labels.push(label) > 0))) return null;
    if (this.#list.isOfWords && !this.#list.hasSpeakers && this.#labels.length === 0) return null;
    const isRead = yield* this.#readAll(this.#list.list, (utterance, start) => this.#add(utterance, start));
    return isRead && this.#turns > 0 && this.#turns >= this.#events
      ? this.#writer.finish('json', shapeOf(this.#list))
      : null;
  }

  /** False if an element is no JSON or too large, or `onUtterance` is. */
  *#readAll(
    { starts, ends }: JsonList,
    onUtterance: (utterance: Utterance, start: number) => boolean,
  ): Slices<boolean> {
    const pace = new Pace();
    const elements = new JsonElements(this.#text);
    for (let i = 0; i < starts.length; i += 1) {
      const [start, end] = [starts.at(i), ends.at(i)];
      if (pace.isDue(end)) yield;
      const utterance = end - start > MAX_ELEMENT_UNITS ? null : elements.at(start);
      if (utterance === null || !onUtterance(utterance, start)) return false;
    }
    return true;
  }

  #add(utterance: Utterance, start: number): boolean {
    const { isOfWords, isTyped } = this.#list;
    const { words, type, speakerMember, isTimed } = utterance;
    const isEvent = isTyped && type !== '' && !TRANSCRIPT_TYPE.test(type);
    if (words === null || isEvent) {
      this.#events += 1;
      return true;
    }
    if (isOfWords) return this.#addWord(utterance, words, start);
    if (speakerMember === 'none' && !isTimed) return false;
    this.#begin(start, utterance.speaker);
    this.#writer.add(words);
    return true;
  }

  /** Words of one speaker that follow one another are a turn. */
  #addWord(word: Utterance, words: string, start: number): boolean {
    const speaker = this.#speakerOf(word);
    if (this.#turns === 0 || (speaker !== '' && speaker !== this.#speaker)) {
      this.#begin(start, speaker);
      this.#writer.add(words.trimStart());
    } else {
      this.#writer.add(word.isPunctuation ? words : this.#list.joint + words);
    }
    return true;
  }

  #speakerOf({ speaker, start, isPunctuation }: Utterance): string {
    if (speaker !== '' || isPunctuation || Number.isNaN(start)) return speaker;
    while ((this.#labels[this.#label + 1]?.start ?? Infinity) <= start) this.#label += 1;
    return this.#labels[this.#label]?.speaker ?? '';
  }

  #begin(start: number, speaker: string): void {
    this.#writer.beginTurn(start);
    if (speaker.trim() !== '') this.#writer.add(`${speaker}: `);
    this.#speaker = speaker;
    this.#turns += 1;
  }
}
