/** What the what-if section is worked with: the class, the slider, an exact time. */
import { wordsOf } from './api.js';
import { freshId, h, say, set } from './dom.js';
import { duration, parseDuration, percent, rate, written } from './format.js';
import { CLASSES } from './shapes.js';
import { timeSlider } from './time-slider.js';
import { LONGEST_TIME_MS, TIME_FORM, timeOf } from './times-change.js';

/** @typedef {import('./shapes.js').CurvePoint} CurvePoint */
/** @typedef {import('./shapes.js').ClassTimes} ClassTimes */
/** @typedef {import('./prediction.js').Prediction} Prediction */

/** @param {(cacheClass: string) => void} choose */
export function classPicker(choose) {
  const name = freshId();
  const inputs = CLASSES.map((cacheClass) =>
    h('input', { type: 'radio', name, value: cacheClass, onchange: () => choose(cacheClass) }),
  );
  const element = h(
    'fieldset',
    { class: 'segments' },
    h('legend', { class: 'hidden' }, 'Class of answers'),
    ...inputs.map((input) => h('label', {}, input, h('span', {}, input.value))),
  );
  return {
    element,
    /** @param {string} cacheClass */
    show: (cacheClass) => {
      for (const input of inputs) input.checked = input.value === cacheClass;
    },
  };
}

/**
 * @typedef {object} FieldState
 * @property {ClassTimes} timesNow
 * @property {readonly CurvePoint[]} curve
 * @property {number} chosenMs
 * @property {Prediction | null} prediction
 * @property {number} index The place in the curve nearest to what is chosen.
 */

/**
 * The slider over the tried times, the field for any other, and the buttons that set it.
 * @param {Pick<import('./what-if-view.js').Handlers, 'chooseMs' | 'chooseIndex' | 'apply' | 'reset'>} on
 */
export function timeField(on) {
  const slider = timeSlider(on.chooseIndex);
  const exact = exactField({ choose: on.chooseMs, typed: () => drawActions() });
  const inForce = h('strong');
  const between = h('p', { class: 'between' });
  const apply = h('button', { type: 'button', class: 'primary', onclick: () => enabled(apply) && on.apply() });
  const reset = h(
    'button',
    { type: 'button', onclick: () => enabled(reset) && on.reset() },
    'Reset to configuration …',
  );
  let shown = /** @type {Pick<FieldState, 'timesNow' | 'chosenMs'> | null} */ (null);
  const drawActions = () => {
    if (shown === null) return;
    const { timesNow, chosenMs } = shown;
    const isNothing = chosenMs === timesNow.freshMs || !exact.isUsable();
    say(apply, isNothing ? 'Nothing to apply' : `Apply ${written(chosenMs)} …`);
    set(apply, 'aria-disabled', isNothing ? 'true' : null);
    set(reset, 'aria-disabled', Object.values(timesNow.source).includes('set') ? null : 'true');
  };
  return {
    slider: slider.element,
    element: h(
      'div',
      { class: 'chosen' },
      h('div', {}, h('span', { class: 'label' }, 'In force'), inForce),
      h('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'),
      exact.element,
      between,
    ),
    // The fault comes up when the field is left, by pressing a button for instance: that one must not move away under it.
    actions: h('div', {}, h('div', { class: 'buttons' }, apply, reset), exact.fault),
    /** @param {FieldState} state */
    show: ({ timesNow, curve, chosenMs, prediction, index }) => {
      slider.show({ curve, index, chosenMs, valueText: valueText(chosenMs, prediction) });
      exact.show(chosenMs, `${timesNow.class} ${chosenMs}`);
      say(inForce, duration(timesNow.freshMs));
      say(between, betweenText(curve, prediction));
      shown = { timesNow, chosenMs };
      drawActions();
    },
  };
}

/** @param {{ readonly choose: (ms: number) => void, readonly typed: () => void }} on `typed`: at each change of the text. */
function exactField(on) {
  let shownFor = '';
  const typed = h('input', { type: 'text', class: 'mono short', autocomplete: 'off', spellcheck: 'false' });
  const fault = h('p', { class: 'fault', role: 'status' });
  const complain = (/** @type {string} */ words) => {
    say(fault, words);
    set(typed, 'aria-invalid', words === '' ? null : 'true');
  };
  const chosen = () => {
    const ms = parseDuration(typed.value);
    return ms === null || ms > LONGEST_TIME_MS ? null : ms;
  };
  typed.addEventListener('input', () => {
    const ms = chosen();
    // While it is being typed a time is not whole yet; it is complained about when the field is left.
    if (ms !== null) {
      complain('');
      on.choose(ms);
    }
    on.typed();
  });
  typed.addEventListener('change', () => {
    try {
      timeOf(typed.value);
      complain('');
    } catch (error) {
      complain(wordsOf(error));
    }
  });
  return {
    element: h('label', { title: TIME_FORM }, h('span', { class: 'label' }, 'Fresh for'), typed),
    fault,
    isUsable: () => chosen() !== null,
    /**
     * What can't be read stays, with the complaint, until something else is chosen.
     * @param {number} ms
     * @param {string} choice Names what the time was chosen for.
     */
    show: (ms, choice) => {
      const isOther = choice !== shownFor;
      shownFor = choice;
      if (document.activeElement === typed || (chosen() === null && !isOther)) return;
      typed.value = written(ms);
      complain('');
    },
  };
}

/** @param {HTMLButtonElement} button */
function enabled(button) {
  return button.getAttribute('aria-disabled') !== 'true';
}

/**
 * What a screen reader says of the slider.
 * @param {number} chosenMs
 * @param {Prediction | null} prediction
 */
function valueText(chosenMs, prediction) {
  if (prediction === null) return duration(chosenMs);
  return `${duration(chosenMs)}: hit ratio ${percent(prediction.point.hitRatio)}, store calls ${rate(prediction.point.upstreamRps)}`;
}

/**
 * @param {readonly CurvePoint[]} curve
 * @param {Prediction | null} prediction
 */
function betweenText(curve, prediction) {
  const [first] = curve;
  const last = curve.at(-1);
  if (first === undefined || last === undefined) return '';
  if (prediction === null) return `Nothing is known outside ${duration(first.freshMs)} to ${duration(last.freshMs)}.`;
  const { between, point } = prediction;
  const beyond = point.extrapolated ? 'Extrapolated: longer than what was observed.' : '';
  return between === null
    ? beyond
    : `Interpolated between ${duration(between[0])} and ${duration(between[1])}. ${beyond}`;
}
