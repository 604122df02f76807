/** Who changed what, newest first. */
import { actionWords, differenceWords } from './audit-words.js';
import { h, keep, say } from './dom.js';
import { count, moment } from './format.js';
import { panel } from './panel.js';

/** @typedef {import('./shapes.js').AuditEntry} AuditEntry */

const SHOWN_FIRST = 12;

/** @param {import('./resource.js').Resource<{ readonly entries: readonly AuditEntry[] }>} audit */
export function auditPanel(audit) {
  let isWhole = false;
  const body = h('tbody');
  const empty = h('p', { class: 'empty', hidden: true }, 'Nothing was changed yet.');
  const more = h('button', { type: 'button', class: 'small', hidden: true });
  const draw = () => {
    const entries = audit.value?.entries ?? [];
    empty.hidden = entries.length > 0;
    const shown = isWhole ? entries : entries.slice(0, SHOWN_FIRST);
    keep(body, shown, { key: keyOf(shown), make: rowOf, version: () => '' });
    more.hidden = entries.length <= SHOWN_FIRST;
    say(more, isWhole ? 'Show the newest only' : `Show all ${count(entries.length)}`);
  };
  more.addEventListener('click', () => {
    isWhole = !isWhole;
    draw();
  });
  return panel(
    { id: 'audit', title: 'Audit', sources: [audit], draw, actions: [more] },
    h(
      'div',
      { class: 'scroll tall', tabindex: 0, role: 'group', 'aria-label': 'Audit' },
      h(
        'table',
        { class: 'dense' },
        h(
          'thead',
          {},
          h('tr', {}, ...['When', 'Who', 'What', 'Change'].map((name) => h('th', { scope: 'col' }, name))),
        ),
        body,
      ),
    ),
    empty,
  );
}

/**
 * Entries have no id; alike ones of one moment are told apart by their place among each other.
 * @param {readonly AuditEntry[]} entries
 */
function keyOf(entries) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  /** @type {Map<AuditEntry, string>} */
  const keys = new Map();
  for (const entry of entries.toReversed()) {
    const name = `${entry.at} ${entry.who} ${entry.action} ${entry.target}`;
    const number = seen.get(name) ?? 0;
    seen.set(name, number + 1);
    keys.set(entry, `${name} ${number}`);
  }
  return (/** @type {AuditEntry} */ entry) => keys.get(entry) ?? '';
}

/** @param {AuditEntry} entry */
function rowOf({ at, who, action, target, from, to }) {
  return h(
    'tr',
    {},
    h(
      'td',
      { class: 'when' },
      h('time', { datetime: new Date(at).toISOString(), title: new Date(at).toISOString() }, moment(at, Date.now())),
    ),
    h('td', {}, who),
    h('td', {}, `${actionWords(action)} `, h('code', {}, target)),
    h('td', { class: 'wrap faint' }, differenceWords(from, to)),
  );
}
