/** The address of the admin listener without the parser of YAML: what is read is what the parser reads. */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { readPlainAdmin, SHIPPED_FILE } from '../../../src/config/plain-file.ts';

const documentSchema = z.object({
  admin: z.object({ host: z.unknown().default(null), port: z.unknown().default(null) }).nullish(),
});

/** As the parser has it; null if the text is no YAML. */
function parsed(text: string): { readonly host: unknown; readonly port: unknown } | null {
  try {
    const { admin } = documentSchema.parse(parse(text) ?? {});
    return admin ?? { host: null, port: null };
  } catch {
    return null;
  }
}

test('it reads the shipped file', () => {
  expect(readPlainAdmin(readFileSync(SHIPPED_FILE, 'utf8'))).toEqual({ host: '127.0.0.1', port: 8081 });
});

test.each([
  ['', null, null],
  ['server:\n  port: 1\n', null, null],
  ['admin:\n', null, null],
  ['admin:\n  port: 9000', null, 9000],
  ["admin: # ours\r\n    host: '::' # all\r\n\r\n    port: 0\r\nserver:\r\n  port: 2\r\n", '::', 0],
  ['admin:\n  token: null\n  host: "10.0.0.1"\n', '10.0.0.1', null],
  ['admin:\n  host: gateway.internal\n  runbook: https://docs.example.com/#a\n', 'gateway.internal', null],
])('it reads %j', (text, host, port) => {
  expect(readPlainAdmin(text)).toEqual({ host, port });
  expect(parsed(text)).toEqual({ host, port });
});

test.each([
  'admin: {port: 9000}',
  '{admin: {port: 9000}}',
  '"admin":\n  port: 9000',
  '---\nadmin:\n  port: 9000',
  'admin: &a\n  port: 9000',
  'admin:\n  <<: *other\n  port: 9000',
  'admin:\n  "port": 9000',
  'admin:\n  port: 9000\n   1',
  'admin:\n  port: 0x20',
  'admin:\n  port: 1e3',
  'admin:\n  port: "9000"',
  'admin:\n  host: null',
  'admin:\n  host: 1.5',
  'admin:\n  host: ::1',
  'admin:\n  token: |\n    x\n    port: 1\n  port: 2',
  'admin:\n  port: 1\n  port: 2',
  'admin:\n  port: 1\nadmin:\n  port: 2',
  'admin:\n\tport: 1',
])('it leaves %j to the parser', (text) => {
  expect(readPlainAdmin(text)).toBeNull();
});

test('whatever lines a file has, it reads what the parser reads, or leaves it to the parser', () => {
  const line = fc.constantFrom(
    'admin:',
    'server:',
    'admin: {}',
    '---',
    ...['  ', '    ', ' '].flatMap((indent) => [
      `${indent}host: localhost`,
      `${indent}host: 'a.b'`,
      `${indent}host: yes`,
      `${indent}port: 8080`,
      `${indent}port: 08`,
      `${indent}port:`,
      `${indent}token: |`,
      `${indent}- 1`,
      `${indent}text: "a`,
      `${indent}b"`,
      `${indent}# port: 1`,
      `${indent}7`,
    ]),
  );
  const finding = fc.check(
    fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
      const text = lines.join('\n');
      const plain = readPlainAdmin(text);
      const whole = parsed(text);
      return plain === null || whole === null || isDeepStrictEqual(plain, whole);
    }),
    { numRuns: 20_000 },
  );
  expect(finding.counterexample).toBeNull();
});
