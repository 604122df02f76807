/** Which keys and routes cost the store most. */
import { h, keep, say, svg } from './dom.js';
import { count, duration, moment } from './format.js';
import { panel } from './panel.js';
import { swatch } from './swatch.js';
import { CLASSES } from './shapes.js';

/** @typedef {{ readonly name: string, readonly cacheClass: string | null, readonly storeCalls: number, readonly storeMs: number }} Load */

/** @param {import('./resource.js').Resource<ReturnType<typeof import('./shapes.js').readTop>>} top */
export function topPanel(top) {
  const keys = table('Key', 'Nothing was asked of the store yet.');
  const routes = table('Route', 'Nothing was asked of the store yet.');
  const since = h('p', { class: 'hint' });
  const draw = () => {
    if (top.value === null) return;
    keys.show(top.value.keys.map(({ key, class: cacheClass, ...load }) => ({ name: key, cacheClass, ...load })));
    routes.show(top.value.routes.map(({ route, ...load }) => ({ name: route, cacheClass: null, ...load })));
    say(since, `Calls to the store since ${moment(top.value.since, Date.now())}, and the time they took it.`);
  };
  return panel(
    { id: 'top', title: 'Top by store load', sources: [top], draw },
    h('div', { class: 'halves' }, keys.element, routes.element),
    since,
  );
}

/**
 * @param {string} name
 * @param {string} none
 */
function table(name, none) {
  const body = h('tbody');
  const empty = h('p', { class: 'empty', hidden: true }, none);
  const element = h(
    'div',
    {},
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': `${name}s by store load` },
      h(
        'table',
        { class: 'dense' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            h('th', { scope: 'col' }, name),
            h('th', { scope: 'col', class: 'number' }, 'Calls'),
            h('th', { scope: 'col', class: 'number' }, 'Store time'),
            h('td'),
          ),
        ),
        body,
      ),
    ),
    empty,
  );
  return {
    element,
    /** @param {readonly Load[]} loads */
    show: (loads) => {
      const shown = loads.slice(0, 10);
      const most = Math.max(1, ...shown.map(({ storeMs }) => storeMs));
      empty.hidden = shown.length > 0;
      keep(body, shown, {
        key: (load) => `${load.cacheClass ?? ''} ${load.name}`,
        make: (load) => row(load, most),
        version: (load) => `${load.storeCalls} ${load.storeMs} ${most}`,
      });
    },
  };
}

/**
 * @param {Load} load
 * @param {number} most The store time of the first.
 */
function row({ name, cacheClass, storeCalls, storeMs }, most) {
  const share = storeMs / most;
  const isKnown = CLASSES.some((one) => one === cacheClass);
  return h(
    'tr',
    {},
    h(
      'td',
      { class: 'key-name' },
      cacheClass !== null && isKnown ? swatch(cacheClass) : null,
      h('code', { title: name }, shortened(name)),
    ),
    h('td', { class: 'number' }, count(storeCalls)),
    h('td', { class: 'number' }, duration(Math.round(storeMs))),
    h(
      'td',
      { class: 'meter' },
      svg(
        'svg',
        { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false' },
        svg('rect', { class: 'meter-all', width: 100, height: 8 }),
        svg('rect', { class: 'meter-part', width: share * 100, height: 8 }),
      ),
    ),
  );
}

/**
 * A key holds ids of 36 characters; what tells keys apart often stands behind them. The whole key is in the title.
 * @param {string} name
 */
function shortened(name) {
  return name.replaceAll(/([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, '$1…');
}
