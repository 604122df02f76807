/** Numbers as people read them: always with their unit, never rounded to what would be a lie. Pure. */

/** Stands where there is no number, as wide as one. */
export const NONE = '–';

/** Between a number and its unit, so that they never part at the end of a line. */
const NBSP = '\u00a0';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const two = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** @param {number} value */
export function count(value) {
  return whole.format(value);
}

/**
 * A share of 0..1. What is short of all, or more than nothing, is never shown as 100 % or 0 %.
 * @param {number | null} ratio
 */
export function percent(ratio) {
  if (ratio === null) return NONE;
  if (ratio === 0 || ratio === 1) return `${whole.format(ratio * 100)}${NBSP}%`;
  const value = ratio * 100;
  if (value < 0.01) return `<${NBSP}0.01${NBSP}%`;
  if (value > 99.99) return `>${NBSP}99.99${NBSP}%`;
  return `${value < 1 || value > 99 ? two.format(value) : one.format(value)}${NBSP}%`;
}

/**
 * @param {number | null} perSecond
 */
export function rate(perSecond) {
  if (perSecond === null) return NONE;
  if (perSecond === 0) return '0/s';
  if (perSecond < 0.01) return `<${NBSP}0.01/s`;
  if (perSecond < 10) return `${two.format(perSecond)}/s`;
  return `${perSecond < 100 ? one.format(perSecond) : whole.format(perSecond)}/s`;
}

const STEPS = /** @type {const} */ ([
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
]);

/**
 * A length of time, in at most two units: `1 h 30 min`, `45 s`, `250 ms`.
 * @param {number | null} ms
 */
export function duration(ms) {
  if (ms === null) return NONE;
  if (ms === 0) return `0${NBSP}s`;
  if (ms < 1000) return `${ms < 10 && ms % 1 !== 0 ? one.format(ms) : whole.format(ms)}${NBSP}ms`;
  // To whole seconds first: 59.9 s would else become 59 s, and 119.9 s "1 min 60 s".
  const rounded = ms < 10_000 ? Math.round(ms / 100) * 100 : Math.round(ms / 1000) * 1000;
  if (rounded < 10_000 && rounded % 1000 !== 0) return `${one.format(rounded / 1000)}${NBSP}s`;
  const index = STEPS.findIndex(([, unitMs]) => rounded >= unitMs);
  const [unit, unitMs] = STEPS[index] ?? ['s', 1000];
  const [lesserUnit, lesserMs] = STEPS[index + 1] ?? ['s', 1000];
  const amount = Math.floor(rounded / unitMs);
  const rest = unit === 's' ? 0 : Math.floor((rounded - amount * unitMs) / lesserMs);
  return rest === 0 ? `${amount}${NBSP}${unit}` : `${amount}${NBSP}${unit} ${rest}${NBSP}${lesserUnit}`;
}

/**
 * The shortest exact way to write a duration, as the interface takes it: `250ms`, `30s`, `5m`, `2h`, `7d`, `0s`.
 * @param {number} ms A whole number of at least 0.
 */
export function written(ms) {
  if (ms === 0) return '0s';
  for (const [unit, unitMs] of STEPS) {
    if (ms % unitMs === 0) return `${ms / unitMs}${unit === 'min' ? 'm' : unit}`;
  }
  return `${ms}ms`;
}

const UNITS_MS = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/**
 * Milliseconds of a written duration; null where the text is none. Blanks don't count.
 * @param {string} typed
 */
export function parseDuration(typed) {
  const [, amount, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(typed.replaceAll(/\s/g, '').replace(/min$/, 'm')) ?? [];
  const unitMs = UNITS_MS.get(unit ?? '');
  return amount === undefined || unitMs === undefined ? null : Number(amount) * unitMs;
}

/** @param {number} value */
export function bytes(value) {
  if (value < 1000) return `${whole.format(value)}${NBSP}B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let scaled = value / 1000;
  let index = 0;
  while (scaled >= 999.5 && index < units.length - 1) {
    scaled /= 1000;
    index += 1;
  }
  return `${scaled < 10 ? one.format(scaled) : whole.format(scaled)}${NBSP}${units[index] ?? ''}`;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const shortClock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const dayAndYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/**
 * The time of day where it is today, else with its day. In the zone of who looks.
 * @param {number} ms
 * @param {number} nowMs
 */
export function moment(ms, nowMs) {
  const at = new Date(ms);
  const now = new Date(nowMs);
  if (at.toDateString() === now.toDateString()) return clock.format(at);
  const date = at.getFullYear() === now.getFullYear() ? day.format(at) : dayAndYear.format(at);
  return `${date}, ${shortClock.format(at)}`;
}

/** @param {number} ms */
export function timeOfDay(ms) {
  return shortClock.format(new Date(ms));
}

/**
 * @param {number} ms
 * @param {number} nowMs
 */
export function ago(ms, nowMs) {
  const elapsedMs = Math.max(0, nowMs - ms);
  return elapsedMs < 1000 ? 'just now' : `${duration(roughly(elapsedMs))} ago`;
}

/**
 * Without what nobody reads: seconds beyond ten minutes, minutes beyond a day.
 * @param {number} ms
 */
export function roughly(ms) {
  if (ms < 1000) return ms;
  const stepMs = ms < 600_000 ? 1000 : ms < 86_400_000 ? 60_000 : 3_600_000;
  return Math.round(ms / stepMs) * stepMs;
}
