/** The numbers of the Health view, made from counts. Pure. */

/** @typedef {import('./api.js').Answer<'history'>} History */
/** @typedef {History['points'][number]} Point */
/** @typedef {{ readonly reads: number, readonly hits: number, readonly storeCalls: number, readonly failed: number }} Counts */

const NOTHING = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };

/**
 * @param {readonly Point[]} points
 * @param {string | null} cacheClass Null for all classes.
 * @returns {Counts}
 */
export function sum(points, cacheClass) {
  const each = points.flatMap(({ classes }) =>
    cacheClass === null ? Object.values(classes) : [classes[cacheClass] ?? NOTHING],
  );
  return each.reduce(
    (all, one) => ({
      reads: all.reads + one.reads,
      hits: all.hits + one.hits,
      storeCalls: all.storeCalls + one.storeCalls,
      failed: all.failed + one.failed,
    }),
    NOTHING,
  );
}

/**
 * The share of reads that were served without waiting for the store; null without reads.
 * @param {Counts} counts
 */
export function hitRatio({ reads, hits }) {
  return reads === 0 ? null : hits / reads;
}

/** @param {Counts} counts */
export function callsPerRead({ reads, storeCalls }) {
  return reads === 0 ? null : storeCalls / reads;
}

/**
 * About the last minute: the step under way and the one before it.
 * @param {History} history
 * @param {number} nowMs
 */
export function lastMinute({ stepMs, points }, nowMs) {
  const recent = points.filter(({ at }) => Date.parse(at) > nowMs - 2 * stepMs);
  const seconds = Math.max(1, (nowMs - Date.parse(recent[0]?.at ?? '')) / 1000 || 1);
  return { recent, counts: sum(recent, null), seconds };
}

/**
 * The values of a line over time. There is a gap where a step has neither requests nor calls: nothing is known of that time.
 * @param {readonly Point[]} points Only steps that are over.
 * @param {{ readonly stepMs: number, readonly steps: number }} averaged Each point of the line is made of so many steps.
 * @param {(points: readonly Point[], seconds: number) => number | null} valueOf
 * @returns {readonly (number | null)[]} A value for each point.
 */
export function lineOf(points, { stepMs, steps }, valueOf) {
  return points.map((point, index) => {
    const { reads, storeCalls } = sum([point], null);
    const isGap = reads === 0 && storeCalls === 0 && Object.keys(point.statuses).length === 0;
    const window = points.slice(Math.max(0, index + 1 - steps), index + 1);
    return isGap ? null : valueOf(window, (window.length * stepMs) / 1000);
  });
}

/**
 * A number of the points, over all of them.
 * @param {readonly Point[]} points
 * @param {(point: Point) => number} valueOf
 */
export function total(points, valueOf) {
  return points.reduce((result, point) => result + valueOf(point), 0);
}
