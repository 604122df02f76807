/** The lists of objects in a JSON text, found without making values of it all. */
import { JsonScanner } from './json-scanner.ts';
import { Pace, type Slices } from './slices.ts';
import { ALTERNATIVES, plainKey } from './utterance.ts';

/** So many elements of a list are looked at before it is chosen. */
const MAX_SAMPLES = 24;
/** JSON with more kinds of lists is no transcript. */
const MAX_LISTS = 500;
/** An object this large, in UTF-16 units, is no utterance; and JSON.parse cannot be interrupted. */
export const MAX_ELEMENT_UNITS = 1_000_000;

/** The list of a text that has an object on each line. */
export const JSON_LINES = 'lines of JSON';

const WORD_MEMBERS: ReadonlySet<string> = new Set([
  'text',
  'transcript',
  'content',
  'body',
  'display',
  'full_transcript',
]);

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** All lists at one place: `results[].words` names those of all results. */
export interface JsonList {
  /** How to get there, such as `results.utterances`; empty for the text itself. */
  readonly path: string;
  /** The last name of the path. */
  readonly key: string;
  /** How many objects the lists hold, and how many values that are none. */
  elements: number;
  others: number;
  /** The first of them. */
  readonly samples: Range[];
  /** UTF-16 units of all of them. */
  units: number;
}

/** Where the scanner stands. */
interface Place {
  readonly path: string;
  readonly key: string;
  readonly isList: boolean;
  /** The list, if it is one, or the list that an object is an element of. */
  readonly list: JsonList | null;
  readonly start: number;
  /** How many elements or members have begun. */
  count: number;
}

/**
 * Walks through all lists of objects and collects them.
 */
export class JsonLists {
  readonly #text: string;
  readonly #scanner: JsonScanner;
  readonly lists = new Map<string, JsonList>();
  /** Whether any member holds words. */
  hasWords = false;
  readonly #places: Place[] = [];
  #key = '';

  constructor(text: string, start: number) {
    this.#text = text;
    this.#scanner = new JsonScanner(text, start);
  }

  /**
   * `onElement` is called behind each object of the wanted list, and ends the walk by false. The result is false if the
   * walk was ended, or the text is no JSON.
   */
  *walk(wanted: string | null, onElement: (element: Range) => boolean): Slices<boolean> {
    const scanner = this.#scanner;
    const pace = new Pace();
    let roots = 0;
    for (;;) {
      const token = scanner.next();
      if (token === 'later' || pace.isDue(scanner.start)) yield;
      if (token === 'later') continue;
      if (token === null) {
        if (!scanner.beginAnother()) break;
        continue;
      }
      if (token === 'key') this.#key = scanner.key;
      else if (token === 'open') {
        if (scanner.depth === 1) roots += 1;
        if (roots > 1 && this.#text[scanner.start] === '[') return false;
        this.#open(roots);
      } else if (token === 'close') {
        const element = this.#close();
        if (element === null) continue;
        const { range, path } = element;
        if (path !== wanted) continue;
        if (range.end - range.start > MAX_ELEMENT_UNITS || !onElement(range)) return false;
      } else if (scanner.depth === 0) return false;
      else this.#value(token === 'string' && scanner.end - scanner.start > '""'.length);
      if (this.lists.size > MAX_LISTS) return false;
    }
    return scanner.isComplete;
  }

  /** A string or a scalar. */
  #value(isText: boolean): void {
    const place = this.#places.at(-1);
    if (place?.isList === true && place.list !== null) place.list.others += 1;
    if (isText && WORD_MEMBERS.has(this.#key)) this.hasWords = true;
  }

  #open(roots: number): void {
    const { start } = this.#scanner;
    const isList = this.#text[start] === '[';
    const parent = this.#places.at(-1);
    const key = parent === undefined || parent.isList ? (parent?.key ?? '') : this.#key;
    const path = pathOf(parent, key);
    // Of several readings of the same words only the best counts, and of two languages of a line the first.
    const isOther = parent !== undefined && parent.isList && parent.count > 0 && ALTERNATIVES.has(plainKey(parent.key));
    if (parent !== undefined) parent.count += 1;
    let list: JsonList | null = null;
    if (isList) list = isOther ? null : this.#listAt(path, key);
    else if (parent === undefined) list = this.#listAt(JSON_LINES, '');
    else if (parent.isList && !isOther) list = parent.list;
    this.#places.push({ path: isOther ? `${path}#${roots}` : path, key, isList, list, start, count: 0 });
    this.#key = '';
  }

  #listAt(path: string, key: string): JsonList {
    let list = this.lists.get(path);
    if (list === undefined) this.lists.set(path, (list = { path, key, elements: 0, others: 0, samples: [], units: 0 }));
    return list;
  }

  /** Null if what was closed is no element of a list. */
  #close(): { readonly range: Range; readonly path: string } | null {
    const place = this.#places.pop();
    if (place === undefined || place.isList || place.list === null) return null;
    const range = { start: place.start, end: this.#scanner.end };
    place.list.elements += 1;
    place.list.units += range.end - range.start;
    if (place.list.samples.length < MAX_SAMPLES) place.list.samples.push(range);
    return { range, path: place.list.path };
  }
}

function pathOf(parent: Place | undefined, key: string): string {
  if (parent === undefined) return '';
  if (parent.isList) return `${parent.path}[]`;
  return parent.path === '' ? key : `${parent.path}.${key}`;
}
