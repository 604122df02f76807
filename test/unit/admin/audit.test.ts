import { expect, test } from 'vitest';
import { type AuditEntry, createAudit } from '../../../src/admin/audit.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const change = (target: string) => ({ who: 'ops', action: 'key.revoke', target, from: 1, to: null });

test('keeps the newest entries up to its capacity, newest first, and hands each to the sink', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const sunk: AuditEntry[] = [];
  const audit = createAudit({ clock, capacity: 2, sink: (entry) => sunk.push(entry) });
  expect(await audit.entries()).toEqual([]);
  for (const target of ['a', 'b', 'c']) {
    await audit.record(change(target));
    clock.advance(1);
  }
  const [a, b, c] = ['a', 'b', 'c'].map((target, index) => ({
    at: `2026-01-01T00:00:00.00${index}Z`,
    ...change(target),
  }));
  expect(await audit.entries()).toEqual([c, b]);
  expect(sunk).toEqual([a, b, c]);
});

test('what a reader does to the list does not change the audit', async () => {
  const audit = createAudit({ clock: new ManualClock(), capacity: 5, sink: () => {} });
  await audit.record(change('a'));
  const read = await audit.entries();
  await audit.record(change('b'));
  expect(read).toHaveLength(1);
  expect(await audit.entries()).toHaveLength(2);
});

test.each([0, -1, 1.5, Number.NaN])('a capacity of %d is refused', (capacity) => {
  expect(() => createAudit({ clock: new ManualClock(), capacity, sink: () => {} })).toThrow(
    `An audit's capacity is an integer of at least 1, not ${capacity}`,
  );
});
