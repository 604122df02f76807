/** The processes that serve together. */
import { h, keep } from './dom.js';
import { duration, roughly } from './format.js';
import { icon } from './icons.js';
import { panel } from './panel.js';

/** @typedef {import('./shapes.js').Member} Member */

const KINDS = new Map([
  ['ready', /** @type {const} */ ('done')],
  ['draining', /** @type {const} */ ('bad')],
]);

/** @param {import('./resource.js').Resource<{ readonly members: readonly Member[] }>} fleet */
export function fleetPanel(fleet) {
  const body = h('tbody');
  const draw = () =>
    keep(body, fleet.value?.members ?? [], {
      key: ({ id }) => id,
      make: rowOf,
      version: (member) => JSON.stringify([member, duration(roughly(Date.now() - member.startedAt))]),
    });
  return panel(
    { id: 'fleet', title: 'Fleet', sources: [fleet], draw },
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Fleet' },
      h(
        'table',
        { class: 'dense' },
        h(
          'thead',
          {},
          h('tr', {}, ...['Process', 'Status', 'Version', 'Up'].map((name) => h('th', { scope: 'col' }, name))),
        ),
        body,
      ),
    ),
  );
}

/** @param {Member} member */
function rowOf({ host, pid, version, startedAt, status, self }) {
  return h(
    'tr',
    {},
    h(
      'th',
      { scope: 'row' },
      h('code', {}, `${host} · ${pid}`),
      self ? h('span', { class: 'badge' }, 'this one') : null,
    ),
    h(
      'td',
      { class: 'member-status', 'data-kind': status === 'ready' ? 'good' : 'bad' },
      icon(KINDS.get(status) ?? 'unknown'),
      status,
    ),
    h('td', {}, version),
    h('td', {}, duration(roughly(Date.now() - startedAt))),
  );
}
