/** Reads the curve of a class: the predictions for TTLs that were simulated, and between them. Pure. */
import { decimal, duration, NONE, percent, rate } from './format.js';

/** @typedef {import('./api.js').Answer<'advice'>['classes'][number]['curve'][number]} CurvePoint */

/**
 * The place of a TTL in the curve, such as 2.5 for half way between the third and the fourth by its logarithm; null
 * outside of the curve.
 * @param {readonly CurvePoint[]} curve Shortest TTL first.
 * @param {number} freshMs
 */
export function positionOf(curve, freshMs) {
  const at = curve.findIndex((point) => point.freshMs >= freshMs);
  const [last, next] = [curve[at - 1], curve[at]];
  if (next?.freshMs === freshMs) return at;
  if (last === undefined || next === undefined || last.freshMs <= 0) return null;
  return at - 1 + Math.log(freshMs / last.freshMs) / Math.log(next.freshMs / last.freshMs);
}

/**
 * The prediction for a TTL, interpolated between its neighbours; null outside of the curve, where nothing is known.
 * @param {readonly CurvePoint[]} curve
 * @param {number} freshMs
 * @returns {CurvePoint | null}
 */
export function predict(curve, freshMs) {
  const place = positionOf(curve, freshMs) ?? -1;
  const [last, next] = [curve[Math.floor(place)], curve[Math.ceil(place)]];
  if (last === undefined || next === undefined) return null;
  const mix = (/** @type {number} */ from, /** @type {number} */ to) => from + (to - from) * (place % 1);
  const isKnown = last.outdatedRatio !== null && next.outdatedRatio !== null;
  return {
    freshMs,
    hitRatio: mix(last.hitRatio, next.hitRatio),
    hitRatioError: Math.max(last.hitRatioError, next.hitRatioError),
    storeCallsPerRead: mix(last.storeCallsPerRead, next.storeCallsPerRead),
    storeCallsPerReadError: Math.max(last.storeCallsPerReadError, next.storeCallsPerReadError),
    upstreamRps: mix(last.upstreamRps, next.upstreamRps),
    upstreamRpsError: Math.max(last.upstreamRpsError, next.upstreamRpsError),
    totalRps: mix(last.totalRps, next.totalRps),
    ageP90Ms: mix(last.ageP90Ms, next.ageP90Ms),
    outdatedRatio: isKnown ? mix(last.outdatedRatio ?? 0, next.outdatedRatio ?? 0) : null,
    outdatedRatioError: isKnown ? Math.max(last.outdatedRatioError ?? 0, next.outdatedRatioError ?? 0) : null,
    extrapolated: last.extrapolated || next.extrapolated,
  };
}

/**
 * The numbers of a prediction, and how far chance may move them.
 * @type {readonly { readonly name: string, readonly valueOf: (point: CurvePoint) => number | null, readonly errorOf: (point: CurvePoint) => number | null, readonly show: (value: number) => string }[]}
 */
export const MEASURES = [
  {
    name: 'Store calls per read',
    valueOf: ({ storeCallsPerRead }) => storeCallsPerRead,
    errorOf: ({ storeCallsPerReadError }) => storeCallsPerReadError,
    show: decimal,
  },
  {
    name: 'Store calls',
    valueOf: ({ upstreamRps }) => upstreamRps,
    errorOf: ({ upstreamRpsError }) => upstreamRpsError,
    show: rate,
  },
  {
    name: 'Store calls of all classes',
    valueOf: ({ totalRps }) => totalRps,
    errorOf: ({ upstreamRpsError }) => upstreamRpsError,
    show: rate,
  },
  { name: 'Age p90', valueOf: ({ ageP90Ms }) => ageP90Ms, errorOf: () => null, show: duration },
  {
    name: 'Outdated',
    valueOf: ({ outdatedRatio }) => outdatedRatio,
    errorOf: ({ outdatedRatioError }) => outdatedRatioError,
    show: percent,
  },
];

/**
 * A text for each measure.
 * @param {CurvePoint | null} point
 */
export function texts(point) {
  return MEASURES.map(({ valueOf, errorOf, show }) => {
    const value = point === null ? null : valueOf(point);
    if (point === null || value === null) return 'not known';
    const error = errorOf(point);
    return error === null ? show(value) : `${show(value)} ±${show(error)}`;
  });
}

/**
 * Said of a time that makes the store work harder than it may; empty for any other.
 * @param {import('./api.js').Answer<'advice'>['load']} load
 * @param {CurvePoint | null} point
 */
export function warningOf({ upstreamRps, limitRps, limit }, point) {
  if (point === null || point.totalRps <= Math.max(upstreamRps, limitRps)) return '';
  return `WARNING: the store would get ${rate(point.totalRps)} instead of ${rate(upstreamRps)}, all classes together: more than ${limit}.`;
}

/**
 * How each measure differs.
 * @param {CurvePoint | null} from
 * @param {CurvePoint | null} to
 */
export function differences(from, to) {
  return MEASURES.map(({ valueOf, show }) => {
    const [before, after] = [from, to].map((point) => (point === null ? null : valueOf(point)));
    if (typeof before !== 'number' || typeof after !== 'number') return NONE;
    if (show(before) === show(after)) return 'the same';
    return `${after < before ? '−' : '+'}${show(Math.abs(after - before))}`;
  });
}

/**
 * One row for each distinct prediction: neighbours that read the same are one row for all of their TTLs.
 * @param {readonly CurvePoint[]} curve
 */
export function distinct(curve) {
  /** @type {{ first: string, last: string, shown: readonly string[] }[]} */
  const rows = [];
  for (const point of curve) {
    const ttl = duration(point.freshMs);
    const shown = [point.extrapolated ? 'extrapolated' : 'observed', ...texts(point)];
    const before = rows.at(-1);
    if (before?.shown.join() === shown.join()) before.last = ttl;
    else rows.push({ first: ttl, last: ttl, shown });
  }
  return rows.map(({ first, last, shown }) => ({
    key: first,
    cells: [first === last ? first : `${first} to ${last}`, ...shown],
  }));
}
