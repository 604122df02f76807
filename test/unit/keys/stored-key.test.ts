import { expect, test } from 'vitest';
import { RegistryUnavailableError } from '../../../src/keys/key.ts';
import { deserializeKey, serializeKey } from '../../../src/keys/stored-key.ts';
import { KEY } from './fixtures.ts';

const STORED: Record<string, unknown> = { ...KEY };
delete STORED['lastUsedAtMs'];

test('a key comes back as it was kept, with the time of its last use from elsewhere', () => {
  expect(deserializeKey(serializeKey({ ...KEY, lastUsedAtMs: 5 }), KEY.hash, 9)).toEqual({ ...KEY, lastUsedAtMs: 9 });
  expect(serializeKey({ ...KEY, lastUsedAtMs: 5 })).toBe(serializeKey(KEY));
});

test('what a later release adds to a record does no harm', () => {
  expect(deserializeKey(JSON.stringify({ ...STORED, note: 'x' }), KEY.hash, null)).toEqual(KEY);
});

test.each(Object.keys(STORED))('a record without "%s" is broken', (member) => {
  const record = JSON.stringify({ ...STORED, [member]: undefined });
  expect(() => deserializeKey(record, KEY.hash, null)).toThrow(RegistryUnavailableError);
});

test.each([
  '',
  'null',
  '[]',
  '{',
  JSON.stringify({ ...STORED, status: 'paused' }),
  JSON.stringify({ ...STORED, scopes: ['all'] }),
  JSON.stringify({ ...STORED, limits: { perMinute: 0, perHour: null } }),
  JSON.stringify({ ...STORED, hash: 'b'.repeat(64) }),
])('%s is broken', (record) => {
  expect(() => deserializeKey(record, KEY.hash, null)).toThrow(RegistryUnavailableError);
});
