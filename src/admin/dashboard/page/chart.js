/** Line charts by uPlot, in the colours of the style sheet, so that they follow the theme. */
import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { NONE } from './format.js';

/** @typedef {import('uplot')} uPlot */
// uPlot asks Intl for the language of the browser when it is loaded. If Intl refuses that, as en-US@posix, this page is English.
if (!isUsable(navigator.language)) Reflect.defineProperty(navigator, 'language', { value: 'en' });
const { default: library } = await import('uplot');

/** @param {string} language */
function isUsable(language) {
  try {
    return Intl.NumberFormat.supportedLocalesOf(language).length >= 0;
  } catch {
    return false;
  }
}

/**
 * @typedef {object} Line
 * @property {string} label
 * @property {string} colour A variable of the style sheet.
 * @property {readonly number[]} [dash]
 * @property {readonly (number | null)[]} values At each place of the axis; null is a gap.
 */

/** @typedef {{ readonly at: number, readonly kind: string, readonly text: string }} Mark A vertical line. */

/**
 * @typedef {object} ChartProps
 * @property {string} title The numbers stand in a table beside it, for those who can't see the lines.
 * @property {string} [note] How the values were averaged.
 * @property {readonly Line[]} lines
 * @property {{ readonly places: readonly number[], readonly from: number, readonly to: number, readonly ticks: readonly { readonly at: number, readonly text: string }[], readonly format: (at: number) => string }} x `places`: of the values.
 * @property {{ readonly top: number, readonly format: (value: number) => string }} y From 0 to `top`.
 * @property {readonly Mark[]} [marks]
 * @property {boolean} [isAlone] One line: its value at the pointer is in the caption, without a legend.
 */

/**
 * How marks differ from a thin grey line.
 * @type {Readonly<Record<string, { readonly colour: string, readonly width: number, readonly dash?: readonly number[] }>>}
 */
const MARKS = {
  loss: { colour: 'bad', width: 2 },
  advised: { colour: 'good', width: 2, dash: [2, 3] },
  chosen: { colour: 'ink', width: 3 },
};

const HEIGHT = 150;
/** A mark is named while the pointer is so near, in pixels. */
const NEAR = 8;

/** @param {ChartProps} props */
export function LineChart(props) {
  const { title, note = '', lines } = props;
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const latest = useRef(props);
  const chart = useRef(/** @type {uPlot | null} */ (null));
  const [named, setNamed] = useState('');
  latest.current = props;
  // Lines that come or go make another chart; new values do not.
  useEffect(() => {
    const { current: place } = ref;
    if (place === null) return undefined;
    const made = new library(optionsOf(latest, setNamed), dataOf(props), place);
    chart.current = made;
    const observer = new ResizeObserver(([entry]) =>
      made.setSize({ width: Math.max(160, Math.floor(entry?.contentRect.width ?? 0)), height: HEIGHT }),
    );
    observer.observe(place);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [lines.map(({ label }) => label).join()]);
  useEffect(() => chart.current?.setData(dataOf(props)));
  const caption = named === '' ? note : named;
  return html`<figure aria-label=${title}>
    <figcaption>${title}${caption !== '' && ` · ${caption}`}</figcaption>
    <div class="plot" ref=${ref}></div>
  </figure>`;
}

/**
 * @param {ChartProps} props
 * @returns {import('uplot').AlignedData}
 */
function dataOf({ x, lines }) {
  return [[...x.places], ...lines.map(({ values }) => [...values])];
}

/**
 * Everything is read from the newest properties when it is drawn.
 * @param {{ readonly current: ChartProps }} latest
 * @param {(text: string) => void} setNamed Takes the text at the pointer; empty for none.
 * @returns {import('uplot').Options}
 */
function optionsOf(latest, setNamed) {
  const axis = { stroke: () => colourOf('ink-2'), font: '11px system-ui, sans-serif', ticks: { show: false } };
  const grid = { stroke: () => colourOf('line'), width: 1 };
  return {
    width: 300,
    height: HEIGHT,
    scales: {
      x: { time: false, range: () => [latest.current.x.from, latest.current.x.to] },
      y: { range: () => [0, latest.current.y.top] },
    },
    axes: [
      {
        ...axis,
        grid,
        size: 22,
        gap: 2,
        splits: () => latest.current.x.ticks.map(({ at }) => at),
        values: () => latest.current.x.ticks.map(({ text }) => text),
      },
      {
        ...axis,
        grid,
        size: 62,
        splits: () => [0, 0.5, 1].map((share) => share * latest.current.y.top),
        values: (_chart, splits) => splits.map((value) => latest.current.y.format(value)),
      },
    ],
    series: [
      { label: 'At', value: (_chart, at) => (at === null ? NONE : latest.current.x.format(at)) },
      ...latest.current.lines.map(({ label, colour, dash = [] }) => ({
        label,
        stroke: () => colourOf(colour),
        width: 1.75,
        dash: [...dash],
        points: { show: false },
        value: (/** @type {uPlot} */ _chart, /** @type {number | null} */ value) =>
          value === null ? NONE : latest.current.y.format(value),
      })),
    ],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    legend: { show: latest.current.isAlone !== true, markers: { width: 2 } },
    hooks: {
      draw: [(chart) => drawMarks(chart, latest.current.marks ?? [])],
      setCursor: [(chart) => setNamed(saidAt(chart, latest.current))],
    },
  };
}

/** @param {uPlot} chart @param {readonly Mark[]} marks */
function drawMarks(chart, marks) {
  const { ctx, bbox } = chart;
  ctx.save();
  for (const { at, kind } of marks) {
    const x = Math.round(chart.valToPos(at, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const { colour = 'ink-2', width = 1, dash = [] } = MARKS[kind] ?? {};
    ctx.strokeStyle = colourOf(colour);
    ctx.lineWidth = width * devicePixelRatio;
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/**
 * The text at the pointer: the marks, and the value if there is no legend.
 * @param {uPlot} chart
 * @param {ChartProps} props
 */
function saidAt(chart, { marks = [], isAlone = false, lines, x, y }) {
  const { left = -1, idx } = chart.cursor;
  const near = marks.filter(({ at }) => left >= 0 && Math.abs(chart.valToPos(at, 'x') - left) <= NEAR);
  const named = near.map(({ text }) => text);
  const at = chart.data[0][idx ?? -1];
  if (!isAlone || at === undefined || left < 0) return named.join('; ');
  const [value] = lines.flatMap(({ values }) => values[idx ?? -1] ?? []);
  return [`${x.format(at)}: ${value === undefined ? NONE : y.format(value)}`, ...named].join('; ');
}

/**
 * A colour of the style sheet as it is now: canvas knows neither variables nor light-dark().
 * @param {string} name
 */
function colourOf(name) {
  const probe = document.getElementById('probe');
  if (probe === null) return '';
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

/**
 * A round number above the highest value of some lines.
 * @param {readonly Pick<Line, 'values'>[]} lines
 */
export function roundTop(lines) {
  const highest = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  if (highest === 0) return 1;
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  return ([1, 2, 4, 5, 8].find((factor) => factor * magnitude >= highest) ?? 10) * magnitude;
}
