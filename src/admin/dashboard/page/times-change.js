/** Changing the times in force: the questions before it, and the calls. */
import { ask } from './dialogs.js';
import { announce, h } from './dom.js';
import { parseDuration, written } from './format.js';
import { readClassTimes } from './shapes.js';

/** @typedef {import('./shapes.js').ClassTimes} ClassTimes */
/** @typedef {{ readonly api: import('./api.js').Api, readonly changed: () => Promise<unknown> }} Means What is changed with, and told afterwards. */

const NAMES = /** @type {const} */ (['fresh', 'stale', 'error']);
export const TIME_FORM = 'a whole number and a unit: 500ms, 45s, 2m, 1h or 7d';
export const LONGEST_TIME_MS = 365 * 86_400_000;

/**
 * Milliseconds of what was typed. Throws where it is no time that may be set.
 * @param {string} typed
 */
export function timeOf(typed) {
  const ms = parseDuration(typed);
  if (ms === null || ms > LONGEST_TIME_MS) throw new Error(`“${typed}” is no time. Write ${TIME_FORM}; at most 365d.`);
  return ms;
}

/**
 * Asks, then sets the time for which a class stays fresh.
 * @param {Means} means
 * @param {{ readonly times: ClassTimes, readonly freshMs: number, readonly expected: readonly import('./dom.js').Child[] }} change
 */
export function applyFresh({ api, changed }, { times, freshMs, expected }) {
  const to = written(freshMs);
  return ask({
    title: `Set the fresh time of ${times.class}?`,
    body: [
      h('p', { class: 'change' }, h('code', {}, times.fresh), ' → ', h('code', {}, to)),
      ...expected,
      h(
        'p',
        { class: 'hint' },
        'It rules in every process within a second, for what is cached already too, and stays over a restart. The audit keeps who set it.',
      ),
    ],
    yes: `Set to ${to}`,
    run: async () => {
      await api.call(`api/cache/ttl/${times.class}`, readClassTimes, { method: 'PUT', body: { fresh: to } });
      announce(`The fresh time of ${times.class} is ${to} now.`);
      await changed();
    },
  });
}

/**
 * @param {Means} means
 * @param {ClassTimes} times
 */
export function resetTimes({ api, changed }, times) {
  const set = NAMES.filter((name) => times.source[name] === 'set');
  return ask({
    title: `Reset the times of ${times.class}?`,
    body: [
      h(
        'p',
        {},
        `What was set for ${set.join(', ')} is forgotten: ${set.map((name) => `${name} ${times[name]}`).join(', ')}. The configuration’s own times rule again, in every process within a second.`,
      ),
    ],
    yes: 'Reset',
    run: async () => {
      const { fresh, stale, error } = await api.call(`api/cache/ttl/${times.class}`, readClassTimes, {
        method: 'DELETE',
      });
      announce(`${times.class}: fresh ${fresh}, stale ${stale}, error ${error}, as configured.`);
      await changed();
    },
  });
}

const MEANINGS = {
  fresh: 'served as it is',
  stale: 'then served at once while one refresh runs behind',
  error: 'from the end of fresh: served when the store fails',
};

/**
 * Asks for all three times of a class, then sets those that differ.
 * @param {Means} means
 * @param {ClassTimes} times
 */
export function editTimes({ api, changed }, times) {
  const inputs = NAMES.map((name) => ({
    name,
    input: h('input', {
      type: 'text',
      value: times[name],
      autocomplete: 'off',
      spellcheck: 'false',
      class: 'mono short',
    }),
  }));
  return ask({
    title: `Times of ${times.class}`,
    body: [
      h('p', { class: 'hint' }, `Each is ${TIME_FORM}.`),
      ...inputs.map(({ name, input }) =>
        h('label', { class: 'field' }, h('span', {}, h('strong', {}, name), ` ${MEANINGS[name]}`), input),
      ),
    ],
    yes: 'Set',
    run: async () => {
      const wanted = inputs.flatMap(({ name, input }) => {
        const ms = timeOf(input.value);
        return ms === times[`${name}Ms`] ? [] : [/** @type {const} */ ([name, written(ms)])];
      });
      if (wanted.length === 0) throw new Error('Nothing differs from what is in force.');
      await api.call(`api/cache/ttl/${times.class}`, readClassTimes, {
        method: 'PUT',
        body: Object.fromEntries(wanted),
      });
      announce(`${times.class}: ${wanted.map(([name, value]) => `${name} ${value}`).join(', ')}.`);
      await changed();
    },
  });
}
