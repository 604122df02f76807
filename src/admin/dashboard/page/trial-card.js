/** A trial that runs: how much of it is left, and what was measured in both arms beside what was predicted. */
import { freshId, h, say } from './dom.js';
import { count, NONE, percent } from './format.js';
import { swatch } from './swatch.js';
import { failedWords, leftWords, limitWords, perRead, shareWords } from './trial-words.js';

/** @typedef {import('./trial-shapes.js').Trial} Trial */

/**
 * @param {Trial} first As it was when it was first seen: what never changes is of this.
 * @param {{ readonly adopt: () => void, readonly stop: () => void }} on
 */
export function trialCard(first, on) {
  const { class: cacheClass, fresh, share } = first;
  const titleId = freshId();
  const left = h('p', { class: 'trial-left' });
  const figures = armFigures(cacheClass);
  const limits = h('p', { class: 'hint' });
  const element = h(
    'article',
    { class: 'trial', 'aria-labelledby': titleId },
    h(
      'div',
      { class: 'trial-head' },
      h(
        'h3',
        { id: titleId },
        swatch(cacheClass),
        ` ${cacheClass}: fresh `,
        h('code', {}, fresh),
        ` for ${shareWords(share)} of the keys`,
      ),
      left,
      h(
        'div',
        { class: 'buttons' },
        button({ label: 'Adopt …', name: `Adopt ${fresh} for ${cacheClass}`, focus: 'adopt', run: on.adopt }),
        button({ label: 'Stop …', name: `Stop the trial of ${cacheClass}`, focus: 'stop', run: on.stop }),
      ),
    ),
    figures.element,
    limits,
  );
  return {
    element,
    /**
     * @param {Trial} trial
     * @param {number} nowMs
     */
    show: (trial, nowMs) => {
      say(left, `${leftWords(trial, nowMs)} · started by ${trial.startedBy}`);
      figures.show(trial);
      say(limits, limitWords(trial).join(' '));
    },
  };
}

/** @param {{ readonly label: string, readonly name: string, readonly focus: string, readonly run: () => void }} what */
function button({ label, name, focus, run }) {
  return h('button', { type: 'button', class: 'small', 'aria-label': name, 'data-focus': focus, onclick: run }, label);
}

/** A row each; of what is only counted nothing was predicted. */
const ROWS = /** @type {const} */ (['Reads', 'Hit ratio', 'Store calls per read', 'Failed store calls']);
const ARMS = /** @type {const} */ (['trial', 'control']);

/** @param {string} cacheClass */
function armFigures(cacheClass) {
  const heads = ARMS.map(() => h('th', { scope: 'col', class: 'number' }));
  const rows = ROWS.map((name) => {
    const cells = ARMS.map(() => ({
      measured: h('td', { class: 'number strong' }, NONE),
      predicted: h('td', { class: 'number faint' }),
    }));
    const children = cells.flatMap(({ measured, predicted }) => [measured, predicted]);
    return { name, cells, row: h('tr', {}, h('th', { scope: 'row' }, name), ...children) };
  });
  const columns = heads.flatMap((head) => [head, h('th', { scope: 'col', class: 'number' }, 'predicted')]);
  const element = h(
    'table',
    { class: 'comparison' },
    h('caption', { class: 'hidden' }, `Trial of ${cacheClass}: measured and predicted`),
    h('thead', {}, h('tr', {}, h('td'), ...columns)),
    h('tbody', {}, ...rows.map(({ row }) => row)),
  );
  return {
    element,
    /** @param {Trial} trial */
    show: (trial) => {
      for (const [at, name] of ARMS.entries()) {
        const head = heads[at];
        const words = name === 'trial' ? 'trial' : 'the rest';
        if (head !== undefined) say(head, `${words}, ${trial.arms[name].fresh}`);
        for (const row of rows) {
          const cell = row.cells[at];
          if (cell === undefined) continue;
          const { measured, predicted } = figure(trial, name, row.name);
          say(cell.measured, measured);
          say(cell.predicted, predicted);
        }
      }
    },
  };
}

/**
 * @param {Trial} trial
 * @param {(typeof ARMS)[number]} name
 * @param {(typeof ROWS)[number]} row
 */
function figure({ arms, predicted }, name, row) {
  const [arm, guess] = [arms[name], predicted[name]];
  if (row === 'Reads') return { measured: count(arm.reads), predicted: '' };
  if (row === 'Hit ratio') return { measured: percent(arm.hitRatio), predicted: percent(guess?.hitRatio ?? null) };
  if (row === 'Failed store calls') return { measured: failedWords(arm), predicted: '' };
  return { measured: perRead(arm.storeCallsPerRead), predicted: perRead(guess?.storeCallsPerRead ?? null) };
}
