/** Signs that tell states apart by their form, not only by colour. Each stands beside words that say the same. */
import { svg } from './dom.js';

/** @type {Readonly<Record<'done' | 'warning' | 'bad' | 'unknown' | 'clock' | 'pause' | 'copy', string>>} */
const PATHS = {
  done: 'M8 1.2a6.8 6.8 0 1 0 0 13.6A6.8 6.8 0 0 0 8 1.2Zm3.4 5.1-4 4.4a.8.8 0 0 1-1.2 0L4.4 8.9l1.1-1.1 1.3 1.2 3.4-3.8Z',
  warning: 'M8 1.3 15.4 14.4H.6Zm-.9 4.6.2 4.3h1.4l.2-4.3Zm.9 5.4a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8Z',
  bad: 'M5 1.2h6L14.8 5v6L11 14.8H5L1.2 11V5Zm.9 3.6L4.8 5.9 6.9 8l-2.1 2.1 1.1 1.1L8 9.1l2.1 2.1 1.1-1.1L9.1 8l2.1-2.1-1.1-1.1L8 6.9Z',
  unknown: 'M8 1.2a6.8 6.8 0 1 0 0 13.6A6.8 6.8 0 0 0 8 1.2Zm0 1.6a5.2 5.2 0 1 1 0 10.4A5.2 5.2 0 0 1 8 2.800Z',
  clock:
    'M8 1.2a6.8 6.8 0 1 0 0 13.6A6.8 6.8 0 0 0 8 1.2Zm0 1.5a5.3 5.3 0 1 1 0 10.6A5.3 5.3 0 0 1 8 2.7Zm-.7 1.6v4.2l3 1.8.7-1.2-2.300-1.400V4.300Z',
  pause: 'M3.500 2h3v12h-3Zm6 0h3v12h-3Z',
  copy: 'M5.500 1h7A1.500 1.500 0 0 1 14 2.500v8h-1.500v-8h-7ZM3.500 4h6A1.500 1.500 0 0 1 11 5.500v8A1.500 1.500 0 0 1 9.500 15h-6A1.500 1.500 0 0 1 2 13.500v-8A1.500 1.500 0 0 1 3.500 4Zm0 1.500v8h6v-8Z',
};

/** @param {keyof typeof PATHS} name */
export function icon(name) {
  return svg(
    'svg',
    {
      class: `icon icon-${name}`,
      viewBox: '0 0 16 16',
      width: 16,
      height: 16,
      'aria-hidden': 'true',
      focusable: 'false',
    },
    svg('path', { d: PATHS[name], 'fill-rule': 'evenodd' }),
  );
}
