/** SubRip: a counter, a line with a time range, the words, a blank line. */
import { readCues } from './cues.ts';
import type { Body, Form, Reading } from './form.ts';
import type { Slices } from './slices.ts';
import { arrowRangeAt } from './times.ts';

export const subRip: Form = {
  name: 'subrip',
  *read(body: Body): Slices<Reading | null> {
    if (!body.text.includes('-->')) return null;
    return yield* readCues(body, {
      name: 'subrip',
      markup: 'common',
      arrow: '>',
      rangeAt: arrowRangeAt,
      contentStart: 0,
      hasIdentifiers: false,
    });
  },
};
