/** What the processes of a gateway tell of their reads, put together. Pure. */

/** @typedef {import('./shapes.js').Pulse} Pulse */

/** A process that was not heard of for so long has gone. */
const GONE_AFTER_MS = 60_000;

/**
 * @typedef {object} Beat
 * @property {number} at
 * @property {number} reads
 * @property {number | null} p99Ms Of the slowest process: what all of them together had can't be told from that.
 * @property {number} staleOnError
 */

/**
 * Where several processes share one address, another one may answer each time: all that were heard of lately count.
 * @param {ReadonlyMap<string, { readonly pulse: Pulse, readonly heardMs: number }>} heard By process.
 * @param {Pulse} pulse
 * @param {number} nowMs
 */
export function hear(heard, pulse, nowMs) {
  const all = new Map(heard).set(pulse.process, { pulse, heardMs: nowMs });
  for (const [process, { heardMs }] of all) if (nowMs - heardMs >= GONE_AFTER_MS) all.delete(process);
  return all;
}

/**
 * The beats of all processes, step by step since the first, with null for a step in which nothing was read.
 * @param {readonly Pulse[]} pulses
 * @returns {readonly (Beat | null)[]} Oldest first.
 */
export function together(pulses) {
  const stepMs = pulses[0]?.stepMs ?? 1;
  const beats = pulses.flatMap(({ points }) => points);
  const first = Math.min(...beats.map(({ at }) => at));
  const last = Math.max(...beats.map(({ at }) => at));
  if (!Number.isFinite(first) || !Number.isFinite(last)) return [];
  return Array.from({ length: Math.round((last - first) / stepMs) + 1 }, (_, index) => {
    const at = first + index * stepMs;
    return merge(
      at,
      beats.filter((beat) => beat.at === at && beat.reads > 0),
    );
  });
}

/**
 * @param {number} at
 * @param {readonly Beat[]} beats
 * @returns {Beat | null}
 */
function merge(at, beats) {
  if (beats.length === 0) return null;
  const slowest = Math.max(...beats.map(({ p99Ms }) => p99Ms ?? 0));
  const sum = (/** @type {(beat: Beat) => number} */ of) => beats.reduce((total, beat) => total + of(beat), 0);
  return {
    at,
    reads: sum(({ reads }) => reads),
    p99Ms: slowest,
    staleOnError: sum(({ staleOnError }) => staleOnError),
  };
}
