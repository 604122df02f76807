/** The line of a class, as in the charts, beside its name. */
import { classDash } from './chart.js';
import { svg } from './dom.js';

/** @param {string} cacheClass */
export function swatch(cacheClass) {
  return svg(
    'svg',
    {
      class: `swatch swatch-${cacheClass}`,
      width: 22,
      height: 8,
      viewBox: '0 0 22 8',
      'aria-hidden': 'true',
      focusable: 'false',
    },
    svg('line', { x1: 1, y1: 4, x2: 21, y2: 4, 'stroke-dasharray': classDash(cacheClass).join(' ') }),
  );
}
