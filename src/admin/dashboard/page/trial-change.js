/** Beginning, ending and adopting a trial of a time: the questions before it, and the calls. */
import { ask } from './dialogs.js';
import { announce, h } from './dom.js';
import { duration, parseDuration, percent, written } from './format.js';
import { TIME_FORM, timeOf } from './times-change.js';
import { readTrial } from './trial-shapes.js';
import { factorOf, perRead, shareOf, shareWords } from './trial-words.js';

/** @typedef {import('./times-change.js').Means} Means */
/** @typedef {import('./shapes.js').ClassTimes} ClassTimes */
/** @typedef {import('./trial-shapes.js').Trial} Trial */

const PATH = 'api/cache/trials';
const SHORTEST_MS = 60_000;
const LONGEST_MS = 7 * 86_400_000;
const SHARE = 'Share of the keys';
const LOAD = 'Store calls per read';
const ERRORS = 'Failed store calls';

/**
 * Asks for what a trial is to be, then begins it.
 * @param {Means} means
 * @param {{ readonly times: ClassTimes, readonly freshMs: number, readonly expected: readonly import('./dom.js').Child[] }} wish
 *   `freshMs`: what is offered. `expected`: what is predicted for it.
 */
export function startTrial({ api, changed }, { times, freshMs, expected }) {
  const fields = trialFields(written(freshMs));
  return ask({
    title: `Start a trial of ${times.class}?`,
    body: [
      h(
        'p',
        { class: 'hint' },
        `A share of its keys gets another fresh time in every process; the rest keeps ${times.fresh}. It ends by itself, and can be stopped at any time.`,
      ),
      ...expected,
      ...fields.elements,
    ],
    yes: 'Start',
    run: async () => {
      const body = { class: times.class, ...fields.read(times.freshMs) };
      const { fresh, share, until } = await api.call(PATH, readTrial, { method: 'POST', body });
      announce(
        `A trial of ${times.class} runs: fresh ${fresh} for ${shareWords(share)} of its keys, for ${duration(until - Date.now())}.`,
      );
      await changed();
    },
  });
}

/** @param {string} fresh What is offered. */
function trialFields(fresh) {
  const [freshInput, share, length] = [input(fresh), input('10%'), input('1h')];
  const [load, errors] = [input('1.5'), input('5%')];
  return {
    elements: [
      h('div', { class: 'fields' }, field('Fresh for', freshInput), field(SHARE, share), field('Ends after', length)),
      h(
        'fieldset',
        {},
        h('legend', {}, 'When it goes back by itself'),
        h(
          'div',
          { class: 'fields' },
          field(`${LOAD}, times the rest’s`, load),
          field(`${ERRORS}, above the rest’s`, errors),
        ),
      ),
      h('p', { class: 'hint' }, `Times are ${TIME_FORM}.`),
    ],
    /** @param {number} inForceMs */
    read: (inForceMs) => {
      const freshMs = timeOf(freshInput.value);
      if (freshMs === inForceMs) throw new Error('Fresh for: that is what is in force. Give another time to try.');
      return {
        fresh: written(freshMs),
        share: shareOf(share.value, { name: SHARE, least: 0, largest: 0.5 }),
        for: lengthOf(length.value),
        maxStoreLoad: factorOf(LOAD, load.value),
        maxErrors: shareOf(errors.value, { name: ERRORS, least: 0.01, largest: 1 }),
      };
    },
  };
}

/** @param {string} value */
function input(value) {
  return h('input', { type: 'text', value, autocomplete: 'off', spellcheck: 'false', class: 'mono short' });
}

/**
 * @param {string} label
 * @param {HTMLElement} control
 */
function field(label, control) {
  return h('label', { class: 'field' }, h('span', {}, label), control);
}

/** @param {string} typed */
function lengthOf(typed) {
  const ms = parseDuration(typed);
  if (ms !== null && ms >= SHORTEST_MS && ms <= LONGEST_MS) return written(ms);
  throw new Error(`Ends after: “${typed}” is no time for this. Write 30m, 1h or 2d; at least 1m and at most 7d.`);
}

/**
 * Asks, then ends a running trial.
 * @param {Means} means
 * @param {Trial} trial
 */
export function stopTrial({ api, changed }, trial) {
  const { class: cacheClass, arms } = trial;
  return ask({
    title: `Stop the trial of ${cacheClass}?`,
    body: [h('p', {}, `All keys are fresh for ${arms.control.fresh} again, in every process within a second.`)],
    yes: 'Stop',
    run: async () => {
      await api.call(`${PATH}/${cacheClass}`, readTrial, { method: 'DELETE' });
      announce(`The trial of ${cacheClass} was stopped.`);
      await changed();
    },
  });
}

/**
 * Asks, then sets the time that was tried for all keys of the class.
 * @param {Means} means
 * @param {Trial} trial
 */
export function adoptTrial({ api, changed }, trial) {
  const { class: cacheClass, fresh, arms } = trial;
  return ask({
    title: `Adopt ${fresh} for all keys of ${cacheClass}?`,
    body: [
      h('p', { class: 'change' }, h('code', {}, arms.control.fresh), ' → ', h('code', {}, fresh)),
      h(
        'p',
        {},
        `Measured: hit ratio ${percent(arms.control.hitRatio)} → ${percent(arms.trial.hitRatio)}, store calls per read ${perRead(arms.control.storeCallsPerRead)} → ${perRead(arms.trial.storeCallsPerRead)}.`,
      ),
      h('p', { class: 'hint' }, 'It is set as in Times in force, where it can be reset. A running trial ends with it.'),
    ],
    yes: `Adopt ${fresh}`,
    run: async () => {
      // A POST has to have a body of JSON, whatever it is.
      await api.call(`${PATH}/${cacheClass}/adopt`, readTrial, { method: 'POST', body: {} });
      announce(`The fresh time of ${cacheClass} is ${fresh} now.`);
      await changed();
    },
  });
}
