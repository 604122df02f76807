import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { check } from '../../../src/admin/faults.ts';
import {
  IMPORT_RULES,
  importedKeyRules,
  newKeyRules,
  ROTATE_RULES,
  STATUS_RULES,
} from '../../../src/admin/key-rules.ts';
import { SCOPES } from '../../../src/keys/key.ts';
import { parseImportedKey, parseNewKey } from '../../../src/keys/schema.ts';

const NOW_MS = Date.UTC(2026, 0, 15);
const LAST_MS = 253_402_300_799_999;
const limit = fc.option(fc.integer({ min: 1, max: 1_000_000_000 }));
const wanted = fc.record(
  {
    name: fc.string({ unit: fc.constantFrom('a', 'Z', '7', 'é', '漢', '🎧', '-'), minLength: 1, maxLength: 100 }),
    workspaceIds: fc.array(fc.uuid(), { minLength: 1, maxLength: 50 }),
    scopes: fc.array(fc.constantFrom(...SCOPES), { minLength: 1 }),
    perMinute: limit,
    perHour: limit,
    expiresAt: fc.option(fc.integer({ min: NOW_MS + 1, max: LAST_MS }).map((ms) => new Date(ms).toISOString())),
  },
  { requiredKeys: ['name', 'workspaceIds', 'scopes'] },
);

test('whatever the rules let through is a key that every registry takes as it is', () => {
  fc.assert(
    fc.property(wanted, (body) => {
      const checked = check(newKeyRules(NOW_MS), body);
      if (checked.faults !== null) throw new Error(checked.faults.join('\n'));
      expect(parseNewKey(checked.value)).toEqual(checked.value);
      expect(checked.value.expiresAtMs).toBe(typeof body.expiresAt === 'string' ? Date.parse(body.expiresAt) : null);
    }),
  );
  fc.assert(
    fc.property(wanted, fc.stringMatching(/^[0-9A-Fa-f]{64}$/), (body, hash) => {
      const { name, workspaceIds, scopes, perMinute = null, perHour = null, expiresAt = null } = body;
      const imported = { keyId: 'k', hash, name, workspaceIds, scopes, expiresAt, limits: { perMinute, perHour } };
      const checked = check(importedKeyRules(NOW_MS), imported);
      if (checked.faults !== null) throw new Error(checked.faults.join('\n'));
      expect(parseImportedKey(checked.value)).toEqual(checked.value);
      expect(checked.value.createdAtMs).toBe(NOW_MS);
    }),
  );
});

test('any other value has faults, each one line of bounded length, and nothing throws', () => {
  const all = [newKeyRules(NOW_MS), importedKeyRules(NOW_MS), STATUS_RULES, ROTATE_RULES, IMPORT_RULES];
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(...all), (value, rules) => {
      fc.pre(
        !(typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0),
      );
      const { faults } = check<unknown>(rules, value);
      expect(faults?.length).toBeGreaterThan(0);
      for (const fault of faults ?? []) {
        expect(fault).toMatch(/^[^\n]{1,1000}$/);
        expect(fault).toMatch(/: (given .+|missing|unknown); allowed/);
      }
    }),
  );
});
