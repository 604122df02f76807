/** Trials of a time in words. Pure. */
import { count, duration, moment, NONE, percent, roughly } from './format.js';

/** @typedef {import('./trial-shapes.js').Trial} Trial */
/** @typedef {import('./trial-shapes.js').Arm} Arm */

const NBSP = '\u00a0';

/** @type {ReadonlyMap<string, string>} */
const STATES = new Map([
  ['running', 'running'],
  ['ended', 'ended'],
  ['stopped', 'stopped'],
  ['rolled-back', 'rolled back'],
  ['adopted', 'adopted'],
]);

/** @param {string} state */
export function stateWords(state) {
  return STATES.get(state) ?? state;
}

/**
 * A share that somebody chose, as they would write it: `10 %`, `2.5 %`.
 * @param {number} share
 */
export function shareWords(share) {
  return `${Number((share * 100).toFixed(4))}${NBSP}%`;
}

/**
 * What was typed as a share, from 0 to 1: `10%` and `0.1` are the same. Throws where it is none up to the largest.
 * @param {string} typed
 * @param {{ readonly name: string, readonly least: number, readonly largest: number }} field A least of 0 is not allowed itself.
 */
export function shareOf(typed, { name, least, largest }) {
  const [, amount, percentSign] = /^(\d{1,3}(?:\.\d{1,6})?)(%)?$/.exec(typed.replaceAll(/\s/g, '')) ?? [];
  const share = amount === undefined ? Number.NaN : Number(amount) / (percentSign === undefined ? 1 : 100);
  if (share > 0 && share >= least && share <= largest) return Number(share.toFixed(8));
  throw new Error(
    `${name}: “${typed}” is no share for this. Write 10% or 0.1; ${least === 0 ? 'above 0' : `at least ${shareWords(least)}`} and at most ${shareWords(largest)}.`,
  );
}

const LEAST_FACTOR = 1.1;
const LARGEST_FACTOR = 100;

/**
 * What was typed as a multiple. Throws where it is none, or out of its bounds.
 * @param {string} name What the field is called.
 * @param {string} typed
 */
export function factorOf(name, typed) {
  const factor = /^\d{1,6}(?:\.\d{1,6})?$/.test(typed.trim()) ? Number(typed) : Number.NaN;
  if (factor >= LEAST_FACTOR && factor <= LARGEST_FACTOR) return factor;
  throw new Error(
    `${name}: “${typed}” is no number for this. Write 1.5 or 2; at least ${LEAST_FACTOR} and at most ${LARGEST_FACTOR}.`,
  );
}

/**
 * Calls to the store that a read costs.
 * @param {number | null} calls
 */
export function perRead(calls) {
  if (calls === null) return NONE;
  return calls > 0 && calls < 0.001 ? `<${NBSP}0.001` : calls.toFixed(3);
}

/** @param {Arm} arm */
export function failedWords({ storeCalls, storeFailureRatio }) {
  return storeFailureRatio === null ? NONE : `${percent(storeFailureRatio)} of ${count(storeCalls)}`;
}

/**
 * How much of a running trial is left.
 * @param {Trial} trial
 * @param {number} nowMs
 */
export function leftWords({ until }, nowMs) {
  const leftMs = until - nowMs;
  return leftMs > 0 ? `${duration(roughly(leftMs))} left, until ${moment(until, nowMs)}` : 'about to end';
}

/**
 * What the trial costs the store beside the rest, from where on it goes back by itself, and why it can't be judged yet.
 * @param {Trial} trial
 */
export function limitWords({ arms: { trial, control }, limits: { maxStoreLoad, maxErrors }, reason }) {
  const load = times(trial.storeCallsPerRead, control.storeCallsPerRead);
  const errors = more(trial.storeFailureRatio, control.storeFailureRatio);
  // A shorter time is expected to cost more.
  const most = trial.freshMs < control.freshMs ? 'times what is predicted' : 'times';
  return [
    `A read costs the store ${load}; clearly above ${maxStoreLoad}${NBSP}${most} the trial goes back by itself.`,
    `Of its store calls ${errors} fail; clearly above ${points(maxErrors)} more it goes back by itself.`,
    ...(reason === null ? [] : [reason]),
  ];
}

/**
 * @param {number | null} trial
 * @param {number | null} control
 */
function times(trial, control) {
  if (trial === null || control === null) return 'an amount that is not known yet';
  if (control === 0) return trial === 0 ? 'nothing, as that of the rest' : 'something, that of the rest nothing';
  return `${(trial / control).toFixed(2)}${NBSP}times what one of the rest does`;
}

/**
 * @param {number | null} trial
 * @param {number | null} control
 */
function more(trial, control) {
  if (trial === null || control === null) return 'a share that is not known yet';
  const difference = trial - control;
  if (Math.abs(difference) < 0.0005) return 'as many as of the rest';
  return `${points(Math.abs(difference))} ${difference > 0 ? 'more' : 'fewer'} than of the rest`;
}

/** @param {number} difference Of two shares. */
function points(difference) {
  return `${Number((difference * 100).toFixed(1))}${NBSP}points`;
}
