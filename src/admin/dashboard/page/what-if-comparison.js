/** The numbers of now beside those predicted for another time, and the difference in words. */
import { h, say, set } from './dom.js';
import { duration, NONE } from './format.js';
import { compare } from './prediction.js';

/** @typedef {import('./shapes.js').CurvePoint} CurvePoint */
/** @typedef {import('./prediction.js').Prediction} Prediction */

/** The numbers of now beside the predicted ones. */
export function comparison() {
  const at = h('th', { scope: 'col', class: 'number' });
  const rows = ['Hit ratio', 'Store calls', 'Age p90', 'Outdated'].map((name) => {
    const cells = {
      now: h('td', { class: 'number' }, NONE),
      predicted: h('td', { class: 'number strong' }, NONE),
      difference: h('td', { class: 'number difference' }, NONE),
    };
    return { cells, row: h('tr', {}, h('th', { scope: 'row' }, name), cells.now, cells.predicted, cells.difference) };
  });
  const element = h(
    'table',
    { class: 'comparison' },
    h('caption', { class: 'hidden' }, 'Now and predicted'),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        h('td'),
        h('th', { scope: 'col', class: 'number' }, 'in force'),
        at,
        h('th', { scope: 'col', class: 'number' }, 'difference'),
      ),
    ),
    h('tbody', {}, ...rows.map(({ row }) => row)),
  );
  return {
    element,
    /** @param {{ readonly now: CurvePoint | null, readonly prediction: Prediction | null, readonly chosenMs: number }} shown */
    show: ({ now, prediction, chosenMs }) => {
      say(at, `at ${duration(chosenMs)}`);
      const compared = now === null || prediction === null ? [] : compare(now, prediction.point);
      for (const [index, { cells, row }] of rows.entries()) {
        const one = compared[index];
        say(cells.now, one?.now ?? NONE);
        say(cells.predicted, one?.predicted ?? NONE);
        say(cells.difference, one?.difference ?? NONE);
        set(row, 'data-kind', one?.kind ?? 'same');
      }
    },
  };
}
