/** A line without axes, to tell at a glance where a number came from. */
import { set, svg } from './dom.js';

const WIDTH = 200;
const HEIGHT = 40;

/** A sparkline; null among its values is a gap. */
export function sparkline() {
  const area = svg('path', { class: 'spark-area' });
  const line = svg('path', { class: 'spark-line', 'vector-effect': 'non-scaling-stroke' });
  const element = svg(
    'svg',
    {
      class: 'spark',
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      'aria-hidden': 'true',
      focusable: 'false',
    },
    area,
    line,
  );
  return {
    element,
    /**
     * @param {readonly (number | null)[]} values Oldest first.
     * @param {{ readonly low: number, readonly high: number }} scale
     */
    draw: (values, scale) => {
      const runs = runsOf(values, scale);
      set(line, 'd', runs.map((run) => `M${run.map(written).join('L')}`).join(''));
      set(
        area,
        'd',
        runs.map((run) => `M${run[0]?.[0] ?? 0},${HEIGHT}L${run.map(written).join('L')}V${HEIGHT}Z`).join(''),
      );
    },
  };
}

/** @typedef {readonly [number, number]} Spot */

/**
 * The stretches without gaps, in the drawing's own units.
 * @param {readonly (number | null)[]} values
 * @param {{ readonly low: number, readonly high: number }} scale
 */
function runsOf(values, { low, high }) {
  /** @type {Spot[][]} */
  const runs = [];
  let isOpen = false;
  const range = high - low === 0 ? 1 : high - low;
  for (const [index, value] of values.entries()) {
    if (value === null) {
      isOpen = false;
      continue;
    }
    const x = values.length < 2 ? WIDTH : (index / (values.length - 1)) * WIDTH;
    const y = HEIGHT - 2 - ((Math.min(high, Math.max(low, value)) - low) / range) * (HEIGHT - 4);
    if (!isOpen) runs.push([]);
    runs.at(-1)?.push([x, y]);
    isOpen = true;
  }
  // One point alone would be no line: it becomes a short one.
  return runs.map((run) => (run.length === 1 && run[0] !== undefined ? [[run[0][0] - 2, run[0][1]], run[0]] : run));
}

/** @param {readonly number[]} spot */
function written([x = 0, y = 0]) {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
