/** SBV, YouTube's captions: a line `0:00:01.000,0:00:03.000`, the words, a blank line. */
import { readCues } from './cues.ts';
import type { Body, Form, Reading } from './form.ts';
import type { Slices } from './slices.ts';
import { commaRangeAt } from './times.ts';

export const sbv: Form = {
  name: 'sbv',
  *read(body: Body): Slices<Reading | null> {
    return yield* readCues(body, {
      name: 'sbv',
      markup: 'common',
      arrow: ',',
      rangeAt: commaRangeAt,
      contentStart: 0,
      hasIdentifiers: false,
    });
  },
};
