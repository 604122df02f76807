import { expect, test } from 'vitest';
import { IssuedHashes } from '../../../src/keys/issued-hashes.ts';
import { hashToken } from '../../../src/keys/token.ts';

const A = hashToken('a');
const B = hashToken('b');
const C = hashToken('c');
const D = hashToken('d');

test('all hashes are read once, and again where some may be missing', async () => {
  let readings = 0;
  const issued = new IssuedHashes(async function* () {
    readings += 1;
    yield [A];
    yield [B];
  });
  expect(issued.has(A)).toBe(false);
  await Promise.all([issued.catchUp(), issued.catchUp()]);
  await issued.catchUp();
  expect(readings).toBe(1);
  expect([A, B, C].map((hash) => issued.has(hash))).toEqual([true, true, false]);
  issued.doubt();
  await issued.catchUp();
  expect(readings).toBe(2);
});

test('a reading that failed is due again, and what it got is kept', async () => {
  let isDown = true;
  const issued = new IssuedHashes(async function* () {
    yield [A];
    if (isDown) throw new Error('down');
    yield [B];
  });
  await issued.catchUp();
  expect([issued.has(A), issued.has(B)]).toEqual([true, false]);
  isDown = false;
  await issued.catchUp();
  expect(issued.has(B)).toBe(true);
});

test('a doubt during a reading is not lost', async () => {
  let readings = 0;
  const begun = Promise.withResolvers<void>();
  const issued = new IssuedHashes(async function* () {
    readings += 1;
    yield [A];
    await begun.promise;
  });
  const reading = issued.catchUp();
  issued.doubt();
  begun.resolve();
  await reading;
  await issued.catchUp();
  expect(readings).toBe(2);
});

test('no more hashes are held than the bound', () => {
  const issued = new IssuedHashes(async function* () {}, 2);
  issued.add([A, B, C]);
  issued.add([D]);
  expect([A, B, C, D].map((hash) => issued.has(hash))).toEqual([true, true, false, false]);
});
