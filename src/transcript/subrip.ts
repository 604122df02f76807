/** SubRip: a counter, a line with a time range, the words, a blank line. */
import { recogniseCues } from './cues.ts';
import type { Body, Form, Reading } from './form.ts';
import type { Slices } from './slices.ts';
import { arrowRangeAt } from './times.ts';

export const subRip: Form = {
  name: 'subrip',
  *recognise(body: Body): Slices<Reading | null> {
    if (!body.text.includes('-->')) return null;
    return yield* recogniseCues(body, {
      name: 'subrip',
      markup: 'common',
      arrow: '>',
      rangeAt: arrowRangeAt,
      contentStart: 0,
      hasIdentifiers: false,
    });
  },
};
