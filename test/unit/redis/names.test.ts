import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  CacheNames,
  channelName,
  QUOTA_BUCKETS,
  quotaBucket,
  quotaLogKey,
  quotaMergeKey,
  registryKey,
  taggedKey,
  trialKeys,
} from '../../../src/redis/names.ts';

test('names begin with the prefix and carry one hash tag', () => {
  expect(quotaLogKey('key_1')).toMatch(/^evalgate:\{quota-\d+\}:key_1:log$/);
  expect(quotaMergeKey('key_1', 'm')).toBe(quotaLogKey('key_1').replace(/log$/, 'merged:m'));
  expect(registryKey('id', 'a')).toBe('evalgate:{keys}:id:a');
  const names = new CacheNames('s1');
  expect(names.of('abc')).toBe('evalgate:{cache-s1-abc}');
  expect(names.beside(names.of('abc'), 'lease')).toBe('evalgate:{cache-s1-abc}:lease');
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

/** The hash tag of a name. */
const tagOf = (name: string): string => /\{(.*)\}/.exec(name)?.[1] ?? '';

test('quotas of one bucket have one hash tag, those of different buckets different ones, and no two share a log', () => {
  const ids = Array.from({ length: 4000 }, (_, i) => `key_${i}`);
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(quotaBucket(id), (counts.get(quotaBucket(id)) ?? 0) + 1);
  expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual(Array.from({ length: QUOTA_BUCKETS }, (_, i) => i));
  // A fair share is 250.
  expect(Math.min(...counts.values())).toBeGreaterThan(180);
  expect(Math.max(...counts.values())).toBeLessThan(320);
  expect(new Set(ids.map((id) => tagOf(quotaLogKey(id)))).size).toBe(QUOTA_BUCKETS);
  for (const id of ids)
    expect(tagOf(quotaLogKey(id))).toBe(
      tagOf(quotaLogKey(ids.find((other) => quotaBucket(other) === quotaBucket(id)) ?? '')),
    );
  expect(new Set(ids.map(quotaLogKey)).size).toBe(ids.length);
  expect(new Set(trialKeys('x').map(tagOf))).toEqual(new Set(ids.map((id) => tagOf(quotaLogKey(id)))));
});
