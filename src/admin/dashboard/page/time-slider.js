/** A slider over the tried times whose handle stands where the charts above it have that time: by its logarithm. */
import { h, set } from './dom.js';
import { nearest } from './prediction.js';

/** @typedef {import('./shapes.js').CurvePoint} CurvePoint */

/** Fine enough for the handle to stand still under the line. */
const POSITIONS = 1000;
/** How far each key goes, in tried times. */
const KEYS = new Map([
  ['ArrowRight', 1],
  ['ArrowUp', 1],
  ['ArrowLeft', -1],
  ['ArrowDown', -1],
  ['PageUp', 3],
  ['PageDown', -3],
  ['Home', -Infinity],
  ['End', Infinity],
]);

/** @param {(index: number) => void} choose Told a place in the curve. */
export function timeSlider(choose) {
  /** @type {readonly CurvePoint[]} */
  let curve = [];
  let index = 0;
  let isDragged = false;
  const range = h('input', { type: 'range', min: 0, max: POSITIONS, step: 1, value: 0 });
  const go = (/** @type {number} */ to) => choose(Math.min(curve.length - 1, Math.max(0, to)));
  range.addEventListener('pointerdown', () => (isDragged = true));
  for (const end of ['pointerup', 'pointercancel', 'blur']) range.addEventListener(end, () => (isDragged = false));
  range.addEventListener('keydown', (event) => {
    const steps = KEYS.get(event.key);
    if (steps === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(index + steps);
  });
  range.addEventListener('input', () => {
    const to = nearest(curve, timeAt(curve, Number(range.value)));
    // A screen reader's own gesture moves it by one position, which is less than the way to the next time.
    const isNudged = !isDragged && to === index;
    go(isNudged ? index + Math.sign(Number(range.value) - positionOf(curve, curve[index]?.freshMs ?? 0)) : to);
  });
  return {
    element: h('label', { class: 'slider' }, h('span', { class: 'hidden' }, 'Fresh time'), range),
    /** @param {{ readonly curve: readonly CurvePoint[], readonly index: number, readonly chosenMs: number, readonly valueText: string }} shown */
    show: (shown) => {
      ({ curve, index } = shown);
      range.disabled = curve.length < 2;
      range.value = String(positionOf(curve, shown.chosenMs));
      set(range, 'aria-valuetext', shown.valueText);
    },
  };
}

/**
 * @param {readonly CurvePoint[]} curve
 * @param {number} freshMs
 */
function positionOf(curve, freshMs) {
  const [low, high] = endsOf(curve);
  const share = Math.log(Math.max(low, freshMs) / low) / Math.log(high / low);
  return Math.round(POSITIONS * Math.min(1, share));
}

/**
 * @param {readonly CurvePoint[]} curve
 * @param {number} position
 */
function timeAt(curve, position) {
  const [low, high] = endsOf(curve);
  return low * (high / low) ** (position / POSITIONS);
}

/**
 * @param {readonly CurvePoint[]} curve
 * @returns {readonly [number, number]}
 */
function endsOf(curve) {
  const low = Math.max(1, curve[0]?.freshMs ?? 1);
  return [low, Math.max(low * 2, curve.at(-1)?.freshMs ?? 1)];
}
