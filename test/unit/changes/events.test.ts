import { describe, expect, test } from 'vitest';
import { eventsOf } from '../../../src/changes/events.ts';
import type { RecordChange } from '../../../src/journal/journal.ts';

const change = (about: Partial<RecordChange> = {}): RecordChange => ({
  tag: 'evaluation:ev_1',
  workspace: 'a',
  kinds: ['evaluation', 'transcript', 'scorecard', 'dealInsights'],
  isCreated: false,
  isDeleted: false,
  previousWorkspace: null,
  etags: {},
  shown: null,
  ...about,
});
const events = (...changes: readonly RecordChange[]) =>
  Object.fromEntries(
    [...eventsOf(changes)].map(([workspace, of]) => [
      workspace,
      of.map((one) => `${one.kind} ${one.change} ${one.id}`),
    ]),
  );

describe('the events of a change', () => {
  test('are one per part that is named', () => {
    expect(events(change())).toEqual({ a: ['call updated ev_1', 'transcript updated ev_1', 'scorecard updated ev_1'] });
    expect(events(change({ kinds: ['transcript'] }))).toEqual({ a: ['transcript updated ev_1'] });
    expect(events(change({ kinds: ['evaluation'], isCreated: true }))).toEqual({ a: ['call created ev_1'] });
  });

  test('are none for insights and rubrics', () => {
    expect(events(change({ kinds: ['dealInsights'] }))).toEqual({});
    expect(events(change({ tag: 'scorecard:sc_1', kinds: ['rubric'] }))).toEqual({});
  });

  test('are one of the call if it was deleted', () => {
    expect(events(change({ isDeleted: true }))).toEqual({ a: ['call deleted ev_1'] });
  });

  test('are a deletion and a creation if it has moved, whatever kinds are named', () => {
    expect(events(change({ previousWorkspace: 'b', kinds: ['transcript'] }))).toEqual({
      b: ['call deleted ev_1'],
      a: ['call created ev_1', 'transcript created ev_1', 'scorecard created ev_1'],
    });
  });

  test('have one order, whatever their workspaces', () => {
    const all = [...eventsOf([change({ previousWorkspace: 'b', kinds: ['evaluation'] }), change({ isDeleted: true })])];
    const ordered = all.flatMap(([workspace, of]) => of.map(({ order, ...one }) => ({ order, workspace, ...one })));
    expect(
      ordered
        .toSorted((one, other) => one.order - other.order)
        .map((one) => `${one.workspace} ${one.kind} ${one.change}`),
    ).toEqual(['b call deleted', 'a call created', 'a transcript created', 'a scorecard created', 'a call deleted']);
  });

  test('come in the order of their last announcement, each once', () => {
    const scorecard = change({ kinds: ['scorecard'] });
    const other = change({ tag: 'evaluation:ev_2', kinds: ['evaluation'] });
    expect(events(scorecard, other, scorecard, change({ isDeleted: true }))).toEqual({
      a: ['call updated ev_2', 'scorecard updated ev_1', 'call deleted ev_1'],
    });
    const created = change({ kinds: ['evaluation'], isCreated: true });
    expect(events(created, change({ isDeleted: true }), created)).toEqual({
      a: ['call deleted ev_1', 'call created ev_1'],
    });
  });
});
