/** What the last hour says, made of its counts. Pure. */
import { CLASSES } from './shapes.js';

/** @typedef {import('./shapes.js').History} History */
/** @typedef {{ readonly reads: number, readonly hits: number, readonly storeCalls: number, readonly failed: number }} Counts */

/** Counts of no step at all. */
const NOTHING = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };

/**
 * @param {readonly Counts[]} all
 * @returns {Counts}
 */
export function sum(all) {
  return all.reduce(
    (total, each) => ({
      reads: total.reads + each.reads,
      hits: total.hits + each.hits,
      storeCalls: total.storeCalls + each.storeCalls,
      failed: total.failed + each.failed,
    }),
    NOTHING,
  );
}

/**
 * The share of reads that a copy answered at once; null where there were none.
 * @param {Counts} counts
 */
export function hitRatio({ reads, hits }) {
  return reads === 0 ? null : hits / reads;
}

/**
 * @param {History['points'][number]} point
 * @param {readonly string[]} classes
 */
export function countsOf(point, classes = CLASSES) {
  return sum(classes.map((cacheClass) => point.classes.get(cacheClass) ?? NOTHING));
}

/**
 * The points at equal steps, with null where the history has none: a gap in time is a gap in the chart.
 * @param {History} history
 */
export function steps({ stepMs, points }) {
  const [first] = points;
  const last = points.at(-1);
  if (first === undefined || last === undefined) return [];
  const byStep = new Map(points.map((point) => [Math.round((point.at - first.at) / stepMs), point]));
  const length = Math.round((last.at - first.at) / stepMs) + 1;
  return Array.from({ length }, (_, index) => ({ atMs: first.at + index * stepMs, point: byStep.get(index) ?? null }));
}

/**
 * The steps that are over: the last one still counts, so that its rate would be too low.
 * @param {ReturnType<typeof steps>} all
 * @param {number} stepMs
 * @param {number} nowMs
 */
export function whole(all, stepMs, nowMs) {
  return all.filter(({ atMs }) => atMs + stepMs <= nowMs);
}

/** Half a minute of few reads says little: each point is of this many steps. */
const WINDOW = 4;

/**
 * What a class came to in the steps up to each one, for lines that can be read.
 * @param {ReturnType<typeof steps>} all
 * @param {string} cacheClass
 * @returns {readonly (Counts & { readonly steps: number })[]} `steps`: of how many it is; the first ones have fewer.
 */
export function windows(all, cacheClass) {
  return all.map((_, index) => {
    const part = all.slice(Math.max(0, index - WINDOW + 1), index + 1);
    return { ...sum(part.flatMap(({ point }) => point?.classes.get(cacheClass) ?? [])), steps: part.length };
  });
}
