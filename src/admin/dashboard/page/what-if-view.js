/** How the what-if section looks; it decides nothing. */
import { fill, h, keep, say, set } from './dom.js';
import { ago, count, percent, rate, written } from './format.js';
import { nearest, predict } from './prediction.js';
import { comparison } from './what-if-comparison.js';
import { classPicker, timeField } from './what-if-controls.js';
import { curveRow, whatIfChart } from './what-if-chart.js';

/** @typedef {import('./shapes.js').ClassAdvice} ClassAdvice */
/** @typedef {import('./shapes.js').ClassTimes} ClassTimes */

/**
 * @typedef {object} Handlers
 * @property {(cacheClass: string) => void} chooseClass
 * @property {(ms: number) => void} chooseMs
 * @property {(index: number) => void} chooseIndex A place in the curve.
 * @property {() => void} apply
 * @property {() => void} reset
 */

/**
 * @typedef {object} Shown
 * @property {ClassAdvice} one
 * @property {ClassTimes} timesNow
 * @property {number} chosenMs
 */

/** @param {Handlers} on */
export function whatIfView(on) {
  const picker = classPicker(on.chooseClass);
  const charts = whatIfChart(on.chooseIndex);
  const numbers = comparison();
  const field = timeField(on);
  const advised = recommendation(on.chooseMs);
  const table = curveTable();
  const basis = h('p', { class: 'hint basis' });
  const doubt = h('p', { class: 'doubt' });
  const empty = h('p', { class: 'empty' });
  const element = h(
    'div',
    { class: 'what-if' },
    picker.element,
    h('div', { class: 'what-if-left' }, charts.element, empty, field.slider, markLegend()),
    h('div', { class: 'what-if-right' }, field.element, numbers.element, advised.element, field.actions, doubt, basis),
    table.element,
  );
  return {
    element,
    /** @param {Shown} shown */
    draw: ({ one, timesNow, chosenMs }) => {
      const { curve, recommendation: advice } = one;
      const prediction = predict(curve, chosenMs);
      const isEmpty = curve.length < 2;
      set(element, 'data-empty', isEmpty);
      fill(empty, isEmpty ? `No predictions for ${one.class} yet. ${advice.why}` : '');
      picker.show(one.class);
      charts.draw(curve, { inForceMs: timesNow.freshMs, recommendedMs: advice.freshMs, chosenMs });
      field.show({ timesNow, curve, chosenMs, prediction, index: nearest(curve, chosenMs) });
      numbers.show({ now: one.current, prediction, chosenMs });
      advised.show(one, chosenMs);
      table.show(curve);
      say(basis, basisOf(one));
      say(doubt, doubtOf(one));
    },
  };
}

/** @param {Handlers['chooseMs']} choose */
function recommendation(choose) {
  let advisedMs = /** @type {number | null} */ (null);
  const words = h('p');
  const take = h('button', { type: 'button', class: 'small' }, 'Try it');
  take.addEventListener('click', () => {
    if (advisedMs !== null) choose(advisedMs);
  });
  const element = h('div', { class: 'advice' }, words, take);
  return {
    element,
    /**
     * @param {ClassAdvice} one
     * @param {number} chosenMs
     */
    show: ({ curve, recommendation: { freshMs, why } }, chosenMs) => {
      advisedMs = freshMs;
      element.hidden = curve.length < 2;
      set(element, 'data-kind', freshMs === null ? 'none' : 'some');
      const isSame = freshMs === chosenMs;
      take.hidden = freshMs === null || isSame;
      say(words, freshMs === null ? `No recommendation. ${why}` : `Recommended: ${written(freshMs)}. ${why}`);
    },
  };
}

/** The same as the charts show, for who can't see them or wants the numbers. */
function curveTable() {
  const rows = h('tbody');
  const head = ['Hit ratio', 'Store calls', 'Age p90', 'Outdated', ''].map((name) =>
    h('th', { scope: 'col', class: 'number' }, name),
  );
  const element = h(
    'details',
    { class: 'as-table' },
    h('summary', {}, 'All predicted numbers as a table'),
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Predicted numbers' },
      h(
        'table',
        { class: 'dense' },
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Fresh for'), ...head)),
        rows,
      ),
    ),
  );
  return {
    element,
    /** @param {ClassAdvice['curve']} curve */
    show: (curve) => {
      element.hidden = curve.length < 2;
      if (element.open) keep(rows, curve, { key: ({ freshMs }) => String(freshMs), make: curveRow });
    },
  };
}

/** @param {ClassAdvice} one */
function basisOf({ reads, since, measured, outdatedLimit }) {
  const watched =
    since === null ? 'No reads were watched yet.' : `From ${count(reads)} reads since ${ago(since, Date.now())}.`;
  const really =
    measured === null
      ? ''
      : ` Measured in that time: hit ratio ${percent(measured.hitRatio)}, store calls ${rate(measured.upstreamRps)}.`;
  return `${watched}${really} Outdated answers are put up with up to ${percent(outdatedLimit)}. Hit ratio here: the share of reads without a store call.`;
}

/** More than this between what is worked out for the time in force and what was measured needs a word. */
const DOUBTFUL = 0.05;

/** @param {ClassAdvice} one */
function doubtOf({ current, measured }) {
  if (current === null || measured === null || Math.abs(current.hitRatio - measured.hitRatio) < DOUBTFUL) return '';
  return `For the time in force a hit ratio of ${percent(current.hitRatio)} is worked out, and ${percent(measured.hitRatio)} was measured: copies also come from elsewhere (pages of a list fill single calls), or a time or purge changed meanwhile. Go by the differences.`;
}

/**
 * @param {string} kind
 * @param {string} name
 */
function mark(kind, name) {
  return h('li', {}, h('span', { class: `mark mark-${kind}` }), name);
}

function markLegend() {
  return h(
    'ul',
    { class: 'marks', 'aria-hidden': 'true' },
    mark('chosen', 'chosen'),
    mark('in-force', 'in force'),
    mark('recommended', 'recommended'),
    mark('extrapolated', 'extrapolated'),
  );
}
