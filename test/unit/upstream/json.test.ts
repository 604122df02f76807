import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import {
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  parseJson,
  shapeOf,
  UnreadableJsonError,
} from '../../../src/upstream/json.ts';

const parse = (text: string): unknown => parseJson(Buffer.from(text));

const arrays = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
/** An array with as many values in all, itself included. */
const zeros = (count: number): string => `[${Array.from({ length: count - 1 }, () => '0').join(',')}]`;

/** Depth and number of values, counted on the value itself. */
function measured(value: unknown): { readonly depth: number; readonly values: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, values: 1 };
  const members = Object.values(value).map((member) => measured(member));
  return {
    depth: 1 + Math.max(0, ...members.map((member) => member.depth)),
    values: 1 + members.reduce((sum, member) => sum + member.values, 0),
  };
}

test('any JSON parses to what it says', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), fc.constantFrom(undefined, 1, '\t'), (text, indent) => {
      const value: unknown = JSON.parse(text);
      expect(parse(JSON.stringify(value, null, indent))).toStrictEqual(value);
    }),
  );
});

test('the shape is found without parsing: the depth exactly, the values never too few', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const shape = shapeOf(Buffer.from(JSON.stringify(value)));
      const { depth, values } = measured(JSON.parse(JSON.stringify(value)));
      expect(shape.depth).toBe(depth);
      expect(shape.values).toBeGreaterThanOrEqual(values);
    }),
  );
});

test.each([
  [String.raw`"[[[{{{"`, 0],
  [String.raw`["\"[[["]`, 1],
  [String.raw`["\\",[0]]`, 2],
  [String.raw`{"\\\"[":[[]]}`, 3],
  ['[][][]', 1],
  ['"[[[', 0],
  ['', 0],
])('the depth of %s is %i', (text, depth) => {
  expect(shapeOf(Buffer.from(text)).depth).toBe(depth);
});

test.each([
  [String.raw`"\ud800"`, true],
  [String.raw`"\uDFFF"`, true],
  [String.raw`"\uDbff"`, true],
  [String.raw`"\ud7ff"`, false],
  [String.raw`"\u00d8"`, false],
  [String.raw`"\\ud800"`, false],
  [String.raw`"\\\ud800"`, true],
  [String.raw`"\u000d800"`, false],
  ['"ud800"', false],
  [String.raw`"\ud`, false],
])('whether %s holds an escaped half of a pair: %s', (text, expected) => {
  expect(shapeOf(Buffer.from(text)).hasSurrogateEscape).toBe(expected);
});

describe('nesting', () => {
  test(`of ${MAX_JSON_DEPTH} levels is read`, () => {
    expect(JSON.stringify(parse(arrays(MAX_JSON_DEPTH)))).toBe(arrays(MAX_JSON_DEPTH));
  });

  test.each([MAX_JSON_DEPTH + 1, 5000, 2_000_000])('of %i levels is refused', (levels) => {
    expect(() => parse(arrays(levels))).toThrow(new UnreadableJsonError('is nested deeper than 64 levels'));
  });
});

test('as many values as allowed are read, one more is refused', () => {
  expect(parse(zeros(MAX_JSON_VALUES))).toHaveLength(MAX_JSON_VALUES - 1);
  expect(() => parse(zeros(MAX_JSON_VALUES + 1))).toThrow(new UnreadableJsonError('has more than 250000 values'));
});

test.each([
  ['', 'is empty'],
  [' \r\n', 'is empty'],
  ['{"secret":', 'is not JSON'],
  ['{"secret":1}}', 'is not JSON'],
  ["{'secret':1}", 'is not JSON'],
  ['NaN', 'is not JSON'],
  ['\n <html>secret</html>', 'is markup, not JSON'],
])('%j is refused, and the message quotes nothing of it', (text, message) => {
  expect(() => parse(text)).toThrow(new UnreadableJsonError(message));
});

test('lone surrogates are replaced in strings and names, whole pairs stay', () => {
  expect(parse(String.raw`{"\ud800":["\udc00\ud83d\ude00",null,1.5,true]}`)).toStrictEqual({
    '\ufffd': ['\ufffd😀', null, 1.5, true],
  });
});
