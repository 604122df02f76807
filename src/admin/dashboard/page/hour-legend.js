/** The legend of the last hour's charts, which is a table of its numbers as well. */
import { h, say, set } from './dom.js';
import { percent, rate, timeOfDay } from './format.js';
import { hitRatio, sum } from './hour-data.js';
import { CLASSES } from './shapes.js';
import { swatch } from './swatch.js';

/** @typedef {ReturnType<typeof import('./hour-data.js').steps>} Steps */

/**
 * A row a class, which switches its lines on and off, with the numbers under the cursor or else of the last minute, and
 * of the whole hour.
 * @param {(cacheClass: string) => void} toggle
 */
export function legendOf(toggle) {
  const at = h('th', { scope: 'colgroup', colspan: 2 }, 'last minute');
  const rows = CLASSES.map((cacheClass) => {
    const button = h(
      'button',
      { type: 'button', class: 'series', 'aria-pressed': 'true', onclick: () => toggle(cacheClass) },
      swatch(cacheClass),
      cacheClass,
    );
    const cells = Array.from({ length: 4 }, () => h('td', { class: 'number' }));
    return { cacheClass, button, cells, row: h('tr', {}, h('th', { scope: 'row' }, button), ...cells) };
  });
  const element = h(
    'div',
    { class: 'legend scroll' },
    h(
      'table',
      { class: 'dense' },
      h('caption', { class: 'hidden' }, 'Classes of answers: press one to show or hide its lines'),
      h(
        'thead',
        {},
        h('tr', {}, h('td'), at, h('th', { scope: 'colgroup', colspan: 2 }, 'hour')),
        h(
          'tr',
          {},
          h('th', { scope: 'col' }, 'Class'),
          ...['hits', 'store', 'hits', 'store'].map((name) => h('th', { scope: 'col', class: 'number' }, name)),
        ),
      ),
      h('tbody', {}, ...rows.map(({ row }) => row)),
    ),
  );
  return {
    element,
    /** @param {ReadonlySet<string>} shown */
    toggled: (shown) => {
      for (const { cacheClass, button } of rows) set(button, 'aria-pressed', String(shown.has(cacheClass)));
    },
    /**
     * @param {Steps} hour
     * @param {{ readonly cursor: number | null, readonly stepMs: number }} where
     */
    show: (hour, { cursor, stepMs }) => {
      const chosen = cursor === null ? hour.slice(-2) : hour.slice(cursor, cursor + 1);
      const [first] = chosen;
      say(at, cursor === null || first === undefined ? 'last minute' : `at ${timeOfDay(first.atMs)}`);
      for (const { cacheClass, cells } of rows) {
        const texts = [chosen, hour].flatMap((part) => {
          const counts = sum(part.flatMap(({ point }) => point?.classes.get(cacheClass) ?? []));
          return [
            percent(hitRatio(counts)),
            rate(part.length === 0 ? null : counts.storeCalls / ((part.length * stepMs) / 1000)),
          ];
        });
        for (const [index, cell] of cells.entries()) say(cell, texts[index] ?? '');
      }
    },
  };
}
