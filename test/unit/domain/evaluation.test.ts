import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toAttendees, toMinutes, toParticipants, toSharedFields, toTimestamp } from '../../../src/domain/evaluation.ts';
import { anEvaluation } from '../../support/records.ts';

describe('toMinutes', () => {
  test.each([
    [0, 0],
    [60, 1],
    [1, 0.02],
    [0.29, 0],
    [0.3, 0.01],
    [100, 1.67],
    [1834, 30.57],
    [-60, -1],
    [60e20, 1e20],
  ])('%d seconds are %d minutes', (seconds, minutes) => {
    expect(toMinutes(seconds)).toBe(minutes);
  });

  test('nothing gives -0', () => {
    expect(toMinutes(-0)).toBe(0);
    expect(toMinutes(-0.1)).toBe(0);
  });

  test('any finite number gives a finite one that is as near as two decimals allow', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (seconds) => {
        const minutes = toMinutes(seconds);
        const exact = seconds / 60;
        expect(Number.isFinite(minutes)).toBe(true);
        expect(Math.abs(minutes - exact)).toBeLessThanOrEqual(0.005 + Math.abs(exact) * Number.EPSILON);
      }),
    );
  });
});

describe('toTimestamp', () => {
  test.each([
    [0, '1970-01-01T00:00:00.000Z'],
    [1_772_600_767_089, '2026-03-04T05:06:07.089Z'],
    [-62_167_219_200_000, '0000-01-01T00:00:00.000Z'],
    [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
  ])('%d is %s', (unixMs, timestamp) => {
    expect(toTimestamp(unixMs)).toBe(timestamp);
  });
});

describe('people', () => {
  const people = [
    { name: 'Ann', email: 'ann@example.com', spoke: true, attended: true },
    { name: null, email: 'bob@example.com', spoke: true, attended: true },
    { name: 'Cy', email: null, spoke: true, attended: true },
    { name: null, email: null, spoke: true, attended: true },
    { name: '', email: 'dee@example.com', spoke: true, attended: false },
    { name: 'Eve', email: ' ', spoke: false, attended: true },
    { name: 'Fay', email: 'fay@example.com', spoke: false, attended: false },
  ];

  test('participants are those who spoke, by name, else by e-mail address; someone with neither is left out', () => {
    expect(toParticipants(people)).toEqual(['Ann', 'bob@example.com', 'Cy', 'dee@example.com']);
  });

  test('attendees are those who attended, by e-mail address, else by name; someone with neither is left out', () => {
    expect(toAttendees(people)).toEqual(['ann@example.com', 'bob@example.com', 'Cy', 'Eve']);
  });
});

describe('score_breakdown', () => {
  test('null values are left out, zero is not', () => {
    expect(breakdown(['a', null], ['b', 0], ['c', 1.5])).toBe('{"b":0,"c":1.5}');
  });

  test('of two scores with one key the last counts, and a null does not undo it', () => {
    expect(breakdown(['a', 1], ['a', 2], ['a', null])).toBe('{"a":2}');
  });

  test('a category called __proto__ is a key like any other and harms nothing', () => {
    expect(breakdown(['__proto__', 3], ['constructor', 4])).toBe('{"__proto__":3,"constructor":4}');
    expect(Reflect.get({}, 'constructor')).toBe(Object);
  });
});

function breakdown(...categories: readonly (readonly [string, number | null])[]): string {
  const categoryScores = categories.map(([key, value]) => ({ key, label: key, value }));
  return JSON.stringify(toSharedFields(anEvaluation({ categoryScores })).score_breakdown);
}
