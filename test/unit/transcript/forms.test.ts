/** The rules for every form: turns come back, damage loses no words, and any body is read. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  anyBody,
  cueTurns,
  headedTurns,
  lineEnding,
  plainCueTurns,
  runs,
  spokenTurns,
} from '../../support/transcript-arbitraries.ts';
import { parseTranscript, slicesOf, textsOf } from '../../support/transcript-at-once.ts';
import { mixedBody, wordsOfTurns } from '../../support/transcript-words.ts';
import { salesCall } from '../../support/transcript-calls.ts';
import {
  DECLARED,
  type RenderedForm,
  renderTranscript,
  segmentText,
  type SpokenTurn,
} from '../../support/transcript-render.ts';

const TURNS: Readonly<Record<RenderedForm, fc.Arbitrary<SpokenTurn[]>>> = {
  json: cueTurns,
  webvtt: cueTurns.map((turns) => turns.map(({ speaker, text }) => ({ speaker, text: text.replaceAll('{', '(') }))),
  subrip: plainCueTurns,
  sbv: plainCueTurns,
  'headed turns': headedTurns,
  // One name before a number is a value with its key (T12).
  'spoken lines': spokenTurns.filter((turns) => turns.length !== 1 || !/^\s*\d/.test(turns[0]?.text ?? '')),
};
const FORMS: readonly RenderedForm[] = ['json', 'webvtt', 'subrip', 'sbv', 'headed turns', 'spoken lines'];
const HINTS = [null, 'speaker_text', 'webvtt', 'srt', 'utterances_json'] as const;

describe.each(FORMS)('%s', (form) => {
  test('T2, T8, T10: every turn comes back whole and in order, whatever the store calls the body', () => {
    fc.assert(
      fc.property(
        TURNS[form],
        lineEnding,
        fc.boolean(),
        fc.constantFrom(...HINTS),
        (turns, ending, isVerbose, hint) => {
          const body = renderTranscript(turns, form, { lineEnding: ending, isVerbose });
          const parsed = parseTranscript(body, hint);
          expect(textsOf(parsed)).toEqual(turns.map((turn) => segmentText(turn).toWellFormed()));
          // An empty body could be of any form.
          expect(parsed.form).toBe(body.trim() === '' || form === 'headed turns' ? 'spoken lines' : form);
        },
      ),
      runs(),
    );
  });

  test('T7: the slices make up the body, one per turn', () => {
    const turns = salesCall(5_000, 7);
    const parsed = parseTranscript(renderTranscript(turns, form), DECLARED[form]);
    const slices = slicesOf(parsed);
    expect(slices.join('')).toBe(parsed.body);
    expect(slices).toHaveLength(turns.length);
    for (const [i, slice] of slices.entries()) expect(slice).toContain(turns[i]?.speaker);
  });

  test('T2a: a body that lost a line, or got a blank one, or other line ends, keeps the words of all other lines', () => {
    const turns = salesCall(1_500, 11).map(({ speaker }, i) => ({ speaker, text: `alpha${i} beta${i}\ngamma${i}` }));
    const lines = renderTranscript(turns, form).split('\n');
    const change = fc.record({
      line: fc.nat(lines.length - 1),
      // A member twice in a JSON object counts once.
      kind: fc.constantFrom('drop', 'blank', 'white', form === 'json' ? 'blank' : 'twice'),
      ending: lineEnding,
    });
    fc.assert(
      fc.property(change, fc.constantFrom(...HINTS), ({ line, kind, ending }, hint) => {
        const text = lines[line] ?? '';
        const changed = { drop: [], blank: ['', text], white: [' \t', text], twice: [text, text] };
        const body = lines.toSpliced(line, 1, ...changed[kind]).join(ending);
        const parsed = parseTranscript(body, hint);
        expect(slicesOf(parsed).join('')).toBe(body);
        expect(countWords(parsed.text)).toEqual(countWords(body));
      }),
      runs(50),
    );
  });

  test('T1: an empty or blank body is supported and has no turn', () => {
    for (const body of ['', '\n', ' \r\n\u00a0', '\ufeff']) {
      const parsed = parseTranscript(body, DECLARED[form]);
      expect([parsed.form, parsed.turnCount, textsOf(parsed)]).toEqual(['spoken lines', 0, []]);
      expect(slicesOf(parsed)).toEqual(body === '' ? [] : [body]);
    }
  });
});

/** How often each of the made-up words occurs. */
function countWords(text: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [word = ''] of text.matchAll(/(?:alpha|beta|gamma)\d+/g)) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

test('any body is read: its slices make it up, texts are well formed, and both columns have a place for every turn', () => {
  fc.assert(
    fc.property(anyBody, fc.constantFrom(...HINTS), (body, hint) => {
      const parsed = parseTranscript(body, hint);
      expect(parsed.body).toBe(body.toWellFormed());
      expect(slicesOf(parsed).join('')).toBe(parsed.body);
      expect(parsed.text.isWellFormed()).toBe(true);
      expect(parsed.textStarts.length).toBe(parsed.turnCount + 1);
      expect(slicesOf(parsed)).toHaveLength(parsed.turnCount === 0 && body !== '' ? 1 : parsed.turnCount);
      const starts = Array.from({ length: parsed.sliceStarts.length }, (_, i) => parsed.sliceStarts.at(i));
      expect(starts).toEqual(starts.toSorted((a, b) => a - b));
      expect(textsOf(parsed).join('\n')).toBe(parsed.text);
    }),
    runs(200),
  );
});

test('T2a: of any mix of forms, no word is lost or doubled', () => {
  fc.assert(
    fc.property(mixedBody, fc.constantFrom(...HINTS), (body, hint) => {
      const { written, read, isWhole } = wordsOfTurns(body, hint);
      expect(read).toEqual(written);
      expect(isWhole).toBe(true);
    }),
    runs(600),
  );
});
