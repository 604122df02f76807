/** The last hour by class: hit ratio and store load, side by side, with one legend for both. */
import { axis, chart, classColour, classDash, niceTop } from './chart.js';
import { h, set } from './dom.js';
import { timeOfDay } from './format.js';
import { hitRatio, steps, whole, windows } from './hour-data.js';
import { legendOf } from './hour-legend.js';
import { panel } from './panel.js';
import { CLASSES } from './shapes.js';

/** @typedef {ReturnType<typeof steps>} Steps */

/**
 * @param {import('./resource.js').Resource<import('./shapes.js').History>} history
 */
export function hourPanel(history) {
  /** @type {Set<string>} */
  const shown = new Set(CLASSES);
  /** @type {Steps} */
  let hour = [];
  /** @type {number | null} */
  let cursor = null;
  const ratioHolder = h('div', {
    class: 'chart chart-hour',
    role: 'img',
    'aria-label': 'Hit ratio of each class over the last hour',
  });
  const loadHolder = h('div', {
    class: 'chart chart-hour',
    role: 'img',
    'aria-label': 'Store calls per second of each class over the last hour',
  });
  /** @type {{ readonly ratio: uPlot, readonly load: uPlot } | null} */
  let plots = null;
  const legend = legendOf((cacheClass) => {
    if (!shown.delete(cacheClass)) shown.add(cacheClass);
    for (const plot of [plots?.ratio, plots?.load])
      plot?.setSeries(1 + CLASSES.findIndex((one) => one === cacheClass), { show: shown.has(cacheClass) });
    legend.toggled(shown);
  });
  const showLegend = () => {
    if (history.value !== null) legend.show(hour, { cursor, stepMs: history.value.stepMs });
  };
  const moved = (/** @type {uPlot} */ plot) => {
    const index = plot.cursor.idx ?? null;
    if (index === cursor) return;
    cursor = index;
    showLegend();
  };
  const draw = () => {
    if (history.value === null) return;
    hour = whole(steps(history.value), history.value.stepMs, Date.now());
    const data = dataOf(hour, history.value.stepMs);
    plots ??= {
      ratio: chart(ratioHolder, optionsOf({ axisOf: (value) => `${value} %`, top: () => 100, moved }), data.ratio),
      load: chart(loadHolder, optionsOf({ axisOf: (value) => `${value}/s`, top: niceTop, moved }), data.load),
    };
    plots.ratio.setData(data.ratio);
    plots.load.setData(data.load);
    set(
      section,
      'data-empty',
      hour.every(({ point }) => point === null),
    );
    showLegend();
  };
  const section = panel(
    { id: 'hour', title: 'Last hour by class', sources: [history], draw },
    h(
      'div',
      { class: 'hour' },
      h('figure', {}, h('figcaption', {}, 'Hit ratio'), ratioHolder),
      h('figure', {}, h('figcaption', {}, 'Store calls'), loadHolder),
      legend.element,
    ),
  );
  return section;
}

/**
 * @param {{ readonly axisOf: (value: number) => string, readonly top: (highest: number) => number, readonly moved: (plot: uPlot) => void }} how
 * @returns {Omit<uPlot.Options, 'width' | 'height'>}
 */
function optionsOf({ axisOf, top, moved }) {
  return {
    scales: {
      x: { time: true, range: (_plot, low) => hourUpTo(Date.now() / 1000, low) },
      y: { range: (_plot, _low, high) => [0, top(high ?? 0)] },
    },
    cursor: { sync: { key: 'hour' }, y: false, drag: { x: false, y: false }, points: { size: 6 } },
    axes: [
      axis({ space: 70, size: 26, values: (_plot, splits) => splits.map((seconds) => timeOfDay(seconds * 1000)) }),
      axis({ space: 30, size: 48, values: (_plot, splits) => splits.map(axisOf) }),
    ],
    series: [
      {},
      ...CLASSES.map((cacheClass) => ({
        label: cacheClass,
        stroke: () => classColour(cacheClass),
        width: 1.75,
        dash: classDash(cacheClass),
        // A line needs two points; a gateway that has only just begun has fewer.
        points: { show: (/** @type {uPlot} */ plot) => plot.data[0].length < 4, size: 5 },
        spanGaps: true,
      })),
    ],
    hooks: { setCursor: [moved] },
  };
}

/** A gateway that has only just begun would else show an empty chart with a speck at its end. */
const SHORTEST_S = 600;

/**
 * What the charts span, in Unix seconds: the hour, or since counting began.
 * @param {number} now
 * @param {number | null} first
 * @returns {[number, number]}
 */
function hourUpTo(now, first) {
  return [Math.max(now - 3600, Math.min(first ?? now, now - SHORTEST_S)), now];
}

/**
 * @param {Steps} hour
 * @param {number} stepMs
 * @returns {{ readonly ratio: uPlot.AlignedData, readonly load: uPlot.AlignedData }}
 */
function dataOf(hour, stepMs) {
  const times = hour.map(({ atMs }) => (atMs + stepMs) / 1000);
  const byClass = CLASSES.map((cacheClass) => windows(hour, cacheClass));
  const ratios = byClass.map((all) =>
    all.map((counts) => {
      const ratio = hitRatio(counts);
      return ratio === null ? null : ratio * 100;
    }),
  );
  const loads = byClass.map((all) => all.map(({ storeCalls, steps: of }) => storeCalls / ((of * stepMs) / 1000)));
  return { ratio: [times, ...ratios], load: [times, ...loads] };
}
