import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  CacheNames,
  channelName,
  quotaLogKey,
  quotaMergeKey,
  registryKey,
  taggedKey,
} from '../../../src/redis/keys.ts';

test('names begin with the prefix and carry one hash tag', () => {
  expect(quotaLogKey('key_1')).toBe('evalgate:{quota-key_1}:log');
  expect(quotaMergeKey('key_1', 'm')).toBe('evalgate:{quota-key_1}:merged:m');
  expect(registryKey('id', 'a')).toBe('evalgate:{keys}:id:a');
  expect(new CacheNames('s1').of('abc', 'lease')).toBe('evalgate:{cache-s1-abc}:lease');
  expect(channelName('keys')).toBe('evalgate:channel:keys');
});

test('no two ids share a name, whatever they are made of, and none breaks out of its hash tag', () => {
  const part = fc.string({ unit: fc.constantFrom('a', '{', '}', ':', '%', '7', 'b', 'd') });
  const parts = fc.array(part, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(parts, parts, ([tag = '', ...rest], [otherTag = '', ...otherRest]) => {
      const name = taggedKey(tag, ...rest);
      const isSame = JSON.stringify([tag, ...rest]) === JSON.stringify([otherTag, ...otherRest]);
      expect(name === taggedKey(otherTag, ...otherRest)).toBe(isSame);
      expect(name.match(/[{}]/g)).toEqual(['{', '}']);
    }),
    { numRuns: 2000 },
  );
});
