/** The elements of a list of utterances. Values are made only of members that say something, however many others there are. */
import { JsonScanner } from './json-scanner.ts';
import { meaningOf, Members, type Utterance, utteranceOf } from './utterance.ts';

/** Reads elements that stand one after another in a JSON text. */
export class JsonElements {
  readonly #text: string;
  readonly #scanner: JsonScanner;

  constructor(text: string) {
    this.#text = text;
    this.#scanner = new JsonScanner(text, 0);
  }

  /** The element that begins at `start`; null if it is no object, or a member that matters is no JSON. */
  at(start: number): Utterance | null {
    if (this.#text[start] !== '{') return null;
    const scanner = this.#scanner;
    scanner.moveTo(start);
    const members = new Members();
    let meaning = meaningOf('');
    let valueStart = start;
    for (;;) {
      const token = scanner.next();
      if (token === null) return null;
      if (token === 'close' && scanner.depth === 0) return utteranceOf(members);
      if (token === 'key' && scanner.depth === 1) meaning = meaningOf(scanner.key);
      else if (token === 'open' && scanner.depth === 2) valueStart = scanner.start;
      else if (token === 'later' || token === 'key' || token === 'open' || scanner.depth > 1) continue;
      else if (meaning.isKnown) {
        const value = valueOf(this.#text.slice(token === 'close' ? valueStart : scanner.start, scanner.end));
        if (value === undefined) return null;
        members.add(meaning, value);
      }
    }
  }
}

/** Undefined if it is no JSON. */
function valueOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
