import { expect, test } from 'vitest';
import { InvalidKeyError, parseImportedKey, parseNewKey } from '../../../src/keys/schema.ts';
import { NEW_KEY, WORKSPACE_A, WORKSPACE_B } from './fixtures.ts';

const IMPORTED = { ...NEW_KEY, keyId: 'old-1', hash: 'c'.repeat(64), status: 'active', createdAtMs: 5 };

function uuid(index: number): string {
  return `cccccccc-0000-4000-8000-${String(index).padStart(12, '0')}`;
}

/** What an operator reads for a bad request. */
function problemsOf(parse: (input: unknown) => unknown, input: unknown): readonly string[] {
  try {
    parse(input);
  } catch (error) {
    if (error instanceof InvalidKeyError) return error.problems;
    throw error;
  }
  return [];
}

test('K3: a new key is taken with its workspaces in lower case and nothing twice', () => {
  expect(
    parseNewKey({
      ...NEW_KEY,
      workspaceIds: [WORKSPACE_A.toUpperCase(), WORKSPACE_B, WORKSPACE_A],
      scopes: ['calls.read', 'reports.read', 'calls.read'],
    }),
  ).toEqual({ ...NEW_KEY, workspaceIds: [WORKSPACE_A, WORKSPACE_B], scopes: ['calls.read', 'reports.read'] });
});

test('K3: expiry and limits may be left out', () => {
  expect(parseNewKey({ name: 'n', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] })).toEqual({
    name: 'n',
    workspaceIds: [WORKSPACE_A],
    scopes: ['calls.read'],
    expiresAtMs: null,
    limits: { perMinute: null, perHour: null },
  });
  expect(parseNewKey({ ...NEW_KEY, limits: { perMinute: 5 } }).limits).toEqual({ perMinute: 5, perHour: null });
});

test('K3: 1 and 50 workspaces, and limits of 1 and 10^9, are allowed', () => {
  const fifty = Array.from({ length: 50 }, (_, i) => uuid(i));
  expect(parseNewKey({ ...NEW_KEY, workspaceIds: fifty }).workspaceIds).toEqual(fifty);
  const limits = { perMinute: 1, perHour: 1_000_000_000 };
  expect(parseNewKey({ ...NEW_KEY, limits }).limits).toEqual(limits);
});

test.each([
  ['no workspace', { workspaceIds: [] }, 'workspaceIds'],
  ['51 workspaces', { workspaceIds: Array.from({ length: 51 }, (_, i) => uuid(i)) }, 'workspaceIds'],
  ['a workspace that is no UUID', { workspaceIds: [WORKSPACE_A, 'w1'] }, 'workspaceIds.1'],
  ['no scope', { scopes: [] }, 'scopes'],
  ['an unknown scope', { scopes: ['reports.write'] }, 'scopes.0'],
  ['a blank name', { name: '   ' }, 'name'],
  ['a name of 101 characters', { name: 'x'.repeat(101) }, 'name'],
  ['a name with a control character', { name: 'a\nb' }, 'name'],
  ['a limit of 0', { limits: { perMinute: 0 } }, 'limits.perMinute'],
  ['a limit beyond 10^9', { limits: { perHour: 1_000_000_001 } }, 'limits.perHour'],
  ['a broken limit', { limits: { perHour: 1.5 } }, 'limits.perHour'],
  ['an expiry that is no integer', { expiresAtMs: '90d' }, 'expiresAtMs'],
])('K3: %s is refused by the name of the member', (_, change, member) => {
  const problems = problemsOf(parseNewKey, { ...NEW_KEY, ...change });
  expect(problems.map((problem) => problem.slice(0, problem.indexOf(':')))).toEqual([member]);
});

test('a name counts in characters, not in UTF-16 units', () => {
  expect(parseNewKey({ ...NEW_KEY, name: '🔑'.repeat(100) }).name).toBe('🔑'.repeat(100));
  expect(problemsOf(parseNewKey, { ...NEW_KEY, name: '🔑'.repeat(101) })).toHaveLength(1);
});

test('a member that is not known is refused, so that a mistyped expiry is not lost', () => {
  expect(problemsOf(parseNewKey, { ...NEW_KEY, expiresAt: 5 })).toEqual(['Unrecognized key: "expiresAt"']);
});

test('all problems are told at once', () => {
  expect(problemsOf(parseNewKey, { ...NEW_KEY, name: '', scopes: [] })).toHaveLength(2);
  expect(() => parseNewKey(null)).toThrow(InvalidKeyError);
});

test('K1: an imported key needs its id, hash and time of creation; it is active unless it says otherwise', () => {
  const { status: _, ...withoutStatus } = IMPORTED;
  expect(parseImportedKey(withoutStatus)).toEqual(IMPORTED);
  expect(parseImportedKey({ ...IMPORTED, quotaId: 'q1' })).toEqual({ ...IMPORTED, quotaId: 'q1' });
});

test.each([
  [{ keyId: 'no spaces' }, 'keyId'],
  [{ keyId: 'x'.repeat(65) }, 'keyId'],
  [{ hash: 'C'.repeat(64) }, 'hash'],
  [{ hash: 'c'.repeat(63) }, 'hash'],
  [{ status: 'ACTIVE' }, 'status'],
  [{ quotaId: '' }, 'quotaId'],
  [{ createdAtMs: -1 }, 'createdAtMs'],
])('K2: an imported key with %j is refused', (change, member) => {
  const problems = problemsOf(parseImportedKey, { ...IMPORTED, ...change });
  expect(problems.map((problem) => problem.slice(0, problem.indexOf(':')))).toEqual([member]);
});
