import { expect, test } from 'vitest';
import { type AdjustableTimes, DEFAULT_TIMES } from '../../../src/cache/times.ts';
import type { TimesControl } from '../../../src/cache/times-control.ts';

export interface TimesWorld {
  readonly control: TimesControl;
  /** What the same process goes by. */
  readonly times: AdjustableTimes;
}

/** What every control of the times in force does. `create` gives one with the default times and nothing set. */
export function timesControlContract(create: () => TimesWorld | Promise<TimesWorld>): void {
  const { list, transcript } = DEFAULT_TIMES;

  test('C2: what is set is in force once it has resolved; the times left out, and other classes, stay', async () => {
    const { control, times } = await create();
    await control.set('list', { freshMs: 45_000 });
    expect(times.of('list')).toEqual({ ...list, freshMs: 45_000 });
    expect(times.of('transcript')).toEqual(transcript);
  });

  test('a second change adds to the first, and each tells what was in force before and after', async () => {
    const { control, times } = await create();
    expect(await control.set('list', { freshMs: 45_000 })).toEqual({ from: list, to: { ...list, freshMs: 45_000 } });
    expect(await control.set('list', { staleMs: 0, errorMs: 1 })).toEqual({
      from: { ...list, freshMs: 45_000 },
      to: { freshMs: 45_000, staleMs: 0, errorMs: 1 },
    });
    expect(times.of('list')).toEqual({ freshMs: 45_000, staleMs: 0, errorMs: 1 });
  });

  test('a reset brings the configured times back, and tells what was in force', async () => {
    const { control, times } = await create();
    await control.set('list', { freshMs: 45_000 });
    await control.set('transcript', { freshMs: 1 });
    expect(await control.reset('list')).toEqual({ from: { ...list, freshMs: 45_000 }, to: list });
    expect(times.of('list')).toEqual(list);
    expect(times.of('transcript')).toEqual({ ...transcript, freshMs: 1 });
    expect(await control.reset('list')).toEqual({ from: list, to: list });
  });

  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])('%s is no time, and nothing changes', async (freshMs) => {
    const { control, times } = await create();
    await expect(control.set('list', { staleMs: 1, freshMs })).rejects.toThrow(RangeError);
    expect(times.of('list')).toEqual(list);
  });
}
