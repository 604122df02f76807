/** SBV, YouTube's captions: a line `0:00:01.000,0:00:03.000`, the words, a blank line. */
import { readCues } from './cues.ts';
import type { Body, Form, Reading } from './form.ts';
import type { Slices } from './slices.ts';
import { AFTER_RANGE, matchEnd, rangeStart, type TimeRange } from './times.ts';

const TIME = String.raw`\d{1,3}:\d{1,2}:\d{1,2}\.\d{1,9}`;
const RANGE = new RegExp(String.raw`${TIME},[ \t]{0,4}${TIME}${AFTER_RANGE}`, 'y');

export const sbv: Form = {
  name: 'sbv',
  *read(body: Body): Slices<Reading | null> {
    return yield* readCues(body, {
      name: 'sbv',
      markup: 'common',
      arrow: ',',
      rangeAt,
      contentStart: 0,
      hasIdentifiers: false,
    });
  },
};

function rangeAt(text: string, lineStart: number): TimeRange | null {
  const end = matchEnd(RANGE, text, rangeStart(text, lineStart), text.length);
  return end === null ? null : { quality: 'exact', hasHours: true, end };
}
