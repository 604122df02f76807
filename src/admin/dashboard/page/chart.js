/** Line charts in SVG. Their colours come from the style sheet, so that they follow the theme. */
import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * @typedef {object} Line
 * @property {string} id For the style sheet.
 * @property {readonly (readonly [number, number | null])[]} points Null is a gap.
 */

/**
 * @typedef {object} ChartProps
 * @property {string} title The numbers stand in a table beside it, for those who can't see the lines.
 * @property {readonly Line[]} lines
 * @property {{ readonly from: number, readonly to: number, readonly ticks: readonly { readonly at: number, readonly text: string }[] }} x
 * @property {{ readonly top: number, readonly format: (value: number) => string }} y From 0 to `top`.
 * @property {readonly { readonly at: number, readonly kind: string }[]} [marks] Vertical lines.
 */

/** In pixels; the drawing lies within these margins. */
const HEIGHT = 170;
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 14, 8, 24];

/** @param {ChartProps} props */
export function LineChart({ title, lines, x, y, marks = [] }) {
  const [ref, width] = useWidth();
  const perX = (width - LEFT - RIGHT) / (x.to - x.from || 1);
  const atX = (/** @type {number} */ value) => LEFT + (value - x.from) * perX;
  const atY = (/** @type {number} */ value) => HEIGHT - BOTTOM - (value / y.top) * (HEIGHT - TOP - BOTTOM);
  const upright = (/** @type {number} */ at) => `M${atX(at)} ${atY(0)}V${atY(y.top)}`;
  const pathOf = (/** @type {Line} */ { points }) =>
    path(points.map(([at, value]) => [atX(at), value === null ? null : atY(value)]));
  return html`<figure ref=${ref}>
    <figcaption>${title}</figcaption>
    <svg class="chart" role="img" aria-label=${title} width=${width} height=${HEIGHT}>
      ${[0, y.top / 2, y.top].map(
        (value) =>
          html`<path class="grid" d="M${LEFT} ${atY(value)}H${width - RIGHT}" />
            <text text-anchor="end" x=${LEFT - 6} y=${atY(value) + 4}>${y.format(value)}</text>`,
      )}
      ${x.ticks.map(
        ({ at, text }) =>
          html`<path class="grid" d=${upright(at)} /><text text-anchor="middle" x=${atX(at)} y=${HEIGHT - 6}
              >${text}</text
            >`,
      )}
      ${marks.map(({ at, kind }) => html`<path class="mark mark-${kind}" d=${upright(at)} />`)}
      ${lines.map((line) => html`<path key=${line.id} class="line line-${line.id}" d=${pathOf(line)} />`)}
    </svg>
  </figure>`;
}

/**
 * A line without axes.
 * @param {{ readonly values: readonly (number | null)[] }} props
 */
export function Sparkline({ values }) {
  const top = Math.max(0, ...values.map((value) => value ?? 0)) || 1;
  const step = 100 / Math.max(1, values.length - 1);
  const d = path(values.map((value, index) => [index * step, value === null ? null : 29 - (value / top) * 28]));
  return html`<svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
    <path class="line" d=${d} vector-effect="non-scaling-stroke" />
  </svg>`;
}

/**
 * Moves to each point that follows a gap, and draws to all others. A point alone becomes a short line.
 * @param {readonly (readonly [number, number | null])[]} spots
 */
function path(spots) {
  let d = '';
  for (const [index, [x, y]] of spots.entries()) {
    if (y === null) continue;
    const isFirst = (spots[index - 1]?.[1] ?? null) === null;
    d += `${isFirst ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}${isFirst ? 'h1' : ''}`;
  }
  return d;
}

/** The width of an element in pixels, also after it has changed. */
function useWidth() {
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(300);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(160, entry?.contentRect.width ?? 0)));
    if (ref.current !== null) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return /** @type {const} */ ([ref, width]);
}

/**
 * A round number above the highest value of some lines.
 * @param {readonly Line[]} lines
 */
export function roundTop(lines) {
  const highest = Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value ?? 0)));
  if (highest === 0) return 1;
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  return ([1, 2, 4, 5, 8].find((factor) => factor * magnitude >= highest) ?? 10) * magnitude;
}
