import { assert, infiniteStream, maxSafeNat, pre, property, string, uniqueArray, uuid } from 'fast-check';
import { expect, test } from 'vitest';
import { readCursor, writeCursor } from '../../../src/changes/cursor.ts';

const workspaces = uniqueArray(uuid(), { minLength: 1, maxLength: 50 });
const number = maxSafeNat();

test('a cursor is read back as it was written, for the same workspaces in any order', () => {
  assert(
    property(workspaces, uuid(), infiniteStream(number), (ids, feed, stream) => {
      const numbers = new Map(ids.map((id) => [id, stream.next().value]));
      const cursor = writeCursor({ feed, numbers }, ids);
      expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
      expect(cursor.length).toBeLessThanOrEqual(1024);
      expect(readCursor(cursor, ids.toReversed())).toEqual({ feed, numbers });
    }),
  );
});

test('a cursor of other workspaces is foreign, and any other text is none', () => {
  assert(
    property(workspaces, uuid(), string(), (ids, other, text) => {
      pre(!ids.includes(other));
      const cursor = writeCursor({ feed: 'f', numbers: new Map() }, ids);
      expect(readCursor(cursor, [...ids, other])).toBe('foreign');
      expect(readCursor(cursor, [other, ...ids.slice(1)])).toBe('foreign');
      expect(readCursor(text, ids)).toBeNull();
    }),
  );
});
