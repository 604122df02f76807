import { expect, test } from 'vitest';
import { KeyUses } from '../../../src/keys/key-uses.ts';

test('uses are handed on together, each key with its last one, and once', async () => {
  const handed: unknown[] = [];
  const uses = new KeyUses(async (batch) => void handed.push([...batch]));
  uses.note('a', 1);
  uses.note('b', 2);
  uses.note('a', 3);
  await uses.flush();
  await uses.flush();
  expect(handed).toEqual([
    [
      ['a', 3],
      ['b', 2],
    ],
  ]);
});

test('what could not be handed on is kept, unless there is a later use', async () => {
  let isDown = true;
  const handed: unknown[] = [];
  const uses = new KeyUses(async (batch) => {
    if (isDown) throw new Error('down');
    handed.push(Object.fromEntries(batch));
  });
  uses.note('a', 1);
  uses.note('b', 1);
  const failing = uses.flush();
  uses.note('a', 2);
  await failing;
  isDown = false;
  await uses.flush();
  expect(handed).toEqual([{ a: 2, b: 1 }]);
});

test('two never run at once, and the second hands on what the first could not', async () => {
  const first = Promise.withResolvers<void>();
  const handed: unknown[] = [];
  const uses = new KeyUses(async (batch) => {
    handed.push(Object.fromEntries(batch));
    if (handed.length === 1) await first.promise;
  });
  uses.note('a', 1);
  const both = [uses.flush(), uses.flush()];
  await Promise.resolve();
  await Promise.resolve();
  expect(handed).toHaveLength(1);
  first.reject(new Error('down'));
  await Promise.all(both);
  expect(handed).toEqual([{ a: 1 }, { a: 1 }]);
});
