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

/** The figures that are shown of a prediction. Each has an error: how far chance may move it. */
export const MEASURES = /** @type {const} */ ([
  { name: 'Store calls per read', figure: 'storeCallsPerRead', show: decimal },
  { name: 'Store calls', figure: 'upstreamRps', show: rate },
  { name: 'Store calls of all classes', figure: 'totalRps', show: rate },
  { name: 'Age p90', figure: 'ageP90Ms', show: duration },
  { name: 'Outdated', figure: 'outdatedRatio', show: percent },
]);
/** @typedef {typeof MEASURES[number]['figure']} Figure */
/** @typedef {Pick<CurvePoint, 'freshMs' | Figure | `${Figure}Error`>} Prediction */

/**
 * Interpolated between the neighbours of the TTL; null outside of the curve, where nothing is known.
 * @param {readonly CurvePoint[]} curve
 * @param {number} freshMs
 * @returns {Prediction | null}
 */
export function predict(curve, freshMs) {
  const place = positionOf(curve, freshMs) ?? -1;
  const [last, next] = [curve[Math.floor(place)], curve[Math.ceil(place)]];
  if (last === undefined || next === undefined) return null;
  const mix = (/** @type {number} */ from, /** @type {number} */ to) => from + (to - from) * (place % 1);
  const isKnown = last.outdatedRatio !== null && next.outdatedRatio !== null;
  return {
    freshMs,
    storeCallsPerRead: mix(last.storeCallsPerRead, next.storeCallsPerRead),
    storeCallsPerReadError: Math.max(last.storeCallsPerReadError, next.storeCallsPerReadError),
    upstreamRps: mix(last.upstreamRps, next.upstreamRps),
    upstreamRpsError: Math.max(last.upstreamRpsError, next.upstreamRpsError),
    totalRps: mix(last.totalRps, next.totalRps),
    totalRpsError: Math.max(last.totalRpsError, next.totalRpsError),
    ageP90Ms: mix(last.ageP90Ms, next.ageP90Ms),
    ageP90MsError: Math.max(last.ageP90MsError, next.ageP90MsError),
    outdatedRatio: isKnown ? mix(last.outdatedRatio ?? 0, next.outdatedRatio ?? 0) : null,
    outdatedRatioError: isKnown ? Math.max(last.outdatedRatioError ?? 0, next.outdatedRatioError ?? 0) : null,
  };
}

/**
 * A text for each measure.
 * @param {Prediction | null} point
 */
export function texts(point) {
  return MEASURES.map(({ figure, show }) => {
    const value = point?.[figure] ?? null;
    const error = point?.[`${figure}Error`] ?? null;
    if (value === null) return 'not known';
    // No figure is below 0: one that chance may move by more than itself has its upper bound.
    return error !== null && error > value
      ? `${show(value)}, to ${show(value + error)}`
      : `${show(value)} ±${show(error)}`;
  });
}

/**
 * Said of a time that makes the store work harder than it may; empty for any other.
 * @param {import('./api.js').Answer<'advice'>['load']} load
 * @param {Prediction | null} point
 */
export function warningOf({ upstreamRps, limitRps, limit }, point) {
  if (point === null || point.totalRps <= Math.max(upstreamRps, limitRps)) return '';
  return `WARNING: the store would get ${rate(point.totalRps)} instead of ${rate(upstreamRps)}, all classes together: more than ${limit}.`;
}

/**
 * How each measure differs.
 * @param {Prediction | null} from
 * @param {Prediction | null} to
 */
export function differences(from, to) {
  return MEASURES.map(({ figure, show }) => {
    const [before, after] = [from?.[figure] ?? null, to?.[figure] ?? null];
    if (before === null || after === null) return NONE;
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
