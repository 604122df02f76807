import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CACHE_CLASSES } from '../../../../src/cache/times.ts';
import { decodeReads, encodeReads, type KeyRead, ReadBuffer } from '../../../../src/cache/what-if/read-batch.ts';

const NOW_MS = Date.UTC(2026, 0, 15, 12);
const at = (atMs: number) => ({ class: 'list', keyHash: 1, atMs }) as const;

const read = fc.record({
  class: fc.constantFrom(...CACHE_CLASSES),
  keyHash: fc.integer({ min: 0, max: 0xffffffff }),
  atMs: fc.integer({ min: NOW_MS - 65_535, max: NOW_MS }),
});

function drained(buffer: ReadBuffer): readonly KeyRead[] {
  const reads: KeyRead[] = [];
  buffer.drain((cacheClass, keyHash, atMs) => reads.push({ class: cacheClass, keyHash, atMs }));
  return reads;
}

describe('reads that wait', () => {
  test('are taken as they came and in that order, each once, as far as there is room', () => {
    fc.assert(
      fc.property(fc.array(fc.array(read, { maxLength: 12 }), { maxLength: 5 }), (rounds) => {
        const buffer = new ReadBuffer(8);
        for (const reads of rounds) {
          for (const [index, { class: cacheClass, keyHash, atMs }] of reads.entries()) {
            expect(buffer.size).toBe(Math.min(8, index));
            expect(buffer.isFull).toBe(index >= 8);
            buffer.add(cacheClass, keyHash, atMs);
          }
          expect(drained(buffer)).toEqual(reads.slice(0, 8));
          expect([buffer.size, buffer.isFull, drained(buffer)]).toEqual([0, false, []]);
        }
      }),
    );
  });
});

describe('reads on their way', () => {
  test('arrive as they were sent, at times by the clock of whom they reach', () => {
    fc.assert(
      fc.property(fc.array(read), fc.integer({ min: -1e9, max: 1e9 }), (reads, skewMs) => {
        const expected = reads.map(({ atMs, ...rest }) => ({ ...rest, atMs: atMs + skewMs }));
        expect(decodeReads(encodeReads(reads, NOW_MS), NOW_MS + skewMs)).toEqual(expected);
      }),
    );
  });

  test('a clock that was set makes no read older than a minute, or later than its sending', () => {
    const arrived = decodeReads(encodeReads([at(NOW_MS + 5000), at(NOW_MS - 1e9)], NOW_MS), NOW_MS);
    expect(arrived?.map(({ atMs }) => NOW_MS - atMs)).toEqual([0, 65_535]);
  });

  test('a read takes seven bytes', () => {
    const reads = Array.from({ length: 300 }, (_, keyHash) => ({ class: 'list', keyHash, atMs: NOW_MS }) as const);
    expect(Buffer.from(encodeReads(reads, NOW_MS), 'base64')).toHaveLength(1 + 300 * 7);
  });

  test.each([
    ['nothing', ''],
    ['no base64', '{"reads":[]}'],
    ['another version', Buffer.from([2, 0, 1, 2, 3, 4, 0, 0]).toString('base64')],
    ['half a read', Buffer.from([1, 0, 1, 2]).toString('base64')],
    ['a class that there is not', Buffer.from([1, CACHE_CLASSES.length, 1, 2, 3, 4, 0, 0]).toString('base64')],
  ])('what is not of this form is none: %s', (_, text) => {
    expect(decodeReads(text, NOW_MS)).toBeNull();
  });
});
