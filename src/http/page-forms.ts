/** Public forms of which one record has many, such as the pages of a transcript: those asked for last stay with the entry. */
import { LRUCache } from 'lru-cache';
import { Derivation, type Entry } from '../cache/entry.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Representation } from './representation.ts';

/** Readers go through a transcript page by page; what many of them read is its beginning. */
const MOST_FORMS = 8;

export class PageForms {
  readonly #forms = new Derivation<LRUCache<string, Representation>>(() => 0);

  /** `page` names it among those of the entry. */
  of(entry: Entry<unknown>, page: string, make: () => Promise<Representation>): MaybePromise<Representation> {
    const forms = this.#formsOf(entry);
    return (
      forms.get(page) ??
      make().then((made) => {
        forms.set(page, made);
        entry.addDerivedBytes(made.weightBytes);
        return made;
      })
    );
  }

  /** Bytes of forms that had to make room are counted no more. */
  #formsOf(entry: Entry<unknown>): LRUCache<string, Representation> {
    return this.#forms.of(
      entry,
      () =>
        new LRUCache({
          max: MOST_FORMS,
          dispose: ({ weightBytes }) => entry.addDerivedBytes(-weightBytes),
        }),
    );
  }
}
