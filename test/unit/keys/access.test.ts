import { expect, test } from 'vitest';
import { hasScope, isActive, mayReadReports, maySeeWorkspace } from '../../../src/keys/access.ts';
import { KEY, WORKSPACE_A, WORKSPACE_B } from './fixtures.ts';

test.each([
  ['active', null, 5000, true],
  ['active', 5001, 5000, true],
  ['active', 5000, 5000, false],
  ['active', 4999, 5000, false],
  ['deprecated', null, 5000, false],
  ['revoked', null, 5000, false],
] as const)('K4: a key that is %s and expires at %s is usable at %s: %s', (status, expiresAtMs, nowMs, usable) => {
  expect(isActive({ ...KEY, status, expiresAtMs }, nowMs)).toBe(usable);
});

test('K3: a key has the scopes that it lists and no others', () => {
  const key = { ...KEY, scopes: ['calls.read'] as const };
  expect([hasScope(key, 'calls.read'), hasScope(key, 'reports.read'), hasScope(key, 'coaching.read')]).toEqual([
    true,
    false,
    false,
  ]);
});

test('K5: reports need both the scope reports.read and the workspace', () => {
  expect(mayReadReports(KEY, WORKSPACE_A)).toBe(true);
  expect(mayReadReports(KEY, WORKSPACE_B)).toBe(false);
  expect(mayReadReports({ ...KEY, scopes: ['calls.read', 'coaching.read'] }, WORKSPACE_A)).toBe(false);
});

test('K5: workspace ids are compared without regard to case', () => {
  expect(mayReadReports(KEY, WORKSPACE_A.toUpperCase())).toBe(true);
  expect(maySeeWorkspace(KEY, WORKSPACE_A.toUpperCase())).toBe(true);
});

test.each(['', 'not-a-uuid', `${WORKSPACE_A} `, WORKSPACE_A.slice(1), '*', '__proto__'])(
  'K5: %j is a workspace that no key may see',
  (workspaceId) => {
    expect(mayReadReports(KEY, workspaceId)).toBe(false);
  },
);
