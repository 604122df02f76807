import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/http/problem.ts';
import { V1_ROUTES } from '../../src/http/v1.ts';
import { V2_ROUTES } from '../../src/http/v2.ts';

const API = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');

test('docs/api.md has every error code, with its status and what to do', () => {
  const rows = [...API.matchAll(/^\| (\d{3}) \| `(\w+)` \| (.+) \|$/gm)].map(([, status, code]) => [
    code,
    Number(status),
  ]);
  expect(rows).toEqual(Object.entries(ERROR_CODES).map(([code, { status }]) => [code, status]));
});

test('docs/api.md has every path', () => {
  const paths = [...V1_ROUTES, ...V2_ROUTES].map(({ template }) => template);
  expect(paths.filter((path) => !API.includes(`\`${path}\``))).toEqual([]);
});
