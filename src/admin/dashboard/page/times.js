/** The times in force of each class, and where each comes from. */
import { h, keep } from './dom.js';
import { duration, moment } from './format.js';
import { panel } from './panel.js';
import { editTimes, resetTimes } from './times-change.js';

/** @typedef {import('./shapes.js').ClassTimes} ClassTimes */

const SOURCES = new Map([
  ['set', 'set here'],
  ['default', 'default'],
  ['file', 'file'],
  ['environment', 'environment'],
]);

/**
 * @param {import('./times-change.js').Means} means
 * @param {import('./resource.js').Resource<{ readonly classes: readonly ClassTimes[] }>} times
 */
export function timesPanel(means, times) {
  const body = h('tbody');
  const draw = () =>
    keep(body, times.value?.classes ?? [], { key: (one) => one.class, make: (one) => rowOf(means, one) });
  return panel(
    { id: 'times', title: 'Times in force', sources: [times], draw },
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Times in force' },
      h(
        'table',
        { class: 'dense' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...['Class', 'Fresh', 'Stale', 'On error', 'Last set', ''].map((name) =>
              h('th', { scope: 'col' }, name === '' ? h('span', { class: 'hidden' }, 'Actions') : name),
            ),
          ),
        ),
        body,
      ),
    ),
  );
}

/**
 * @param {import('./times-change.js').Means} means
 * @param {ClassTimes} times
 */
function rowOf(means, times) {
  const isSet = Object.values(times.source).includes('set');
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, times.class),
    timeCell(times.freshMs, times.source.fresh),
    timeCell(times.staleMs, times.source.stale),
    timeCell(times.errorMs, times.source.error),
    h(
      'td',
      { class: 'wrap' },
      isSet && times.setAt !== null ? `${moment(times.setAt, Date.now())} by ${times.setBy ?? 'unknown'}` : '–',
    ),
    h(
      'td',
      { class: 'row-actions' },
      h(
        'button',
        {
          type: 'button',
          class: 'small',
          'data-focus': 'edit',
          'aria-label': `Change the times of ${times.class}`,
          onclick: () => void editTimes(means, times),
        },
        'Change',
      ),
      h(
        'button',
        {
          type: 'button',
          class: 'small',
          'data-focus': 'reset',
          disabled: !isSet,
          'aria-label': `Reset the times of ${times.class}`,
          onclick: () => void resetTimes(means, times),
        },
        'Reset',
      ),
    ),
  );
}

/**
 * @param {number} ms
 * @param {string} source
 */
function timeCell(ms, source) {
  const kind = source === 'set' ? 'source source-set' : 'source';
  return h('td', {}, ms === 0 ? 'none' : duration(ms), ' ', h('span', { class: kind }, SOURCES.get(source) ?? source));
}
