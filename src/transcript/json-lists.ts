/** The lists of objects in a JSON text, found without making values of it all. */
import { Column } from './column.ts';
import { JsonScanner } from './json-scanner.ts';
import { Pace, type Slices } from './slices.ts';
import { ALTERNATIVES, plainKey } from './utterance.ts';

/** JSON with more kinds of lists is no transcript. */
const MAX_LISTS = 500;
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

/** All lists at one place: `results[].words` names those of all results. */
export interface JsonList {
  /** How to get there, such as `results.utterances`; empty for the text itself. */
  readonly path: string;
  /** The last name of the path. */
  readonly key: string;
  /** Where the objects that the lists hold begin and end in the text. */
  readonly starts: Column;
  readonly ends: Column;
  /** UTF-16 units of all of them. */
  units: number;
  /** How many values that are no objects the lists hold. */
  others: number;
}

/** Where the scanner stands. */
interface Place {
  readonly path: string;
  readonly key: string;
  readonly isList: boolean;
  /** The path of its elements, if it is a list. */
  readonly elementPath: string;
  /** The list, if it is one, or the list that an object is an element of. */
  readonly list: JsonList | null;
  readonly start: number;
  /** How many elements or members have begun. */
  count: number;
}

/** Walks through all lists of objects and collects them. */
export class JsonLists {
  readonly #text: string;
  readonly #scanner: JsonScanner;
  readonly lists = new Map<string, JsonList>();
  /** Whether any member holds words. */
  hasWords = false;
  readonly #places: Place[] = [];

  constructor(text: string, start: number) {
    this.#text = text;
    this.#scanner = new JsonScanner(text, start);
  }

  /** The result is false if the text is no JSON. */
  *walk(): Slices<boolean> {
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
      if (token === 'key') continue;
      if (token === 'open') {
        if (scanner.depth === 1) roots += 1;
        if (roots > 1 && this.#text[scanner.start] === '[') return false;
        this.#open(roots);
      } else if (token === 'close') this.#close();
      else if (scanner.depth === 0) return false;
      else this.#value(token === 'string' && scanner.end - scanner.start > '""'.length);
      if (this.lists.size > MAX_LISTS) return false;
    }
    return scanner.isComplete;
  }

  /** A string or a scalar. */
  #value(isText: boolean): void {
    const place = this.#places.at(-1);
    if (place?.isList === true) {
      if (place.list !== null) place.list.others += 1;
    } else if (isText && !this.hasWords) this.hasWords = WORD_MEMBERS.has(this.#scanner.key);
  }

  #open(roots: number): void {
    const { start } = this.#scanner;
    const isList = this.#text[start] === '[';
    const parent = this.#places.at(-1);
    const key = parent === undefined || parent.isList ? (parent?.key ?? '') : this.#scanner.key;
    const path = pathOf(parent, key);
    // The best of several readings of the same words counts, and the first of two languages of a line.
    const isOther = parent !== undefined && parent.isList && parent.count > 0 && ALTERNATIVES.has(plainKey(parent.key));
    if (parent !== undefined) parent.count += 1;
    let list: JsonList | null = null;
    if (isList) list = isOther ? null : this.#listAt(path, key);
    else if (parent === undefined) list = this.#listAt(JSON_LINES, '');
    else if (parent.isList && !isOther) list = parent.list;
    const ownPath = isOther ? `${path}#${roots}` : path;
    const elementPath = isList ? `${ownPath}[]` : '';
    this.#places.push({ path: ownPath, key, isList, elementPath, list, start, count: 0 });
  }

  #listAt(path: string, key: string): JsonList {
    let list = this.lists.get(path);
    if (list === undefined) {
      list = { path, key, starts: new Column(), ends: new Column(), units: 0, others: 0 };
      this.lists.set(path, list);
    }
    return list;
  }

  #close(): void {
    const place = this.#places.pop();
    if (place === undefined || place.isList || place.list === null) return;
    const { start, list } = place;
    const { end } = this.#scanner;
    list.starts.push(start);
    list.ends.push(end);
    list.units += end - start;
  }
}

function pathOf(parent: Place | undefined, key: string): string {
  if (parent === undefined) return '';
  if (parent.isList) return parent.elementPath;
  return parent.path === '' ? key : `${parent.path}.${key}`;
}
