/** Why reads were not answered from a copy at once, by class; and what memory holds. */
import { h, keep, say, svg } from './dom.js';
import { bytes, count, moment, NONE, percent } from './format.js';
import { panel } from './panel.js';

/** @typedef {import('./shapes.js').Stats} Stats */
/** @typedef {Stats['classes'][number]} ClassStats */

/** In the order of the bars; each with what an operator can do about it. */
const REASONS = /** @type {const} */ ([
  ['never-seen', 'never seen', 'asked for the first time'],
  ['expired', 'expired', 'a longer time would help'],
  ['evicted', 'evicted', 'more memory would help'],
  ['purged', 'purged', 'dropped by a purge'],
  ['not-cacheable', 'not cacheable', 'never kept'],
]);

/** @param {import('./resource.js').Resource<Stats>} stats */
export function missesPanel(stats) {
  const body = h('tbody');
  const held = h('p', { class: 'hint' });
  const draw = () => {
    if (stats.value === null) return;
    const { since, memory, classes } = stats.value;
    say(
      held,
      `Counted since ${moment(since, Date.now())}. Memory holds ${count(memory.entries)} entries, ${bytes(memory.bytes)} of ${bytes(memory.maxBytes)} (${percent(memory.maxBytes === 0 ? null : memory.bytes / memory.maxBytes)}).`,
    );
    keep(body, classes, {
      key: (one) => one.class,
      make: rowOf,
      version: (one) => JSON.stringify([one.reads, [...one.misses], one.memory]),
    });
  };
  return panel(
    { id: 'misses', title: 'Why reads miss', sources: [stats], draw },
    h(
      'ul',
      { class: 'reasons' },
      ...REASONS.map(([id, name, help]) => h('li', { title: help }, h('span', { class: `chip chip-${id}` }), name)),
    ),
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Why reads miss' },
      h(
        'table',
        { class: 'dense' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...['Class', 'Reads', 'Missed', 'Why', 'In memory'].map((name) =>
              h(
                'th',
                { scope: 'col', class: name === 'Reads' || name === 'Missed' || name === 'In memory' ? 'number' : '' },
                name,
              ),
            ),
          ),
        ),
        body,
      ),
    ),
    held,
  );
}

/** @param {ClassStats} one */
function rowOf({ class: cacheClass, reads, misses, memory }) {
  const total = [...misses.values()].reduce((all, amount) => all + amount, 0);
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, cacheClass),
    h('td', { class: 'number' }, count(reads)),
    h('td', { class: 'number' }, reads === 0 ? NONE : percent(total / reads)),
    h('td', { class: 'wide' }, bar(misses, total)),
    h('td', { class: 'number' }, memory.entries === 0 ? NONE : `${count(memory.entries)} · ${bytes(memory.bytes)}`),
  );
}

/**
 * The reasons' shares as one bar, and in words under it.
 * @param {ReadonlyMap<string, number>} misses
 * @param {number} total
 */
function bar(misses, total) {
  if (total === 0) return h('span', { class: 'faint' }, 'no misses');
  let x = 0;
  const parts = REASONS.flatMap(([id, name]) => {
    const amount = misses.get(id) ?? 0;
    if (amount === 0) return [];
    const width = (amount / total) * 100;
    const part = {
      id,
      words: `${name} ${percent(amount / total)}`,
      rect: svg('rect', { class: `part-${id}`, x, y: 0, width, height: 8 }),
    };
    x += width;
    return [part];
  });
  return h(
    'div',
    { class: 'share' },
    svg(
      'svg',
      { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false' },
      ...parts.map(({ rect }) => rect),
    ),
    h('span', { class: 'share-words' }, parts.map(({ words }) => words).join(', ')),
  );
}
