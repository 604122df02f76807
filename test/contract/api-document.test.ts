import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/http/problem.ts';
import { routesOf } from '../../src/http/routes.ts';

const API = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');

test('docs/api.md has every error code, with its status and what to do', () => {
  const rows = [...API.matchAll(/^\| (\d{3}) \| `(\w+)` \| (.+) \|$/gm)].map(([, status, code]) => [
    code,
    Number(status),
  ]);
  expect(rows).toEqual(Object.entries(ERROR_CODES).map(([code, { status }]) => [code, status]));
});

test('docs/api.md has every path', () => {
  const paths = routesOf(true).map(({ template }) => template);
  expect(paths.filter((path) => !API.includes(`\`${path}\``))).toEqual([]);
});
