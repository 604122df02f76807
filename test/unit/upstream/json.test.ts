/** Reading JSON of a store lets other work in between its steps, whatever it holds. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonError, parseJson } from '../../../src/upstream/json.ts';

const parse = (text: string, isExact = false): Promise<unknown> => parseJson(Buffer.from(text), { isExact });
const failureOf = (text: string): Promise<unknown> => parse(text).catch((error: unknown) => error);

test('a value is that of JSON.parse, whatever the strings, numbers and members in it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.json({ stringUnit: 'grapheme' }), async (text) => {
      expect(JSON.stringify(await parse(text))).toBe(JSON.stringify(JSON.parse(text)));
    }),
    { numRuns: 500 },
  );
});

test('exactly, a number that a double cannot hold is written again as it was, and any other as the double is', async () => {
  const number = fc.stringMatching(/^-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,4})?$/);
  await fc.assert(
    fc.asyncProperty(fc.array(number), async (numbers) => {
      const written = JSON.stringify(await parse(`[${numbers.join(',')}]`, true));
      const expected = numbers.map((source) =>
        /^[^eE]{1,15}$/.test(source) ? JSON.stringify(Number(source)) : source,
      );
      expect(written).toBe(`[${expected.join(',')}]`);
    }),
    { numRuns: 500 },
  );
});

test('lone halves of surrogate pairs become U+FFFD, as toWellFormed has it, whatever stands beside them', async () => {
  const unit = fc.constantFrom(
    '\\ud83d',
    '\\ude00',
    '\\uD83D',
    '\\uDE00',
    '\\\\',
    'd83d',
    '\\"',
    '\\u0041',
    'é',
    '\\n',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(unit), async (units) => {
      const text = `"${units.join('')}"`;
      expect(await parse(text)).toBe(String(JSON.parse(text)).toWellFormed());
    }),
    { numRuns: 1000 },
  );
});

test.each(['"\\ud8zz"', '"\\ud8', '"\\ud83d\\u', '{"a":1', '[1,]', '{"a" 1}', '"\\', '', ' ', 'tru'])(
  'what is not JSON is the fault of the store: %s',
  async (text) => {
    expect(await failureOf(text)).toMatchObject({ isRecords: false });
  },
);

/** How many turns others get while that goes on. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let [turns, isOver] = [0, false];
  const over = work.finally(() => {
    isOver = true;
  });
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await over;
  return turns;
}

describe('other work gets its turn between the steps', () => {
  test.each([
    ['escapes of lone surrogates', `"${'\\ud83d'.repeat(1_300_000)}"`, false],
    [
      'numbers that a double cannot hold',
      `[${Array<string>(20_000)
        .fill(`9007199254740993.${'1'.repeat(1200)}`)
        .join(',')}]`,
      true,
    ],
  ])('%s', async (_what, text, isExact) => {
    expect(await turnsDuring(parse(text, isExact))).toBeGreaterThan(2);
  });
});

test('an error has no text of the store', async () => {
  const error = await failureOf('{"secret": oops}');
  expect(error).toBeInstanceOf(JsonError);
  expect(String(error)).toBe('JsonError: is not JSON (at byte 11 of 16)');
});
