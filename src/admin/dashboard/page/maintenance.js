/** The switch for the time in which the store is worked on: until it ends by itself, the store is asked nothing. */
import { ask } from './dialogs.js';
import { announce, h, say, set } from './dom.js';
import { duration, moment, parseDuration, roughly, written } from './format.js';
import { act, outcome, panel } from './panel.js';
import { readMaintenance } from './shapes.js';

/** @typedef {import('./times-change.js').Means} Means */
/** @typedef {import('./shapes.js').Maintenance} Maintenance */

const PATH = 'api/cache/maintenance';
const OFFERED = ['15m', '30m', '1h'];
const LONGEST_MS = 86_400_000;
const SHORTEST_MS = 1000;

/**
 * @param {Means} means
 * @param {import('./resource.js').Resource<Maintenance>} maintenance
 */
export function maintenancePanel(means, maintenance) {
  const told = outcome();
  const state = h('p', { class: 'switch-state' });
  const end = h('button', { type: 'button', class: 'primary' }, 'End now');
  const begin = (/** @type {string} */ length) =>
    void ask(question(means, { length, isOn: isOn(maintenance.value), done: () => told.clear() }));
  const draw = () => {
    const value = maintenance.value;
    if (value === null) return;
    set(state, 'data-kind', isOn(value) ? 'warn' : 'good');
    say(state, stateWords(value));
    end.hidden = !isOn(value);
  };
  end.addEventListener('click', () => void act(end, told, () => endNow(means)).then(draw));
  setInterval(draw, 1000);
  return panel(
    {
      id: 'maintenance',
      title: 'Maintenance',
      hint: 'Ask the store nothing while it is worked on: copies are served as long as they are usable on error.',
      sources: [maintenance],
      draw,
    },
    state,
    h(
      'div',
      { class: 'buttons' },
      end,
      ...OFFERED.map((length) => h('button', { type: 'button', onclick: () => begin(length) }, `For ${length}`)),
    ),
    customForm(told, begin),
    told.element,
  );
}

/** @param {Maintenance | null} value */
function isOn(value) {
  return value !== null && value.active && value.until !== null && value.until > Date.now();
}

/** @param {Maintenance} value */
function stateWords({ active, until, by }) {
  const nowMs = Date.now();
  if (!active || until === null || until <= nowMs) return 'Off: the store is asked as usual.';
  const who = by === null ? '' : ` Switched on by ${by}.`;
  return `On: ${duration(roughly(until - nowMs))} left, until ${moment(until, nowMs)}.${who}`;
}

/**
 * @param {ReturnType<typeof outcome>} told
 * @param {(length: string) => void} begin
 */
function customForm(told, begin) {
  const length = h('input', {
    type: 'text',
    class: 'mono short',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: '45m',
  });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const ms = parseDuration(length.value);
    if (ms === null || ms < SHORTEST_MS || ms > LONGEST_MS) {
      told.failed(
        `“${length.value}” is no time for this. Write a whole number and a unit, such as 45m or 2h; at most 24h.`,
      );
      length.focus();
      return;
    }
    told.clear();
    begin(written(ms));
  };
  return h(
    'form',
    { class: 'fields', onsubmit: submit },
    h('label', { class: 'field' }, h('span', {}, 'For another time'), length),
    h('button', { type: 'submit' }, 'Begin …'),
  );
}

/**
 * @param {Means} means
 * @param {{ readonly length: string, readonly isOn: boolean, readonly done: () => void }} wanted
 * @returns {import('./dialogs.js').Question}
 */
function question({ api, changed }, { length, isOn: isMoved, done }) {
  return {
    title: isMoved ? `Let maintenance end in ${length}?` : `Ask the store nothing for ${length}?`,
    body: [
      h(
        'p',
        {},
        'Copies are served as long as they are usable on error; a read that has none fails with 500 and Retry-After. It holds in every process and ends by itself.',
      ),
    ],
    yes: isMoved ? `End in ${length}` : `Begin ${length}`,
    isGrave: true,
    run: async () => {
      const value = await api.call(PATH, readMaintenance, { method: 'PUT', body: { for: length } });
      announce(`Maintenance: ${stateWords(value)}`);
      done();
      await changed();
    },
  };
}

/** @param {Means} means */
async function endNow({ api, changed }) {
  await api.call(PATH, readMaintenance, { method: 'DELETE' });
  announce('Maintenance has ended.');
  await changed();
}
