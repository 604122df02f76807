/** What is predicted for a time, at the times that were tried and between them, and how it differs from now. Pure. */
import { duration, NONE, percent, rate } from './format.js';

/** @typedef {import('./shapes.js').CurvePoint} CurvePoint */

/**
 * @typedef {object} Prediction
 * @property {CurvePoint} point
 * @property {readonly [number, number] | null} between The two tried times that it lies between; null where it was tried itself.
 */

/**
 * What is predicted for a time: of the curve where it was tried, else between its neighbours, linear over the logarithm
 * of the time. Null outside of what was tried: there nothing is known.
 * @param {readonly CurvePoint[]} curve Shortest time first.
 * @param {number} freshMs
 * @returns {Prediction | null}
 */
export function predict(curve, freshMs) {
  const tried = curve.find((point) => point.freshMs === freshMs);
  if (tried !== undefined) return { point: tried, between: null };
  const above = curve.findIndex((point) => point.freshMs > freshMs);
  const next = curve[above];
  const last = curve[above - 1];
  if (next === undefined || last === undefined || last.freshMs <= 0) return null;
  const weight = Math.log(freshMs / last.freshMs) / Math.log(next.freshMs / last.freshMs);
  const mix = (/** @type {number} */ from, /** @type {number} */ to) => from + (to - from) * weight;
  return {
    between: [last.freshMs, next.freshMs],
    point: {
      freshMs,
      hitRatio: mix(last.hitRatio, next.hitRatio),
      upstreamRps: mix(last.upstreamRps, next.upstreamRps),
      ageP90Ms: mix(last.ageP90Ms, next.ageP90Ms),
      outdatedRatio:
        last.outdatedRatio === null || next.outdatedRatio === null ? null : mix(last.outdatedRatio, next.outdatedRatio),
      extrapolated: last.extrapolated || next.extrapolated,
    },
  };
}

/**
 * The place in the curve that is nearest to a time, over its logarithm.
 * @param {readonly CurvePoint[]} curve
 * @param {number} freshMs
 */
export function nearest(curve, freshMs) {
  const distance = (/** @type {CurvePoint | undefined} */ point) =>
    Math.abs(Math.log(Math.max(1, point?.freshMs ?? 1)) - Math.log(Math.max(1, freshMs)));
  return curve.reduce((best, point, index) => (distance(point) < distance(curve[best]) ? index : best), 0);
}

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {string} name
 * @property {string} now
 * @property {string} predicted
 * @property {string} difference
 * @property {'better' | 'worse' | 'same'} kind
 */

/**
 * The numbers of the present beside those predicted, and the difference in words.
 * @param {CurvePoint} now
 * @param {CurvePoint} then
 * @returns {readonly Row[]}
 */
export function compare(now, then) {
  return [
    row(
      { id: 'hits', name: 'Hit ratio', now: percent(now.hitRatio), predicted: percent(then.hitRatio) },
      points(now.hitRatio, then.hitRatio),
      1,
    ),
    row(
      { id: 'store', name: 'Store calls', now: rate(now.upstreamRps), predicted: rate(then.upstreamRps) },
      share(now.upstreamRps, then.upstreamRps),
      -1,
    ),
    row(
      { id: 'age', name: 'Age p90', now: duration(now.ageP90Ms), predicted: duration(then.ageP90Ms) },
      longer(now.ageP90Ms, then.ageP90Ms),
      -1,
    ),
    row(
      {
        id: 'outdated',
        name: 'Outdated',
        now: outdated(now.outdatedRatio),
        predicted: outdated(then.outdatedRatio),
      },
      now.outdatedRatio === null || then.outdatedRatio === null
        ? { text: NONE, sign: 0 }
        : points(now.outdatedRatio, then.outdatedRatio),
      -1,
    ),
  ];
}

/** @param {number | null} ratio */
export function outdated(ratio) {
  return ratio === null ? 'not known yet' : percent(ratio);
}

/** @typedef {{ readonly text: string, readonly sign: number }} Difference */

/**
 * @param {Pick<Row, 'id' | 'name' | 'now' | 'predicted'>} texts
 * @param {Difference} difference
 * @param {1 | -1} good The sign that is to be wished for.
 * @returns {Row}
 */
function row(texts, { text, sign }, good) {
  return { ...texts, difference: text, kind: sign === 0 ? 'same' : sign === good ? 'better' : 'worse' };
}

/**
 * Of two shares.
 * @param {number} from
 * @param {number} to
 * @returns {Difference}
 */
function points(from, to) {
  const rounded = Math.round((to - from) * 1000) / 10;
  if (rounded === 0) return { text: 'the same', sign: 0 };
  return { text: `${signed(rounded, Math.abs(rounded).toFixed(1))}\u00a0points`, sign: Math.sign(rounded) };
}

/**
 * Of two amounts, as a share of the first.
 * @param {number} from
 * @param {number} to
 * @returns {Difference}
 */
function share(from, to) {
  if (from === 0) return to === 0 ? { text: 'the same', sign: 0 } : { text: 'from none', sign: 1 };
  const rounded = Math.round((to / from - 1) * 100);
  if (rounded === 0) return { text: 'the same', sign: 0 };
  return { text: `${signed(rounded, String(Math.abs(rounded)))}\u00a0%`, sign: Math.sign(rounded) };
}

/**
 * Of two lengths of time.
 * @param {number} fromMs
 * @param {number} toMs
 * @returns {Difference}
 */
function longer(fromMs, toMs) {
  const difference = toMs - fromMs;
  if (Math.abs(difference) < 50) return { text: 'the same', sign: 0 };
  return { text: signed(difference, duration(Math.abs(difference))), sign: Math.sign(difference) };
}

/**
 * @param {number} value
 * @param {string} amount
 */
function signed(value, amount) {
  return `${value < 0 ? '−' : '+'}${amount}`;
}
