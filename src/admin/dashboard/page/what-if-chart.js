/** Hit ratio, store calls and outdated share over the time that answers stay fresh: three charts over one axis. */
import { axis, chart, colour, niceTop } from './chart.js';
import { fill, h, set } from './dom.js';
import { duration, percent, rate } from './format.js';
import { nearest } from './prediction.js';

/** @typedef {import('./shapes.js').CurvePoint} CurvePoint */

/**
 * @typedef {object} Marks
 * @property {number} inForceMs
 * @property {number | null} recommendedMs
 * @property {number} chosenMs
 */

/** Where the axis has its marks: times that people think in. */
const TICKS_MS = [500, 1000, 5000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000, 86_400_000];
const LEFT = 56;

const ROWS = /** @type {const} */ ([
  {
    id: 'hits',
    name: 'Hit ratio',
    ink: '--line-hits',
    valueOf: (/** @type {CurvePoint} */ point) => point.hitRatio * 100,
    unit: ' %',
    top: (/** @type {number} */ _highest) => 100,
  },
  {
    id: 'store',
    name: 'Store calls',
    ink: '--line-store',
    valueOf: (/** @type {CurvePoint} */ point) => point.upstreamRps,
    unit: '/s',
    top: niceTop,
  },
  {
    id: 'outdated',
    name: 'Outdated answers',
    ink: '--line-outdated',
    valueOf: (/** @type {CurvePoint} */ point) => (point.outdatedRatio === null ? null : point.outdatedRatio * 100),
    unit: ' %',
    top: niceTop,
  },
]);

/**
 * @param {(index: number) => void} choose Told the place in the curve that was pointed at.
 */
export function whatIfChart(choose) {
  /** @type {readonly CurvePoint[]} */
  let curve = [];
  /** @type {Marks} */
  let marks = { inForceMs: 0, recommendedMs: null, chosenMs: 0 };
  const holders = ROWS.map(({ name, id }) => ({
    id,
    element: h('div', {
      class: `chart chart-what-if chart-${id}`,
      role: 'img',
      'aria-label': `${name} over the time that answers stay fresh; the table below has the numbers`,
    }),
    note: h('span', { class: 'note' }),
    name,
  }));
  const element = h(
    'div',
    { class: 'what-if-charts' },
    ...holders.map(({ element: holder, name, note, id }) =>
      h('figure', {}, h('figcaption', {}, h('span', { class: `key key-${id}` }), name, note), holder),
    ),
  );
  /** @type {readonly uPlot[] | null} */
  let plots = null;
  const pick = (/** @type {uPlot} */ plot) => {
    const valueMs = plot.posToVal(plot.cursor.left ?? 0, 'x');
    if (curve.length > 0) choose(nearest(curve, valueMs));
  };
  return {
    element,
    /**
     * @param {readonly CurvePoint[]} newCurve
     * @param {Marks} newMarks
     */
    draw: (newCurve, newMarks) => {
      curve = newCurve;
      marks = newMarks;
      const isUntaught = curve.every((point) => point.outdatedRatio === null);
      const note = holders.at(-1)?.note;
      if (note !== undefined)
        fill(
          note,
          isUntaught
            ? ': not known until the store has been asked again often enough for what it had answered before'
            : '',
        );
      set(element, 'data-empty', curve.length < 2);
      if (curve.length < 2) return;
      plots ??= ROWS.map((row, index) =>
        chart(
          holders[index]?.element ?? element,
          optionsOf(row, { isLast: index === ROWS.length - 1, marksOf: () => marks, pick }),
          dataOf(row, curve),
        ),
      );
      for (const [index, row] of ROWS.entries()) plots[index]?.setData(dataOf(row, curve));
    },
  };
}

/**
 * What was observed and what lies beyond as two lines, the second one broken; they meet in the last point observed.
 * @param {(typeof ROWS)[number]} row
 * @param {readonly CurvePoint[]} curve
 * @returns {uPlot.AlignedData}
 */
function dataOf({ valueOf }, curve) {
  const isObserved = (/** @type {number} */ index) => curve[index]?.extrapolated === false;
  return [
    curve.map(({ freshMs }) => freshMs),
    curve.map((point, index) => (isObserved(index) ? valueOf(point) : null)),
    curve.map((point, index) => (!isObserved(index) || !isObserved(index + 1) ? valueOf(point) : null)),
  ];
}

/**
 * @param {(typeof ROWS)[number]} row
 * @param {{ readonly isLast: boolean, readonly marksOf: () => Marks, readonly pick: (plot: uPlot) => void }} how
 * @returns {Omit<uPlot.Options, 'width' | 'height'>}
 */
function optionsOf({ ink, unit, top }, { isLast, marksOf, pick }) {
  const stroke = () => colour(ink);
  const points = { show: true, size: 5, width: 1, fill: stroke, stroke };
  return {
    padding: [6, 16, 0, 0],
    scales: {
      x: { time: false, distr: 3, range: (_plot, low, high) => [low, high] },
      y: { range: (_plot, _low, high) => [0, top(high ?? 0)] },
    },
    cursor: {
      sync: { key: 'what-if' },
      y: false,
      drag: { x: false, y: false },
      points: { size: 7 },
      bind: { click: (plot) => () => (pick(plot), null) },
    },
    axes: [
      axis({
        show: true,
        size: isLast ? 26 : 4,
        splits: (plot) =>
          TICKS_MS.filter((ms) => ms >= (plot.scales['x']?.min ?? 0) && ms <= (plot.scales['x']?.max ?? 0)),
        filter: (_plot, splits) => splits,
        values: (plot, splits) =>
          splits.map((ms, index) => (isLast && (plot.width > 460 || index % 2 === 1) ? duration(ms) : '')),
      }),
      axis({ size: LEFT, space: 26, values: (_plot, splits) => splits.map((value) => `${value}${unit}`) }),
    ],
    series: [
      {},
      { stroke, width: 2, points },
      { stroke, width: 2, dash: [4, 4], points: { ...points, fill: () => colour('--panel') } },
    ],
    hooks: { draw: [(plot) => drawMarks(plot, marksOf())] },
  };
}

/**
 * Lines through all three charts: the time in force, the recommended one, the chosen one; each of its own form.
 * @param {uPlot} plot
 * @param {Marks} marks
 */
function drawMarks(plot, { inForceMs, recommendedMs, chosenMs }) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const line = (
    /** @type {number | null} */ ms,
    /** @type {string} */ ink,
    /** @type {readonly number[]} */ dash,
    /** @type {number} */ width,
  ) => {
    const { min = null, max = null } = plot.scales['x'] ?? {};
    if (ms === null || min === null || max === null || ms < min || ms > max) return;
    const x = plot.valToPos(ms, 'x', true);
    ctx.strokeStyle = colour(ink);
    ctx.lineWidth = width * ratio;
    ctx.setLineDash(dash.map((length) => length * ratio));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  };
  ctx.save();
  line(recommendedMs, '--good', [2, 3], 2);
  line(inForceMs, '--ink-2', [], 1.5);
  line(chosenMs, '--accent', [], 2.5);
  ctx.restore();
}

/**
 * A point of the curve as a row of a table.
 * @param {CurvePoint} point
 */
export function curveRow(point) {
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, duration(point.freshMs)),
    h('td', { class: 'number' }, percent(point.hitRatio)),
    h('td', { class: 'number' }, rate(point.upstreamRps)),
    h('td', { class: 'number' }, duration(point.ageP90Ms)),
    h('td', { class: 'number' }, point.outdatedRatio === null ? 'not known yet' : percent(point.outdatedRatio)),
    h('td', { class: 'number faint' }, point.extrapolated ? 'extrapolated' : 'observed'),
  );
}
