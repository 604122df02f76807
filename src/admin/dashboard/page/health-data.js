/** The numbers of the Health view, made from counts. Pure. */

/** @typedef {import('./answers.js').Pulse} Pulse */
/** @typedef {import('./answers.js').History} History */
/** @typedef {{ readonly reads: number, readonly hits: number, readonly storeCalls: number, readonly failed: number }} Counts */

const NOTHING = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };

/**
 * @param {readonly History['points'][number][]} points
 * @param {string | null} cacheClass Null for all classes.
 * @returns {Counts}
 */
export function sum(points, cacheClass) {
  const each = points.flatMap(({ classes }) =>
    cacheClass === null ? [...classes.values()] : [classes.get(cacheClass) ?? NOTHING],
  );
  return each.reduce(
    (total, one) => ({
      reads: total.reads + one.reads,
      hits: total.hits + one.hits,
      storeCalls: total.storeCalls + one.storeCalls,
      failed: total.failed + one.failed,
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
 * Without the step under way: it still counts, so its rates would be too low.
 * @param {History} history
 * @param {number} nowMs
 * @returns {History}
 */
export function stepsOver({ stepMs, points }, nowMs) {
  return { stepMs, points: points.filter(({ at }) => at + stepMs <= nowMs) };
}

/**
 * About the last minute: the step under way and the one before it.
 * @param {History} history
 * @param {number} nowMs
 */
export function lastMinute(history, nowMs) {
  const recent = history.points.filter(({ at }) => at > nowMs - 2 * history.stepMs);
  return { counts: sum(recent, null), seconds: Math.max(1, (nowMs - (recent[0]?.at ?? nowMs)) / 1000) };
}

/** Half a minute with few reads says little: each point of a line is made of this many steps. */
const WINDOW = 4;

/**
 * A line over time for one class.
 * @param {History} history Only steps that are over.
 * @param {string | null} cacheClass
 * @param {(counts: Counts, seconds: number) => number | null} valueOf
 * @returns {readonly (readonly [number, number | null])[]} Unix milliseconds and value.
 */
export function lineOf({ stepMs, points }, cacheClass, valueOf) {
  return points.map(({ at }, index) => {
    const window = points.slice(Math.max(0, index + 1 - WINDOW), index + 1);
    return [at + stepMs, valueOf(sum(window, cacheClass), (window.length * stepMs) / 1000)];
  });
}

/**
 * The pulses of several processes as one. The slowest p99 stands for all, since theirs don’t tell that of all.
 * @param {readonly Pulse[]} pulses
 * @returns {Pulse['points']} Oldest first; steps without reads are left out.
 */
export function mergePulses(pulses) {
  /** @type {Map<number, Pulse['points'][number]>} */
  const byStep = new Map();
  for (const point of pulses.flatMap(({ points }) => points)) {
    const known = byStep.get(point.at) ?? { at: point.at, reads: 0, p99Ms: null, staleOnError: 0 };
    byStep.set(point.at, {
      at: point.at,
      reads: known.reads + point.reads,
      p99Ms: point.p99Ms === null ? known.p99Ms : Math.max(known.p99Ms ?? 0, point.p99Ms),
      staleOnError: known.staleOnError + point.staleOnError,
    });
  }
  return [...byStep.values()].filter(({ reads }) => reads > 0).toSorted((a, b) => a.at - b.at);
}

/**
 * Requests of the public listener by status, from Prometheus text.
 * @param {string} metrics
 */
export function requestsByStatus(metrics) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const [, labels = '', value] of metrics.matchAll(/^evalgate_http_requests_total\{(.*)\} (\S+)/gm)) {
    const [, status = 'unknown'] = /\bstatus="(\w+)"/.exec(labels) ?? [];
    counts.set(status, (counts.get(status) ?? 0) + Number(value));
  }
  return counts;
}

/**
 * How many requests were answered with each status, and how many per second since the last reading.
 * @param {{ readonly atMs: number, readonly counts: ReadonlyMap<string, number> } | null} last
 * @param {{ readonly atMs: number, readonly counts: ReadonlyMap<string, number> }} now
 */
export function requestRates(last, now) {
  return [...now.counts]
    .map(([status, total]) => {
      const grown = total - (last?.counts.get(status) ?? 0);
      const isKnown = last !== null && grown >= 0 && now.atMs > last.atMs;
      return { status, total, perSecond: isKnown ? (grown * 1000) / (now.atMs - last.atMs) : null };
    })
    .toSorted((a, b) => a.status.localeCompare(b.status));
}
