/** Numbers as people read them: with their unit, and never rounded to what would be a lie. Pure. */

/** Stands for a number that there is not. */
export const NONE = '–';

/** Between a number and its unit, so that a line never breaks there. */
const NBSP = '\u00a0';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const two = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** @param {number} value */
export function count(value) {
  return whole.format(value);
}

/**
 * `1 entry`, `12 entries`.
 * @param {number} value
 * @param {string} singular
 * @param {string} [plural]
 */
export function counted(value, singular, plural = `${singular}s`) {
  return `${count(value)} ${value === 1 ? singular : plural}`;
}

/**
 * A share of 0 to 1. Only all is 100 %, and only nothing is 0 %.
 * @param {number | null} ratio
 */
export function percent(ratio) {
  if (ratio === null) return NONE;
  const value = ratio * 100;
  if (ratio === 0 || ratio === 1) return `${whole.format(value)}${NBSP}%`;
  if (value > 99.99) return `>${NBSP}99.99${NBSP}%`;
  if (value < 0.01) return `<${NBSP}0.01${NBSP}%`;
  return `${value < 1 || value > 99 ? two.format(value) : one.format(value)}${NBSP}%`;
}

/**
 * A ratio of two counts, such as store calls per read.
 * @param {number | null} ratio
 */
export function decimal(ratio) {
  if (ratio === null) return NONE;
  if (ratio === 0) return '0';
  return ratio < 0.01 ? `<${NBSP}0.01` : two.format(ratio);
}

/** @param {number | null} perSecond */
export function rate(perSecond) {
  if (perSecond === null) return NONE;
  if (perSecond < 10) return `${decimal(perSecond)}/s`;
  return `${perSecond < 100 ? one.format(perSecond) : whole.format(perSecond)}/s`;
}

const UNITS = /** @type {const} */ ([
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
]);

/**
 * A length of time in at most two units: `1 h 30 min`, `45 s`, `250 ms`.
 * @param {number | null} ms
 */
export function duration(ms) {
  if (ms === null) return NONE;
  if (ms === 0) return `0${NBSP}s`;
  if (ms < 0.1) return `<${NBSP}0.1${NBSP}ms`;
  if (ms < 1000) return `${ms < 10 && ms % 1 !== 0 ? one.format(ms) : whole.format(ms)}${NBSP}ms`;
  // Rounded first: 59.9 s is a minute, and 119.9 s not "1 min 60 s".
  const rounded = ms < 10_000 ? Math.round(ms / 100) * 100 : Math.round(ms / 1000) * 1000;
  if (rounded < 10_000 && rounded % 1000 !== 0) return `${one.format(rounded / 1000)}${NBSP}s`;
  const index = UNITS.findIndex(([, unitMs]) => rounded >= unitMs);
  const [unit, unitMs] = UNITS[index] ?? ['s', 1000];
  const [lesser, lesserMs] = UNITS[index + 1] ?? ['s', 1000];
  const amount = Math.floor(rounded / unitMs);
  const rest = unit === 's' ? 0 : Math.floor((rounded - amount * unitMs) / lesserMs);
  return rest === 0 ? `${amount}${NBSP}${unit}` : `${amount}${NBSP}${unit} ${rest}${NBSP}${lesser}`;
}

/**
 * The same without what nobody reads: seconds beyond ten minutes, minutes beyond a day.
 * @param {number} ms
 */
export function roughly(ms) {
  const stepMs = ms < 1000 ? 1 : ms < 600_000 ? 1000 : ms < 86_400_000 ? 60_000 : 3_600_000;
  return duration(Math.round(ms / stepMs) * stepMs);
}

/**
 * The shortest exact way to write a duration, as the interface takes it: `250ms`, `30s`, `5m`, `2h`, `7d`, `0s`.
 * @param {number} ms A whole number of at least 0.
 */
export function written(ms) {
  if (ms === 0) return '0s';
  const fit = UNITS.find(([, unitMs]) => ms % unitMs === 0);
  return fit === undefined ? `${ms}ms` : `${ms / fit[1]}${fit[0] === 'min' ? 'm' : fit[0]}`;
}

/**
 * Milliseconds of a written duration; null if it is none.
 * @param {string} typed
 */
export function parseDuration(typed) {
  const [, amount, unit = ''] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(typed.replaceAll(/\s/g, '')) ?? [];
  const [, unitMs] = UNITS.find(([name]) => name === (unit === 'm' ? 'min' : unit)) ?? ['ms', 1];
  return amount === undefined ? null : Number(amount) * unitMs;
}

/** @param {number} value */
export function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let scaled = value;
  let index = 0;
  for (; scaled >= 999.5 && index < units.length - 1; index += 1) scaled /= 1000;
  return `${scaled < 10 && index > 0 ? one.format(scaled) : whole.format(scaled)}${NBSP}${units[index] ?? ''}`;
}

// A language of its own, not the browser's: that may be one that Intl refuses, such as en-US@posix.
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const shortClock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const dayAndYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/**
 * The time of day if it is today, else with the day. In the time zone of the browser.
 * @param {number | string} time Unix milliseconds, or ISO 8601.
 */
export function moment(time) {
  const at = new Date(time);
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return clock.format(at);
  const date = at.getFullYear() === now.getFullYear() ? day.format(at) : dayAndYear.format(at);
  return `${date}, ${shortClock.format(at)}`;
}

/** @param {number} ms */
export function timeOfDay(ms) {
  return shortClock.format(new Date(ms));
}
