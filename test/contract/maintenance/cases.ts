import { expect, test } from 'vitest';
import type { MaintenanceControl } from '../../../src/cache/maintenance.ts';
import { ManualClock } from '../../support/manual-clock.ts';

type Create = (clock: ManualClock) => MaintenanceControl | Promise<MaintenanceControl>;

/** What every control of the maintenance does. `create` gives one that goes by the clock, and of which nothing was said. */
export function maintenanceContract(create: Create): void {
  test('it is off until it is begun, and lasts until its end, which comes by itself', async () => {
    const clock = new ManualClock();
    const maintenance = await create(clock);
    expect(maintenance.current()).toBeNull();
    const to = { sinceMs: clock.nowMs(), untilMs: clock.nowMs() + 1000, by: 'alice' };
    expect(await maintenance.begin(to.untilMs, 'alice')).toEqual({ from: null, to });
    clock.advance(999);
    expect(maintenance.current()).toEqual(to);
    clock.advance(1);
    expect(maintenance.current()).toBeNull();
  });

  test('moving the end of one that is on keeps its beginning, and tells who moved it', async () => {
    const clock = new ManualClock();
    const maintenance = await create(clock);
    const startMs = clock.nowMs();
    const first = { sinceMs: startMs, untilMs: startMs + 1000, by: 'alice' };
    await maintenance.begin(first.untilMs, 'alice');
    clock.advance(500);
    const second = { sinceMs: startMs, untilMs: startMs + 9000, by: 'bob {"it"} \u{1F600}' };
    expect(await maintenance.begin(second.untilMs, second.by)).toEqual({ from: first, to: second });
    expect(maintenance.current()).toEqual(second);
  });

  test('it is ended early; ending what is off changes nothing', async () => {
    const clock = new ManualClock();
    const maintenance = await create(clock);
    const { to } = await maintenance.begin(clock.nowMs() + 1000, 'alice');
    expect(await maintenance.end()).toEqual({ from: to, to: null });
    expect(maintenance.current()).toBeNull();
    expect(await maintenance.end()).toEqual({ from: null, to: null });
  });

  test('one that has ended by itself is none that a new one goes on from', async () => {
    const clock = new ManualClock();
    const maintenance = await create(clock);
    await maintenance.begin(clock.nowMs() + 1000, 'alice');
    clock.advance(1000);
    const to = { sinceMs: clock.nowMs(), untilMs: clock.nowMs() + 1000, by: 'bob' };
    expect(await maintenance.begin(to.untilMs, 'bob')).toEqual({ from: null, to });
  });
}
