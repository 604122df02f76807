/** Charts over uPlot: its colours from the style sheet, its width from the page. */
import { THEME_CHANGED } from './theme.js';

/**
 * A colour of the style sheet, as it is in the theme of this moment.
 * @param {string} name Of a custom property: `--ink`.
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {string} cacheClass */
export function classColour(cacheClass) {
  return colour(`--class-${cacheClass}`);
}

/** Lines of the rarer classes are broken too: colour alone would not tell seven apart for everybody. */
const DASHES = new Map([
  ['rubric', [8, 3]],
  ['dealInsights', [3, 3]],
  ['notFound', [1, 3]],
]);

/** @param {string} cacheClass */
export function classDash(cacheClass) {
  return DASHES.get(cacheClass) ?? [];
}

const FONT = '11px system-ui, sans-serif';

/** @type {() => string} */
const axisInk = () => colour('--ink-2');
/** @type {uPlot.Axis.Grid} */
const grid = { stroke: () => colour('--grid'), width: 1 };

/**
 * An axis in the page's colours.
 * @param {uPlot.Axis} options
 * @returns {uPlot.Axis}
 */
export function axis(options) {
  return { stroke: axisInk, font: FONT, grid, ticks: { show: false }, gap: 6, ...options };
}

/**
 * A chart as wide as the element that holds it.
 * @param {HTMLElement} holder Its height in the style sheet is the chart's.
 * @param {Omit<uPlot.Options, 'width' | 'height'>} options
 * @param {uPlot.AlignedData} data
 */
export function chart(holder, options, data) {
  const size = () => ({ width: Math.max(120, holder.clientWidth), height: Math.max(60, holder.clientHeight) });
  const plot = new uPlot({ legend: { show: false }, padding: [8, 8, 0, 0], ...options, ...size() }, data, holder);
  // The canvas holds nothing for those who can't see it; its holder has a name that says what it shows.
  plot.root.setAttribute('aria-hidden', 'true');
  let frame = 0;
  new ResizeObserver(() => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      const wanted = size();
      if (wanted.width !== plot.width || wanted.height !== plot.height) plot.setSize(wanted);
    });
  }).observe(holder);
  document.addEventListener(THEME_CHANGED, () => plot.redraw(false, true));
  return plot;
}

/**
 * The top of a scale that shows the highest value with some room, on a round number.
 * @param {number} highest
 */
export function niceTop(highest) {
  if (highest <= 0) return 1;
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * magnitude >= highest * 1.05) ?? 15;
  return step * magnitude;
}
