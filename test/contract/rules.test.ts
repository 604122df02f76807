/** docs/rules.md defines every rule that is cited, and names for each the file that decides it and the test that proves it. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const CODE = '[AKSQRTC][1-9][0-9]?[a-z]?';
const CODES = `${CODE}(?:(?:, | and | to )${CODE})*`;
/**
 * Codes in parentheses, `(C4, K7)` or `(see K7)`, or in front of what they are about: in a comment, the name of a test or
 * parentheses, `R1 to R3: limits are exact`. With a colon the citation is glossed.
 */
const CITATION = new RegExp(String.raw`(?:\((?:see )?|^|['"\x60]|/\*\* |// |[*;-] )(${CODES})([:)])`, 'gm');

interface Citation {
  readonly code: string;
  readonly isGlossed: boolean;
}

function citationsIn(text: string): readonly Citation[] {
  return [...text.matchAll(CITATION)].flatMap(([, codes = '', end]) =>
    codes.split(/, | and /).flatMap((range) => codesOf(range).map((code) => ({ code, isGlossed: end === ':' }))),
  );
}

/** `R1 to R3` is R1, R2 and R3. */
function codesOf(range: string): readonly string[] {
  const [first = '', last = first] = range.split(' to ');
  if (first === last) return [first];
  const [from, to] = [Number(first.slice(1)), Number(last.slice(1))];
  return Array.from({ length: to - from + 1 }, (_, at) => `${first.charAt(0)}${from + at}`);
}

/** The rows of all tables: `| K7 | the rule | the files | the tests |`. */
const RULES = [
  ...textOf('docs/rules.md').matchAll(new RegExp(`^\\| (${CODE}) \\| .* \\| (.*) \\| (.*) \\|$`, 'gm')),
].map(([, code = '', files = '', tests = '']) => ({ code, files: pathsIn(files), tests: pathsIn(tests) }));

function pathsIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
}

const SOURCES = globSync(['src/**/*.{ts,js}', 'test/**/*.ts', 'docs/**/*.md', '*.md'], { cwd: ROOT })
  .filter((path) => !/node_modules|^docs\/rules\.md$|^test\/contract\/rules\.test\.ts$/.test(path))
  .toSorted()
  .map((path) => ({ path, citations: citationsIn(textOf(path)) }));

test.each([
  ['answers alike (K7)', ['K7']],
  ['(K7a: a foreign record looks like none)', ['K7a']],
  ['as it was (see C6b).', ['C6b']],
  ['both windows (R1 to R3, K8a)', ['R1', 'R2', 'R3', 'K8a']],
  ["test('K5, K6, K7: none is told', ...)", ['K5', 'K6', 'K7']],
  [' * C8: changes arrive here', ['C8']],
  ['(K4: none is 401; K9: counted per address)', ['K4', 'K9']],
  ["const T0 = 'a_b-C9'; // %A1 U+C5", []],
])('%s cites %j', (text, codes) => {
  expect(citationsIn(text).map(({ code }) => code)).toEqual(codes);
});

test('each rule is defined once', () => {
  const codes = RULES.map(({ code }) => code);
  expect(codes.length).toBeGreaterThan(50);
  expect(codes).toEqual([...new Set(codes)]);
});

test('each rule that is cited is defined', () => {
  const defined = new Set(RULES.map(({ code }) => code));
  const undefinedOnes = SOURCES.flatMap(({ path, citations }) =>
    citations.filter(({ code }) => !defined.has(code)).map(({ code }) => `${path}: ${code}`),
  );
  expect(undefinedOnes).toEqual([]);
});

test('each rule names the files that decide it and the tests that prove it, which exist and cite it', () => {
  const citedIn = new Map(SOURCES.map(({ path, citations }) => [path, new Set(citations.map(({ code }) => code))]));
  const missing = RULES.flatMap(({ code, files, tests }) => {
    if (files.length === 0 || tests.length === 0) return [`${code}: names no file or no test`];
    return [...files, ...tests]
      .filter((path) => citedIn.get(path)?.has(code) !== true)
      .map((path) => `${code}: ${path}`);
  });
  expect(missing).toEqual([]);
});

test('a file of src says what a rule is where it first cites it, `(K7: one text for every 404)`', () => {
  const unglossed = SOURCES.filter(({ path }) => path.startsWith('src/')).flatMap(({ path, citations }) => {
    const first = new Map(citations.toReversed().map(({ code, isGlossed }) => [code, isGlossed]));
    return [...first].filter(([, isGlossed]) => !isGlossed).map(([code]) => `${path}: ${code}`);
  });
  expect(unglossed).toEqual([]);
});
