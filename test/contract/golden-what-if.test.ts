/**
 * The messages between processes for the what-if curves, byte by byte: processes of several releases share one Redis.
 * A changed form gets another version, which older processes then leave out.
 */
import { overridesFor } from '../../src/cache/ttl-policy.ts';
import { expect, test } from 'vitest';
import { middleOf, whatIfReportSchema } from '../../src/cache/what-if/tally.ts';
import { decodeBatch, encodeBatch } from '../../src/cache/what-if/sharing.ts';
import type { KeyEvent } from '../../src/cache/what-if/simulator.ts';
import { Watched } from '../support/watched.ts';

const SENDER = 0xdeadbeef;
const LEVELS = [0, 25, 3, 0, 0, 120, 1, 9];
const AT_MS = 1_768_478_400_000;
const EVENTS: readonly KeyEvent[] = [
  { kind: 'tail', class: 'list', id: 1, atMs: AT_MS, ageMs: 0, madeMsAgo: 0 },
  { kind: 'turning', class: 'evaluation', id: 0xffffffff, atMs: AT_MS + 1, ageMs: middleOf(20), madeMsAgo: 0 },
  { kind: 'hot', class: 'transcript', id: 0x12345678, atMs: AT_MS + 250, ageMs: middleOf(112), madeMsAgo: 0 },
  { kind: 'same', class: 'evaluation', id: 2, atMs: AT_MS + 251, ageMs: middleOf(50), madeMsAgo: middleOf(112) },
  { kind: 'changed', class: 'notFound', id: 3, atMs: AT_MS + 70_000, ageMs: middleOf(50), madeMsAgo: 0 },
  { kind: 'list', class: 'list', id: 4, atMs: AT_MS, ageMs: 0, madeMsAgo: 0 },
  { kind: 'item', class: 'evaluation', id: 2, atMs: AT_MS, ageMs: 0, madeMsAgo: 0 },
];
const MESSAGE =
  'A+++rd4sAQAZAwAAeAEJAAEAAAAAAAAAEf////8BABQAInhWNBL6AHAAMQIAAAD7ADJwRgMAAAD//zIAUAQAAAAAAAAAYQIAAAAAAAAA';

test('events: version, sender, age, levels; then class and kind, key, time and durations of each', () => {
  expect(encodeBatch({ sender: SENDER, levels: LEVELS, events: EVENTS }, AT_MS + 300)).toBe(MESSAGE);
  const empty = encodeBatch({ sender: SENDER, levels: LEVELS, events: [] }, AT_MS + 300);
  expect(decodeBatch(empty, AT_MS)).toEqual({ sender: SENDER, levels: LEVELS, events: [] });
});

test('times are ages: the receiver may have another clock; a time that does not fit is the longest that does', () => {
  const received = decodeBatch(MESSAGE, 5300);
  const agesMs = [0, 1, 250, 251, 0xffff, 0, 0];
  const events = EVENTS.map((event, index) => ({ ...event, atMs: 5000 + (agesMs[index] ?? 0) }));
  expect(received).toEqual({ sender: SENDER, levels: LEVELS, events });
});

test.each(['', 'hello', 'AQ==', MESSAGE.slice(0, -4), '{"version":2}', 'AgAAAA=='])('%j is no message', (text) => {
  expect(decodeBatch(text, AT_MS)).toBeNull();
});

test('a report: sums, to be added to those of other processes', () => {
  const watched = new Watched();
  watched.ttl.override('list', overridesFor({ freshMs: 45_000, staleMs: 0 }, null));
  watched.whatIf.hooks.onStoreCall?.({
    class: 'list',
    key: 'a',
    route: null,
    keyId: null,
    workspaceId: null,
    durationMs: 1,
  });
  for (const second of [0, 0, 100]) watched.readAt(1000 * second, 'a', 'list');
  watched.refreshed('list', true, 100_000);
  const report = watched.whatIf.report();
  expect(whatIfReportSchema.parse(JSON.parse(JSON.stringify(report)))).toEqual(report);
  const [list] = report.classes;
  const counts = list?.counts;
  // All points have one form.
  const classes = [{ ...list, counts: { ...counts, points: counts?.points.slice(4, 5) } }];
  expect(JSON.stringify({ ...report, classes })).toBe(
    '{"version":4,"atMs":1768478500000,"hasEnded":false,"classes":[{"class":"list",' +
      '"measured":{"reads":3,"hits":3,"storeCalls":1,"sinceMs":1768478400000},' +
      '"counts":{"startedMs":1768478400000,"sinceMs":1768478400000,"exactReads":3,"otherReads":0,"sampledReads":0,' +
      '"sampledWeight":0,"repeatReads":0,"points":[{"freshMs":45000,"calls":[2,0,0],"waits":[2,0,0],"ages":[[0,1]]}]},' +
      '"comparisons":[[0,51,1,1]]}],"together":null}',
  );
});
