/**
 * Where every part of the gateway gets the time from, so that a test can hand in its own and never sleeps.
 * `nowMs` is Unix milliseconds. `nowMicros` is Unix microseconds and never goes back within a process.
 */
export interface Clock {
  nowMs(): number;
  nowMicros(): number;
}

/** Clocks of machines that are kept right differ by less (C9: beyond it an age is unknown). */
export const CLOCK_TOLERANCE_MS = 2000;

/** Unix milliseconds; asking for it anew costs as much as the time does. */
const { timeOrigin } = performance;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  nowMicros: () => Math.floor((timeOrigin + performance.now()) * 1000),
};

/** Clocks of one machine that were not set differ by less. */
const STEP_MICROS = 2_000_000;

/** Unix microseconds: `nowMicros`, unless the wall clock was set since the process started. */
export function wallMicros(clock: Clock): number {
  const [micros, wall] = [clock.nowMicros(), clock.nowMs() * 1000];
  return Math.abs(wall - micros) > STEP_MICROS ? wall : micros;
}
